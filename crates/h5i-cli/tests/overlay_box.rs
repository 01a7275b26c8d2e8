//! Boxes over a tree that they share, by the program itself.
#![allow(
    clippy::disallowed_methods,
    reason = "the program under test and git are run as a person would"
)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use h5i_testkit::{Need, have};
use tempfile::TempDir;

struct Desk {
    dir: TempDir,
}

impl Desk {
    /// A repository with two commits, a directory, a link and a program, and a home of its own.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        // A box of root runs under an id of its own and has to get here.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let desk = Self { dir };
        fs::create_dir_all(desk.repo().join("dir/deep")).unwrap();
        desk.git(&["init", "-q", "-b", "main"]);
        fs::write(desk.repo().join("a.txt"), "one\ntwo\n").unwrap();
        fs::write(desk.repo().join(".env"), "KEY=value\n").unwrap();
        desk.commit("first");
        fs::write(desk.repo().join("dir/deep/file"), "deep\n").unwrap();
        fs::write(desk.repo().join("run.sh"), "echo hi\n").unwrap();
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(desk.repo().join("run.sh"), executable).unwrap();
        std::os::unix::fs::symlink("a.txt", desk.repo().join("link")).unwrap();
        desk.commit("second");
        desk
    }

    fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join(".local/state/h5i")
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        Command::new(program)
            .args(args)
            .current_dir(self.repo())
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // Old enough for the files to have the time of the commit.
            .env("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
            .output()
            .unwrap()
    }

    /// Without upkeep that goes on when the command has ended.
    fn git(&self, args: &[&str]) {
        let quiet = ["-c", "maintenance.auto=false", "-c", "gc.auto=0"];
        let output = self.run("git", &[&quiet[..], args].concat());
        assert!(output.status.success(), "{output:?}");
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        self.git(&[&who[..], &["commit", "-qm", message]].concat());
    }

    /// What a command of h5i's prints.
    fn h5i(&self, args: &[&str]) -> String {
        let output = self.run(env!("CARGO_BIN_EXE_h5i"), args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Makes a box over a tree that its base shares; a small base has none unless it is asked for.
    fn create(&self, name: &str, rest: &[&str]) {
        self.h5i(&[&["box", "create", name, "--workspace", "overlay"], rest].concat());
    }

    fn sh(&self, name: &str, script: &str) -> String {
        self.h5i(&["box", "run", name, "--", "sh", "-c", script])
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.h5i(&[args, &["--json"]].concat())).unwrap()
    }

    /// The pristine trees that there are.
    fn trees(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state().join("trees")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn tree(&self) -> PathBuf {
        let [tree] = &self.trees()[..] else { panic!("not one tree: {:?}", self.trees()) };
        tree.clone()
    }
}

fn blocks_below(dir: &Path) -> u64 {
    let mut blocks = 0;
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        blocks += meta.blocks();
        if meta.is_dir() {
            // The kernel keeps its own work directories closed.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    blocks
}

#[test]
fn the_first_git_status_in_a_box_reads_no_file() {
    if !have("the_first_git_status_in_a_box_reads_no_file", Need::UserNamespaces) {
        return;
    }
    let desk = Desk::new();
    desk.create("b", &[]);
    let kind = desk.json(&["box", "status", "b"])["data"]["workspace"]["kind"].clone();
    assert_eq!(kind, "overlay");
    // Prints what differs by its stat data from the index, without a look at content.
    assert_eq!(desk.sh("b", "git diff-files --name-only"), "");
    // The twin: the same content under another time.
    assert_eq!(desk.sh("b", "touch a.txt; git diff-files --name-only"), "a.txt\n");
    assert_eq!(desk.sh("b", "git status --porcelain"), "");
}

#[test]
fn boxes_of_one_base_share_a_tree_and_an_idle_one_takes_little() {
    if !have("boxes_of_one_base_share_a_tree_and_an_idle_one_takes_little", Need::UserNamespaces) {
        return;
    }
    let desk = Desk::new();
    for name in ["b", "c"] {
        desk.create(name, &[]);
    }
    let content = desk.tree().join("files/a.txt");
    desk.sh("b", "echo mine >> a.txt; rm -r dir; chmod 700 run.sh");
    assert_eq!(
        desk.sh("c", "cat a.txt dir/deep/file; ls; git status --short"),
        "one\ntwo\ndeep\na.txt\ndir\nlink\nrun.sh\n"
    );
    assert_eq!(fs::read_to_string(&content).unwrap(), "one\ntwo\n");
    let boxes: Vec<PathBuf> = fs::read_dir(desk.state().join("repos"))
        .unwrap()
        .map(|scope| scope.unwrap().path().join("boxes"))
        .collect();
    let kept = boxes[0].join("b/box");
    assert!(blocks_below(&kept) * 512 < 1 << 20);
    desk.h5i(&["box", "rm", "--force", "b", "c"]);
    assert_eq!(fs::read_dir(&boxes[0]).unwrap().count(), 0);
    // Small, so kept for the next box.
    desk.h5i(&["box", "gc"]);
    assert!(content.try_exists().unwrap());
}

/// What a person sees of a fresh box's tree and history.
fn seen(desk: &Desk, name: &str) -> String {
    desk.sh(
        name,
        "git status --porcelain; git log --format=%H%d%s; git ls-tree -r HEAD; ls -A; \
         git diff-files --name-only; cat a.txt 2>/dev/null; git ls-files -z | xargs -0r stat -c '%n %A %Y'; true",
    )
}

#[test]
fn every_kind_of_base_looks_the_same_in_an_overlay_and_in_a_directory() {
    let name = "every_kind_of_base_looks_the_same_in_an_overlay_and_in_a_directory";
    if !have(name, Need::UserNamespaces) {
        return;
    }
    let desk = Desk::new();
    fs::write(desk.repo().join("a.txt"), "changed\n").unwrap();
    fs::write(desk.repo().join("untracked"), "new\n").unwrap();
    let clone = desk.dir.path().join("repo");
    let kinds: [&[&str]; 7] = [
        &[],
        &["--base", "HEAD~1"],
        &["--dirty"],
        &["--empty"],
        &["--clone", clone.to_str().unwrap()],
        &["--set", "history=\"none\""],
        &["--set", "fs.hide=[\"**/.env\"]"],
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        let (layered, plain) = (format!("l{number}"), format!("p{number}"));
        desk.create(&layered, kind);
        desk.h5i(&[&["box", "create", &plain, "--tier", "workspace"], kind].concat());
        let kind_of =
            |name: &str| desk.json(&["box", "status", name])["data"]["workspace"]["kind"].clone();
        assert_eq!((kind_of(&layered), kind_of(&plain)), ("overlay".into(), "checkout".into()));
        assert_eq!(seen(&desk, &layered), seen(&desk, &plain), "{kind:?}");
        let edit = "echo more >> a.txt; rm -rf dir; mkdir dir; echo x > dir/x; true";
        desk.sh(&layered, edit);
        desk.sh(&plain, edit);
        let diff = |name: &str| desk.h5i(&["box", "diff", name]);
        assert_eq!(diff(&layered), diff(&plain), "{kind:?}");
        assert_ne!(diff(&layered), "", "{kind:?}");
    }
}

#[test]
fn a_tree_of_an_earlier_boot_is_checked_and_made_again_when_it_differs() {
    let name = "a_tree_of_an_earlier_boot_is_checked_and_made_again_when_it_differs";
    if !have(name, Need::UserNamespaces) {
        return;
    }
    let desk = Desk::new();
    desk.create("first", &[]);
    let tree = desk.tree();
    let file = tree.join("files/a.txt");
    let made = fs::metadata(&file).unwrap().ino();
    let earlier_boot = || {
        let record = tree.join("tree.json");
        let mut json: serde_json::Value =
            serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
        json["boot"] = "another".into();
        fs::write(&record, json.to_string()).unwrap();
    };
    earlier_boot();
    desk.create("second", &[]);
    assert_eq!(fs::metadata(&file).unwrap().ino(), made, "a whole tree stays");
    earlier_boot();
    fs::write(&file, "one\nTWO\n").unwrap();
    desk.create("third", &[]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\n");
    assert_eq!(desk.sh("third", "git diff-files --name-only; cat a.txt"), "one\ntwo\n");
}

#[test]
fn a_half_made_tree_is_not_taken_for_whole_and_gc_removes_it() {
    if !have("a_half_made_tree_is_not_taken_for_whole_and_gc_removes_it", Need::UserNamespaces) {
        return;
    }
    let desk = Desk::new();
    desk.create("b", &[]);
    let tree = desk.tree();
    desk.h5i(&["box", "rm", "b"]);
    let name = tree.file_name().unwrap().to_str().unwrap();
    let half = tree.with_file_name(format!(".{name}.0011.new"));
    fs::rename(&tree, &half).unwrap();
    fs::remove_file(half.join("files/a.txt")).unwrap();
    let half_layer = |tree: &Path| tree.join(".git-0123456789abcdef.0011.new");
    desk.create("c", &[]);
    fs::create_dir(half_layer(&tree)).unwrap();
    assert_eq!(desk.sh("c", "cat a.txt"), "one\ntwo\n");
    desk.h5i(&["box", "gc"]);
    assert_eq!(desk.trees(), std::slice::from_ref(&tree));
    assert!(!half_layer(&tree).try_exists().unwrap());
    assert_eq!(desk.sh("c", "git status --porcelain; cat a.txt"), "one\ntwo\n");
}

#[test]
fn a_directory_of_the_base_is_moved_by_copying_and_not_by_one_rename() {
    let name = "a_directory_of_the_base_is_moved_by_copying_and_not_by_one_rename";
    if !have(name, Need::UserNamespaces) {
        return;
    }
    let desk = Desk::new();
    desk.create("b", &[]);
    assert!(desk.h5i(&["box", "explain", "b"]).contains("EXDEV"));
    let renamed = desk.sh("b", "LC_ALL=C git mv dir other 2>&1 || true");
    assert!(renamed.contains("Invalid cross-device link"), "{renamed}");
    // Twins: by copying, and of a directory that the box made.
    assert_eq!(
        desk.sh("b", "mv dir moved && git add -A && git mv moved again && ls"),
        "a.txt\nagain\nlink\nrun.sh\n"
    );
    assert!(desk.h5i(&["box", "diff", "b"]).contains("rename to again/deep/file"));
}
