//! What the host's file systems keep free of whatever a box writes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{fstat, fstatvfs};

use crate::disk_count;
use crate::disk_meter::{FASTEST, LATEST, SOONEST, TO_TIDY};

/// Watches the free space of the file systems that a box writes to.
///
/// Who else writes there counts as well: what is kept is the host's, whoever takes the rest.
#[derive(Debug)]
pub(crate) struct FreeFloor {
    kept: u64,
    systems: Vec<System>,
    pub(crate) next: Instant,
}

#[derive(Debug)]
struct System {
    /// A directory on it.
    at: OwnedFd,
    /// With less free than that something is done. Where less than what is to be kept was free
    /// when the session began, it may go on to tidy up.
    bound: u64,
    /// What was free when the session began.
    began: u64,
}

/// A file system has less free than it is to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) free: u64,
    pub(crate) kept: u64,
    /// What it has lost since the session began.
    lost: u64,
}

impl Short {
    /// Whether a box that has added so much has a part in it: a sixteenth of what was lost, and not
    /// next to nothing.
    pub(crate) fn is_of(&self, grown: u64) -> bool {
        grown >= TO_TIDY.max(self.lost / 16)
    }
}

impl FreeFloor {
    /// For a box that writes to these directories.
    pub(crate) fn new(kept: u64, roots: &[PathBuf]) -> io::Result<Self> {
        let mut systems = BTreeMap::new();
        for fd in disk_count::roots(roots)? {
            systems.entry(fstat(&fd)?.st_dev).or_insert(fd);
        }
        let mut floor = Self { kept, systems: Vec::new(), next: Instant::now() };
        for at in systems.into_values() {
            let began = free(&at);
            floor.systems.push(System { at, bound: bound(kept, began), began });
        }
        Ok(floor)
    }

    /// Looks; yields where less is free than may be. Then the bound is a little below what is left,
    /// so that it is told once, until there is room again.
    pub(crate) fn look(&mut self) -> Option<Short> {
        let (mut spent, mut room) = (None, u64::MAX);
        for system in &mut self.systems {
            let free = free(&system.at);
            if free < system.bound {
                let lost = system.began.saturating_sub(free);
                spent = Some(Short { free, kept: self.kept, lost });
                system.bound = bound(self.kept, free);
            } else if free >= self.kept {
                system.bound = self.kept;
            }
            room = room.min(free.saturating_sub(system.bound));
        }
        let pause = Duration::from_micros(room / (FASTEST / 1_000_000));
        self.next = Instant::now() + pause.clamp(SOONEST, LATEST);
        spent
    }
}

/// Where less than what is to be kept is free already, a little may be taken all the same: to tidy
/// up with, and because others write as well.
fn bound(kept: u64, free: u64) -> u64 {
    if free < kept { free.saturating_sub(TO_TIDY.max(free / 16)) } else { kept }
}

/// Bytes that an ordinary user may still take (`f_bavail`).
fn free(at: &OwnedFd) -> u64 {
    // A file system that does not tell has no floor.
    fstatvfs(at).map_or(u64::MAX, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_kept_or_was_not_there_any_more_is_the_bound() {
        assert_eq!(bound(10 << 30, 100 << 30), 10 << 30);
        assert_eq!(bound(16 << 30, 16 << 30), 16 << 30);
        assert_eq!(bound(17 << 30, 16 << 30), 15 << 30);
        assert_eq!(bound(10 << 30, 2 << 20), 1 << 20);
        assert_eq!(bound(10 << 30, 0), 0);
    }

    #[test]
    fn who_took_next_to_nothing_of_what_was_lost_has_no_part_in_it() {
        let short = |lost| Short { free: 0, kept: 1, lost };
        assert!(short(0).is_of(TO_TIDY) && !short(0).is_of(TO_TIDY - 1));
        assert!(short(16 << 30).is_of(1 << 30) && !short(16 << 30).is_of((1 << 30) - 1));
    }

    #[test]
    fn a_file_system_with_room_is_no_reason_and_one_without_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let roots = [dir.path().to_owned()];
        let mut floor = FreeFloor::new(1 << 20, &roots).unwrap();
        let before = Instant::now();
        assert_eq!(floor.look(), None);
        assert!(floor.next > before);
        floor.systems[0].bound = u64::MAX - 1;
        let short = floor.look().unwrap();
        assert!(short.free > 1 << 20);
        assert_eq!(short.kept, 1 << 20);
        assert_eq!(floor.look(), None, "the bound is what is to be kept again");
        floor.systems[0].bound = 0;
        assert_eq!(floor.look(), None);
        assert_eq!(floor.systems[0].bound, 1 << 20, "with room it is what is to be kept again");
    }
}
