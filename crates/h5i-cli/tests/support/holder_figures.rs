//! What the process that holds a session takes.

use std::fs;
use std::time::{Duration, Instant};

/// Descriptors, threads and memory of its own (KiB, without what files have) of a process once the threads of conversations that are
/// over have ended and no more than so many descriptors are open: those of processes that have just
/// ended are closed when that is heard. The thread that brings the log to the disk comes after a
/// second and is not counted, nor is the network's.
pub(crate) fn settled(pid: u32, descriptors: u64) -> [u64; 3] {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let found = figures(pid);
        if found[1] <= 4 && found[0] <= descriptors {
            return found;
        }
        assert!(Instant::now() < patience, "what does not end: {found:?}");
        std::thread::yield_now();
    }
}

fn figures(pid: u32) -> [u64; 3] {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let memory = memory.trim().trim_end_matches(" kB").parse().unwrap();
    let entries = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).unwrap();
    let threads = entries("task").filter(|task| {
        let name = fs::read_to_string(task.as_ref().unwrap().path().join("comm"));
        name.is_ok_and(|name| !["h5i-log\n", "h5i-net\n"].contains(&name.as_str()))
    });
    [entries("fd").count() as u64, threads.count() as u64, memory]
}
