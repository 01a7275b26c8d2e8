//! Measures the memory of a box against its budget.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{fstat, fstatvfs};

use crate::census::{self, Counted};
use crate::cgroup::Cgroup;
use crate::system_v::Kind;
use crate::trees::Member;
use crate::unnamed::UnnamedFiles;

/// How fast a box may be thought to take memory: what is free is looked at again before it could be
/// gone. Touching new pages goes at 1 to 2 GiB a second and processor.
const FASTEST: u64 = 4 << 30;
/// Never looked at sooner nor later than that.
const SOONEST: Duration = Duration::from_millis(10);
const LATEST: Duration = Duration::from_secs(2);
/// As late as this, however much is free, unless looks take long.
const USUAL: Duration = Duration::from_millis(500);
/// Looks take at most this part of a processor while they may, and twice a second they may always.
const SHARE: u32 = 100;
/// What an inode of a memory file system takes of the kernel's memory.
const INODE: u64 = 1024;

/// One measurement.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Bytes of all processes and memory files.
    pub(crate) used: u64,
    /// What each process has of it; pages that several share may count for each.
    pub(crate) each: Vec<Counted>,
}

/// By what memory of a box is seen that need not be mapped by a process.
#[derive(Debug, Default)]
pub(crate) struct MemoryFiles {
    /// The box's memory file systems.
    pub(crate) scratch: Vec<OwnedFd>,
    /// The lists of what it keeps of System V.
    pub(crate) system_v: Vec<(Kind, OwnedFd)>,
}

/// The memory of a box.
#[derive(Debug)]
pub(crate) struct MemoryMeter {
    pub(crate) allowed: u64,
    cgroup: Option<Cgroup>,
    files: MemoryFiles,
    unnamed: UnnamedFiles,
    /// When to look again.
    pub(crate) next: Instant,
}

impl MemoryMeter {
    pub(crate) fn new(allowed: u64, files: MemoryFiles, cgroup: Option<Cgroup>) -> Self {
        let scratch = files.scratch.iter();
        let devices: BTreeSet<u64> =
            scratch.filter_map(|fd| fstat(fd).ok()).map(|found| found.st_dev).collect();
        let unnamed = UnnamedFiles::new(devices);
        // A box that begins has nothing yet.
        let next = Instant::now() + interval(allowed, Duration::ZERO);
        Self { allowed, cgroup, files, unnamed, next }
    }

    /// Measures, and says when to do so again.
    pub(crate) fn look(&mut self, members: &[Member]) -> Taken {
        let begun = Instant::now();
        let taken = self.measure(members);
        let free = self.allowed.saturating_sub(taken.used);
        self.next = Instant::now() + interval(free, begun.elapsed());
        taken
    }

    fn measure(&mut self, members: &[Member]) -> Taken {
        let counted = || members.iter().filter_map(|member| census::at_most(*member)).collect();
        if let Some(used) = self.cgroup.as_ref().and_then(Cgroup::used) {
            // Who has it is asked only when it matters.
            let each = if used > self.allowed { counted() } else { Vec::new() };
            return Taken { used, each };
        }
        let mut each: Vec<Counted> = counted();
        let files = self.files.scratch.iter().map(used_of).fold(0, u64::saturating_add);
        let system_v = self.files.system_v.iter().map(|(kind, list)| kind.used(list));
        let files = system_v.fold(files, u64::saturating_add);
        let files = files.saturating_add(self.unnamed.look(members).memory);
        let sum = |each: &[Counted]| each.iter().map(Counted::all).fold(files, u64::saturating_add);
        let used = sum(&each);
        if used <= self.allowed {
            return Taken { used, each };
        }
        let mut exact = || {
            each.iter_mut().for_each(|process| *process = census::exactly(*process));
            // What is mapped of a memory file is one of its pages.
            let total = |of: fn(&Counted) -> u64| each.iter().map(of).fold(0, u64::saturating_add);
            let own = total(|process| process.private.saturating_add(process.swapped));
            own.saturating_add(files.max(total(|process| process.shared)))
        };
        // While processes end, those that are left have larger shares of the same pages than those
        // had that were asked before.
        let used = match exact() {
            used if used > self.allowed => used.min(exact()),
            used => used,
        };
        Taken { used, each }
    }

    /// Whether the kernel has killed for the budget since this was asked last.
    pub(crate) fn kernel_killed(&mut self) -> bool {
        self.cgroup.as_mut().is_some_and(|cgroup| cgroup.new_kills() > 0)
    }
}

/// Bytes that a memory file system takes, its inodes with them.
pub(crate) fn used_of(scratch: &OwnedFd) -> u64 {
    let Ok(found) = fstatvfs(scratch) else { return 0 };
    let blocks = found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize);
    blocks.saturating_add(found.f_files.saturating_sub(found.f_ffree).saturating_mul(INODE))
}

/// How long a box with so many free bytes is left alone after a look that took so long.
fn interval(free: u64, took: Duration) -> Duration {
    let until_gone = Duration::from_micros(free / (FASTEST / 1_000_000));
    let dear = (took * SHARE).min(until_gone.max(USUAL));
    until_gone.min(USUAL).max(dear).clamp(SOONEST, LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_is_free_the_sooner_is_the_next_look() {
        let quick = Duration::from_micros(50);
        assert_eq!(interval(0, quick), SOONEST);
        assert_eq!(interval(64 << 20, quick).as_millis(), 15);
        assert_eq!(interval(1 << 30, quick).as_millis(), 250);
        assert_eq!(interval(u64::MAX, quick), USUAL);
    }

    #[test]
    fn a_look_takes_a_hundredth_of_a_processor() {
        let of = |free, took| interval(free, Duration::from_millis(took)).as_millis();
        assert_eq!(of(0, 1), 100);
        // With little left it takes more, rather than to wait longer.
        assert_eq!((of(0, 8), of(64 << 20, 8)), (500, 500));
        assert_eq!((of(8 << 30, 8), of(8 << 30, 100)), (800, 2000));
    }
}
