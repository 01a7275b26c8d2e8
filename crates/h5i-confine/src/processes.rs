//! What the host's `/proc` tells of the box's processes.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

/// Who made a system call. Empty where the process was gone before it could be asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// Process id in the box's innermost pid namespace.
    pub(crate) pid: u32,
    /// Path of the executable.
    pub(crate) program: Vec<u8>,
}

/// A file of `/proc` as text. A process's name is its own choice of bytes, and no way to be
/// overlooked: what is no UTF-8 is replaced.
pub(crate) fn told(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Asks for a thread by its id in this process's pid namespace.
pub(crate) fn identify(thread: u32) -> Caller {
    let program = fs::read_link(format!("/proc/{thread}/exe"))
        .map(|path| path.into_os_string().into_vec())
        .unwrap_or_default();
    Caller { pid: inside(thread).unwrap_or(0), program }
}

/// The id of a thread's process in its innermost pid namespace.
pub(crate) fn inside(thread: u32) -> Option<u32> {
    let status = told(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NStgid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// Processor time of the stage and everything below it, reaped processes included. `None` when
/// `/proc` does not tell.
pub(crate) fn processor_time(stage: &OwnedFd) -> Option<Duration> {
    let info = told(format!("/proc/self/fdinfo/{}", stage.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let mut sum = 0u64;
    let mut waiting = vec![pid];
    while let Some(pid) = waiting.pop() {
        sum = sum.saturating_add(ticks_of(pid).unwrap_or(0));
        waiting.extend(children(pid));
    }
    Some(Duration::from_millis(sum.saturating_mul(1000) / ticks))
}

/// User and kernel time of a process and of the children it has reaped; see proc_pid_stat(5).
pub(crate) fn ticks_of(pid: u32) -> Option<u64> {
    let stat = told(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, so fields count from its end.
    let after = &stat[stat.rfind(')')? + 1..];
    Some(
        after
            .split_ascii_whitespace()
            .skip(11)
            .take(4)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum(),
    )
}

/// Children of every thread (`CONFIG_PROC_CHILDREN`, on in every distribution's kernel).
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    threads
        .filter_map(|thread| told(thread.ok()?.path().join("children")).ok())
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census;
    use crate::trees::Member;

    #[test]
    fn a_name_that_is_no_text_hides_nobody() {
        let of_named = |name: &std::ffi::CStr| {
            rustix::thread::set_name(name).unwrap();
            let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            let member = Member { pid: thread, parent: 0, kept: None };
            let counted = census::at_most(member).map_or(0, |counted| counted.all());
            (inside(thread), ticks_of(thread).is_some(), counted > 0)
        };
        let all = std::thread::spawn(move || [c"text", c"\xff\xfe", c")\xff ("].map(of_named));
        for seen in all.join().unwrap() {
            assert_eq!(seen, (Some(std::process::id()), true, true));
        }
    }
}
