//! What of a person's home reaches a box's, and how.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use h5i_broker::home::{Seeded, Tool, seed, seeds_of};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

struct Homes {
    scratch: TempDir,
}

impl Homes {
    fn new() -> Self {
        let homes = Self { scratch: tempfile::tempdir().expect("a directory") };
        fs::create_dir(homes.from()).expect("a home");
        fs::create_dir(homes.to()).expect("a home");
        homes
    }

    fn from(&self) -> PathBuf {
        self.scratch.path().join("person")
    }

    fn to(&self) -> PathBuf {
        self.scratch.path().join("box")
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.from().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("its directory");
        fs::write(path, text).expect("a file");
    }

    fn seed(&self) -> Seeded {
        let to = File::open(self.to()).expect("the box's home");
        seed(&self.from(), &to, &Tool::ALL).expect("seeded")
    }

    fn got(&self, name: &str) -> String {
        fs::read_to_string(self.to().join(name)).expect(name)
    }
}

fn copied(seeded: &Seeded) -> Vec<String> {
    seeded.copied.iter().map(|file| file.path.display().to_string()).collect()
}

fn left(seeded: &Seeded) -> Vec<(String, String)> {
    seeded.left.iter().map(|file| (file.path.display().to_string(), file.why.clone())).collect()
}

/// All bytes below a directory, names included.
fn everything(directory: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        all.extend(path.display().to_string().into_bytes());
        if path.is_dir() {
            all.extend(everything(&path));
        } else {
            all.extend(fs::read(&path).expect("a file"));
        }
    }
    all
}

