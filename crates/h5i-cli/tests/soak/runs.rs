//! One session for thousands of runs: nothing grows in the process that holds it.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::stand::Stand;

/// Descriptors, threads and memory (KiB) of a process.
fn figures(pid: u32) -> [u64; 3] {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    [fds as u64, field("Threads:"), field("VmRSS:")]
}

/// The figures once the threads of conversations that are over have ended.
fn settled(pid: u32) -> [u64; 3] {
    loop {
        let found = figures(pid);
        if found[1] <= 4 {
            return found;
        }
        std::thread::yield_now();
    }
}

/// Yields what the holder had after the first runs and at the end.
pub(crate) fn one_session(runs: u64) -> [[u64; 3]; 2] {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let mut holder = stand.command();
    holder.args(["box", "run", "a", "--", "sh", "-c", "echo here; cat; exit 7"]);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(holder.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    let run = |number: u64| {
        let script = format!("echo {number}; exit {}", number % 100);
        let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", &script]);
        assert_eq!((said.code, said.text()), ((number % 100) as i32, &*format!("{number}\n")));
    };
    (0..50).for_each(run);
    let before = settled(holder.id());
    (50..runs).for_each(run);
    let after = settled(holder.id());
    assert_eq!(before[..2], after[..2]);
    assert!(after[2] <= before[2] + 1024, "memory grew: {before:?} {after:?}");
    drop(holder.stdin.take());
    assert_eq!(holder.wait().unwrap().code(), Some(7));
    [before, after]
}
