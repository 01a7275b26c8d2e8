//! What each process of a box takes, as the host's `/proc` tells.

use std::io;

use crate::processes::told;
use crate::trees::Member;

/// A process and what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) member: Member,
    /// Bytes: its private memory, what it has mapped of shared memory, and what of its memory is
    /// swapped out. Pages of files are the kernel's to take back, and do not count.
    pub(crate) private: u64,
    pub(crate) shared: u64,
    pub(crate) swapped: u64,
}

impl Counted {
    /// All of it; pages that processes share count for each.
    pub(crate) fn all(&self) -> u64 {
        self.private.saturating_add(self.shared).saturating_add(self.swapped)
    }
}

/// Counts resident pages: quick, and too high where processes share memory.
pub(crate) fn at_most(member: Member) -> Option<Counted> {
    let text = told(format!("/proc/{}/status", member.pid)).ok()?;
    Some(Counted {
        member,
        private: field(&text, "RssAnon:"),
        shared: field(&text, "RssShmem:"),
        swapped: field(&text, "VmSwap:"),
    })
}

/// Counts each process's share of pages: exact in the sum, and dearer, because the kernel walks its
/// page tables.
pub(crate) fn exactly(counted: Counted) -> Counted {
    let path = format!("/proc/{}/smaps_rollup", counted.member.pid);
    let text = match told(path) {
        Ok(text) if text.contains("Pss_Anon:") => text,
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
            // One that has just ended takes nothing any more.
            return Counted { private: 0, shared: 0, swapped: 0, ..counted };
        }
        // An older kernel tells no parts, and what may not be read is taken for what it is at most.
        _ => return counted,
    };
    Counted {
        private: field(&text, "Pss_Anon:"),
        shared: field(&text, "Pss_Shmem:"),
        swapped: field(&text, "SwapPss:"),
        ..counted
    }
}

/// Bytes that the process has written to file systems with a disk below them, its children that it
/// has waited for included; see proc_pid_io(5).
pub(crate) fn written(pid: u32) -> u64 {
    let text = told(format!("/proc/{pid}/io")).unwrap_or_default();
    let number = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    number("write_bytes:").saturating_sub(number("cancelled_write_bytes:"))
}

/// A field in KiB, as bytes.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib: u64 =
        line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0);
    kib.saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_their_whole_name() {
        let text = "VmRSS:\t  900 kB\nRssAnon:\t     120 kB\nRssShmem:\t       4 kB\n";
        assert_eq!(field(text, "RssAnon:"), 120 * 1024);
        assert_eq!(field(text, "RssShmem:"), 4096);
        assert_eq!(field(text, "VmSwap:"), 0);
    }

    #[test]
    fn a_process_that_has_ended_takes_nothing() {
        // No process has a number beyond the kernel's largest.
        let member = Member { pid: 4_194_305, parent: 1, kept: None };
        let counted = Counted { member, private: 1, shared: 1, swapped: 1 };
        assert_eq!(exactly(counted).all(), 0);
    }

    #[test]
    fn this_process_is_counted_both_ways() {
        let member = Member { pid: std::process::id(), parent: 1, kept: None };
        let kept = vec![1u8; 32 << 20];
        let quick = at_most(member).unwrap();
        let exact = exactly(quick);
        assert!(quick.private >= 32 << 20, "{quick:?}");
        assert!(exact.private >= 32 << 20, "{exact:?}");
        assert_eq!(kept.iter().map(|b| usize::from(*b)).sum::<usize>(), 32 << 20);
    }
}