#[test]
fn each_tool_gets_its_configuration_and_no_credential() {
    let homes = Homes::new();
    homes.put(
        ".claude/settings.json",
        r#"{"model":"x","env":{"ANTHROPIC_BASE_URL":"https://canary","A":"1","MY_TOKEN":"canary"},"apiKeyHelper":"canary"}"#,
    );
    homes.put(".claude/.credentials.json", r#"{"claudeAiOauth":{"accessToken":"canary"}}"#);
    homes.put(".claude/CLAUDE.md", "Be kind.\nTOKEN=canary0123\n");
    homes.put(".claude/commands/deep/fix.md", "Fix it.\n");
    homes.put(".claude/agents/reviewer.md", "Review it.\n");
    homes.put(
        ".claude.json",
        r#"{"theme":"dark","hasCompletedOnboarding":true,"oauthAccount":{"x":"canary"},"projects":{"/home/canary":{}},"customApiKeyResponses":{"approved":["canary"]},"userID":"canary"}"#,
    );
    homes.put(".codex/config.toml", "model = \"m\"\n[projects.\"/home/canary\"]\ntrust_level = \"trusted\"\n[mcp_servers.a.env]\nKEY_TOKEN = \"canary\"\n");
    homes.put(".codex/auth.json", r#"{"OPENAI_API_KEY":"canary"}"#);
    homes.put(".codex/AGENTS.md", "Be brief.\n");
    homes.put(".codex/prompts/p.md", "Do it.\n");
    homes.put(
        ".gitconfig",
        "[user]\n\tname = Me\n\tsigningkey = canary\n[credential]\n\thelper = canary\n\
         [include]\n\tpath = ~/canary\n[core]\n\teol = lf\n\thooksPath = canary\n\tsshCommand = canary\n\tfsmonitor = canary\n\
         [filter \"x\"]\n\tclean = canary\n[alias]\n\tst = status\n",
    );
    homes.put(".git-credentials", "https://u:canary@example.com\n");
    homes.put(".npmrc", "@a:registry=https://r/\n//r/:_authToken=canary\n");
    homes.put(".cargo/config.toml", "[net]\nretry = 2\n[registry]\ntoken = \"canary\"\n");
    homes.put(".cargo/credentials.toml", "[registry]\ntoken = \"canary\"\n");
    homes.put(".config/pip/pip.conf", "[global]\ntimeout = 1\nindex-url = https://u:canary@h/\n");
    homes.put(".netrc", "machine h login u password canary\n");
    homes.put(".ssh/id_ed25519", "canary");

    let seeded = homes.seed();
    assert_eq!(
        copied(&seeded),
        [
            ".claude/settings.json",
            ".claude/CLAUDE.md",
            ".claude/commands/deep/fix.md",
            ".claude/agents/reviewer.md",
            ".claude.json",
            ".codex/config.toml",
            ".codex/AGENTS.md",
            ".codex/prompts/p.md",
            ".gitconfig",
            ".npmrc",
            ".cargo/config.toml",
            ".config/pip/pip.conf",
        ]
    );
    assert_eq!(left(&seeded), []);
    let all = everything(&homes.to());
    assert!(!all.windows(6).any(|window| window == b"canary"));
    assert!(!format!("{seeded:?}").contains("canary"));

    assert_eq!(homes.got(".claude/settings.json"), r#"{"model":"x","env":{"A":"1"}}"#);
    assert_eq!(homes.got(".claude/CLAUDE.md"), "Be kind.\n");
    assert_eq!(homes.got(".claude.json"), r#"{"theme":"dark","hasCompletedOnboarding":true}"#);
    assert_eq!(homes.got(".codex/config.toml"), "model = \"m\"\n[mcp_servers.a.env]\n");
    assert_eq!(
        homes.got(".gitconfig"),
        "[user]\n\tname = Me\n[core]\n\teol = lf\n[alias]\n\tst = status\n"
    );
    assert_eq!(homes.got(".npmrc"), "@a:registry=https://r/\n");
    let removed: usize = seeded.copied.iter().map(|file| file.removed.len()).sum();
    assert!(removed >= 12, "{seeded:?}");
}

#[test]
fn files_are_for_their_owner_only() {
    let homes = Homes::new();
    homes.put(".claude/commands/a/b.md", "text");
    fs::set_permissions(
        homes.from().join(".claude/commands/a/b.md"),
        fs::Permissions::from_mode(0o666),
    )
    .expect("a mode");
    homes.seed();
    for (path, mode) in
        [(".claude", 0o700), (".claude/commands/a", 0o700), (".claude/commands/a/b.md", 0o600)]
    {
        let found = fs::metadata(homes.to().join(path)).expect(path).permissions().mode();
        assert_eq!(found & 0o777, mode, "{path}");
    }
}

#[test]
fn a_link_is_followed_inside_of_the_home_only() {
    let homes = Homes::new();
    homes.put("dotfiles/npmrc", "save-exact=true\n");
    fs::write(homes.scratch.path().join("outside"), "outside=1\n").expect("a file");
    symlink("dotfiles/npmrc", homes.from().join(".npmrc")).expect("a link");
    fs::create_dir(homes.from().join(".cargo")).expect("a directory");
    symlink("../../outside", homes.from().join(".cargo/config.toml")).expect("a link");
    homes.put(".claude/commands/kept.md", "kept");
    symlink("../../dotfiles/npmrc", homes.from().join(".claude/commands/linked.md"))
        .expect("a link");
    symlink("../..", homes.from().join(".claude/commands/up")).expect("a link");

    let seeded = homes.seed();
    assert_eq!(copied(&seeded), [".claude/commands/kept.md", ".npmrc"]);
    assert_eq!(homes.got(".npmrc"), "save-exact=true\n");
    assert_eq!(
        left(&seeded),
        [
            (".claude/commands/linked.md".to_owned(), "it is no regular file".to_owned()),
            (".claude/commands/up".to_owned(), "it is no regular file".to_owned()),
            (".cargo/config.toml".to_owned(), "it is a link that leads out of the home".to_owned()),
        ]
    );
}

#[test]
fn what_is_no_file_or_too_large_or_not_understood_is_told() {
    let homes = Homes::new();
    mknodat(CWD, homes.from().join(".npmrc"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .expect("a pipe");
    homes.put(".gitconfig", &"#".repeat((1 << 20) + 1));
    homes.put(".claude.json", "{\"theme\": ");
    homes.put(".codex/config.toml", "model = \"m\"\n");
    let seeded = homes.seed();
    assert_eq!(copied(&seeded), [".codex/config.toml"]);
    let whys: Vec<String> = left(&seeded).into_iter().map(|(_, why)| why).collect();
    assert_eq!(whys, ["it is not understood", "it is larger than 1 MiB", "it is no regular file"]);
}

#[test]
fn nothing_is_written_outside_of_the_boxs_home_nor_over_what_is_there() {
    let homes = Homes::new();
    for file in [".npmrc", ".gitconfig", ".codex/AGENTS.md"] {
        homes.put(file, "a=1\n");
    }
    homes.put(".claude/CLAUDE.md", "mine\n");
    let outside = homes.scratch.path().join("outside");
    fs::create_dir(&outside).expect("a directory");
    // What a box could have left there.
    symlink(&outside, homes.to().join(".claude")).expect("a link");
    symlink(outside.join("npmrc"), homes.to().join(".npmrc")).expect("a link");
    fs::write(homes.to().join(".gitconfig"), "the box's own").expect("a file");

    let to = File::open(homes.to()).expect("the box's home");
    let error = seed(&homes.from(), &to, &[Tool::Claude]).expect_err("a link in the way");
    assert!(error.to_string().contains(".claude/CLAUDE.md"), "{error}");
    let seeded = seed(&homes.from(), &to, &[Tool::Npm, Tool::Git, Tool::Codex]).expect("seeded");
    assert_eq!(copied(&seeded), [".codex/AGENTS.md"]);
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 0);
    assert_eq!(homes.got(".gitconfig"), "the box's own");
}

#[test]
fn there_is_a_bound_on_files() {
    let homes = Homes::new();
    for number in 0..205 {
        homes.put(&format!(".claude/commands/{number:03}.md"), "x");
    }
    let seeded = homes.seed();
    assert_eq!((seeded.copied.len(), seeded.left.len()), (200, 1));
}

#[test]
fn every_file_of_the_table_is_copied_where_it_is_harmless() {
    let homes = Homes::new();
    let mut count = 0;
    for file in Tool::ALL.iter().flat_map(|tool| seeds_of(*tool)) {
        use h5i_broker::home::Format;
        let name = if file.path.ends_with('/') {
            format!("{}x.md", file.path)
        } else {
            file.path.to_owned()
        };
        let text = match file.format {
            Format::Json => "{}",
            Format::GitConfig => "[user]\n\tname = x\n",
            Format::Ini => "[global]\nx = y\n",
            _ => "",
        };
        homes.put(&name, text);
        count += 1;
    }
    assert_eq!(homes.seed().copied.len(), count);
}
