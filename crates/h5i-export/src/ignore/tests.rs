use std::process::Command;

use super::{Entry, IgnoreStack};

fn ignores(content: &str, path: &str) -> bool {
    let mut stack = IgnoreStack::default();
    stack.push(b"", Some(content.as_bytes()));
    let (path, entry) = match path.strip_suffix('/') {
        Some(directory) => (directory, Entry::Directory),
        None => (path, Entry::Other),
    };
    stack.ignores(path.as_bytes(), entry)
}

const PATTERNS: &[&str] = &[
    "a",
    "/a",
    "a/",
    "*.o",
    "!*.o",
    "a/b",
    "a/*",
    "a/**",
    "**/b",
    "**/b/c",
    "a/**/c",
    "a**c",
    "[ab]",
    "[!a]",
    "[a-c].o",
    "?",
    "\\!x",
    "\\#x",
    "x\\ ",
    "x ",
    "[]a]",
    "[[:digit:]]",
    "[",
    "a\\",
    "**",
    "*",
    "b/",
    "*/c",
    "foo/**/bar/*.c",
    "[^/]",
    "a[/]b",
    "\u{f6}*",
    "a*/b",
    "[a-",
    "***",
    "/**",
    "**/",
];
const PATHS: &[&str] = &[
    "a",
    "b",
    "c",
    "a/b",
    "a/c",
    "a/b/c",
    "b/a",
    "x.o",
    "a/x.o",
    "!x",
    "#x",
    "x",
    "x ",
    "]",
    "7",
    "[",
    "ac",
    "abc",
    "ab/c",
    "foo/bar/x.c",
    "foo/q/bar/x.c",
    "foo/q/r/bar/x.c",
    "\u{f6}\u{e4}",
    "aa/b",
    "a\\",
    "q/b/c",
];

/// The answer of `git check-ignore` itself, for every pattern and path.
#[test]
fn every_pattern_decides_as_git_does() {
    let dir = tempfile::tempdir().expect("a directory");
    let git = |args: &[&str], input: &str| {
        #[expect(
            clippy::disallowed_methods,
            reason = "the reference that the matcher is compared with"
        )]
        let mut child = Command::new("git")
            .args(args)
            .current_dir(dir.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("git runs");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes())
            .expect("writes");
        String::from_utf8(child.wait_with_output().expect("ends").stdout).expect("text")
    };
    git(&["init", "-q"], "");
    let paths: String = PATHS.iter().map(|path| format!("{path}\0")).collect();
    for pattern in PATTERNS {
        for content in [format!("{pattern}\n"), format!("*\n!{pattern}\n")] {
            std::fs::write(dir.path().join(".gitignore"), &content).expect("writes");
            let answer = git(&["check-ignore", "--no-index", "--stdin", "-z"], &paths);
            let ignored: Vec<&str> = answer.split('\0').collect();
            for path in PATHS {
                // As the walk does: a path under an ignored directory is ignored.
                let ours = path.match_indices('/').any(|(at, _)| ignores(&content, &path[..=at]))
                    || ignores(&content, path);
                assert_eq!(ours, ignored.contains(path), "{content:?} on {path:?}");
            }
        }
    }
}

#[test]
fn a_deeper_file_decides_before_a_shallower_one() {
    let mut stack = IgnoreStack::default();
    stack.push(b"", Some(b"*.log\n"));
    stack.push(b"kept", Some(b"!*.log\n/x\n"));
    assert!(!stack.ignores(b"kept/a.log", Entry::Other));
    assert!(stack.ignores(b"kept/x", Entry::Other));
    stack.pop();
    assert!(stack.ignores(b"a.log", Entry::Other));
    assert!(!stack.ignores(b"x", Entry::Other));
}

#[test]
fn a_directory_pattern_leaves_files_of_that_name() {
    assert!(ignores("target/", "target/"));
    assert!(!ignores("target/", "target"));
}

#[test]
fn a_crafted_pattern_ends_soon_and_ignores_nothing() {
    let pattern = "a*".repeat(60) + "b";
    let start = std::time::Instant::now();
    assert!(!ignores(&pattern, &"a".repeat(200)));
    assert!(start.elapsed().as_secs() < 30);
    assert!(ignores(&("a*".repeat(3) + "b"), &("a".repeat(20) + "b")), "the twin: a modest one");
}
