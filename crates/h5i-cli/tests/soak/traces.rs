//! What a life could leave on the host: processes, mounts, half trees, a changed repository or home.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::stand::Stand;
use crate::support::git;

/// Processes that have this directory in their mounts or environment: h5i's own, the box's, and what
/// stands between them.
pub(crate) fn processes_of(directory: &Path) -> Vec<String> {
    let mark = directory.to_str().unwrap();
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.bytes().any(|b| !b.is_ascii_digit()) || name == own {
            continue;
        }
        let of = |file: &str| fs::read(path.join(file)).unwrap_or_default();
        let ours = ["mountinfo", "environ", "cmdline"]
            .iter()
            .any(|file| String::from_utf8_lossy(&of(file)).contains(mark));
        if ours {
            found.push(format!("{name} {}", String::from_utf8_lossy(&of("comm")).trim()));
        }
    }
    found
}

/// Waits for the end of every process of this directory. A box dies of its supervisor's death, which
/// no event tells to a bystander.
pub(crate) fn await_quiet(directory: &Path) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let left = processes_of(directory);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "processes survive: {left:?}");
        std::thread::yield_now();
    }
}

pub(crate) fn assert_no_mount(directory: &Path) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ours: Vec<&str> =
        mounts.lines().filter(|line| line.contains(directory.to_str().unwrap())).collect();
    assert!(ours.is_empty(), "{ours:?}");
}

/// What a person would look at on the host.
pub(crate) fn seen(stand: &Stand) -> (String, Vec<String>) {
    let mut names: Vec<String> = fs::read_dir(stand.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    (git(&stand.repo(), &["status", "--porcelain=v2", "--branch", "--ignored"]), names)
}
