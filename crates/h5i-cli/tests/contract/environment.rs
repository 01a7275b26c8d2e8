//! What a run sees of the caller: nothing but what it is meant to.

use crate::stand::{PATH, Said, Stand};

/// Variables of the caller that must not enter a box, each with a canary.
const CANARIES: [&str; 16] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_AUTHOR_NAME",
    "GIT_SSH_COMMAND",
    "LD_PRELOAD_X",
    "LD_LIBRARY_PATH",
    "HTTP_PROXY",
    "https_proxy",
    "NO_PROXY",
    "ALL_PROXY",
    "API_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "BASH_ENV",
];

fn with_canaries(stand: &Stand, words: &[&str]) -> Said {
    let mut command = stand.command();
    for name in CANARIES {
        command.env(name, format!("canary-{name}"));
    }
    // Locale and terminal are the caller's: that is no secret and programs need it.
    command.env("LANG", "C.UTF-8").env("TERM", "vt100").env("LC_TIME", "C").args(words);
    Said::of(command.output().unwrap())
}

fn names(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|l| l.0).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_environment_is_a_list_of_what_is_allowed() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    for words in [&["box", "run", "a", "--", "env"][..], &["run", "--", "env"]] {
        let said = with_canaries(&stand, words);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(!said.text().contains("canary"), "{}", said.text());
        let known = ["HOME", "LANG", "LC_TIME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
        assert_eq!(names(said.text()), known);
        for line in ["HOME=/home/box", "USER=box", "LOGNAME=box", "LC_TIME=C", "TERM=vt100"] {
            assert!(said.text().lines().any(|l| l == line), "{line}: {}", said.text());
        }
        assert!(!said.text().contains(stand.path().to_str().unwrap()), "{}", said.text());
    }
    // Not by another process's environment either.
    let script = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; true";
    let said = with_canaries(&stand, &["box", "run", "a", "--", "sh", "-c", script]);
    assert!(!said.text().contains("canary"), "{}", said.text());
}

#[test]
fn a_variable_comes_in_by_name_only() {
    let stand = Stand::new();
    let words = ["run", "--set", "env.pass=[\"API_TOKEN\"]", "-e", "X=1", "-e", "Y=", "--", "env"];
    let said = with_canaries(&stand, &words);
    for line in ["API_TOKEN=canary-API_TOKEN", "X=1", "Y="] {
        assert!(said.text().lines().any(|l| l == line), "{line}: {}", said.text());
    }
    assert_eq!(said.text().matches("canary").count(), 1, "{}", said.text());
    // What steers git, the loader or the way out is never passed, also not by name.
    for name in ["GIT_DIR", "LD_LIBRARY_PATH", "https_proxy"] {
        let set = format!("env.pass=[\"{name}\"]");
        let said = with_canaries(&stand, &["run", "--set", &set, "--", "env"]);
        assert_eq!(said.code, 125, "{name}");
        assert!(said.err.contains("must not enter a box"), "{}", said.err);
    }
}

#[test]
fn the_box_has_names_of_its_own() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let script = "pwd; hostname; id -un; id -u; id -g; id -Gn; echo ~; umask; readlink /proc/self/cwd; ulimit -c";
    let told = stand.sh("a", script);
    let lines: Vec<&str> = told.lines().collect();
    let expected =
        ["/work", "box", "box", "1000", "1000", "box", "/home/box", "0022", "/work", "0"];
    assert_eq!(lines, expected);
    // The host's names, by any file of the box.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let script =
        "cat /proc/sys/kernel/hostname /etc/hostname /etc/hosts /etc/passwd 2>/dev/null; true";
    let seen = stand.sh("a", script);
    assert!(host.trim() == "box" || !seen.contains(host.trim()), "{seen}");
}

#[test]
fn a_run_without_a_boundary_gets_no_canary_either() {
    let stand = Stand::new();
    let said = with_canaries(&stand, &["run", "--tier", "workspace", "--", "env"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.text().contains("canary"), "{}", said.text());
    assert!(said.text().contains(PATH), "{}", said.text());
    assert!(said.err.contains("NO BOUNDARY"), "{}", said.err);
}
