//! Files without a name that processes of a box hold open: memory files, and files that were removed
//! and still take room.

use std::collections::BTreeSet;

use rustix::fs::{
    AtFlags, Dir, FileType, MemfdFlags, Mode, OFlags, fstat, memfd_create, open, statat,
};

use crate::trees::Member;

/// Descriptors that one look goes through. What stands beyond them is met by later looks, which begin
/// with the processes after.
const MOST: usize = 8192;

/// What such files take, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unnamed {
    /// Memory files (`memfd_create(2)`).
    pub(crate) memory: u64,
    /// Files on disk that no directory has any more.
    pub(crate) disk: u64,
}

/// Looks for them.
#[derive(Debug, Default)]
pub(crate) struct UnnamedFiles {
    /// The device of memory files, once it was asked for.
    memory: Option<u64>,
    /// Devices of the box's own memory file systems, which are counted as a whole.
    counted: BTreeSet<u64>,
    /// The process to begin with.
    from: u32,
}

impl UnnamedFiles {
    pub(crate) fn new(counted: BTreeSet<u64>) -> Self {
        Self { memory: None, counted, from: 0 }
    }

    /// What the files take that these processes hold; each file counts once.
    pub(crate) fn look(&mut self, members: &[Member]) -> Unnamed {
        if self.memory.is_none() {
            let probe = memfd_create("h5i-device", MemfdFlags::CLOEXEC);
            self.memory = probe.and_then(fstat).map(|found| found.st_dev).ok();
        }
        let mut sum = Unnamed::default();
        let mut seen = BTreeSet::new();
        let mut left = MOST;
        let first = members.iter().position(|m| m.pid >= self.from).unwrap_or(0);
        let (before, after) = members.split_at(first);
        self.from = 0;
        for member in after.iter().chain(before) {
            if left == 0 {
                self.from = member.pid;
                break;
            }
            // One that has just ended holds nothing any more.
            self.of_process(member.pid, &mut left, &mut seen, &mut sum).ok();
        }
        sum
    }

    fn of_process(
        &self,
        pid: u32,
        left: &mut usize,
        seen: &mut BTreeSet<(u64, u64)>,
        sum: &mut Unnamed,
    ) -> rustix::io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = open(format!("/proc/{pid}/fd"), flags, Mode::empty())?;
        for entry in Dir::read_from(&held)?.flatten() {
            if *left == 0 {
                break;
            }
            *left -= 1;
            let Ok(found) = statat(&held, entry.file_name(), AtFlags::empty()) else { continue };
            let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
            if !is_file || found.st_nlink != 0 || self.counted.contains(&found.st_dev) {
                continue;
            }
            if seen.insert((found.st_dev, found.st_ino)) {
                let bytes = u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(512);
                let place = match self.memory {
                    Some(device) if device == found.st_dev => &mut sum.memory,
                    _ => &mut sum.disk,
                };
                *place = place.saturating_add(bytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn memory_files_and_removed_files_of_a_process_are_found() {
        let me = [Member { pid: std::process::id(), parent: 1, kept: None }];
        let mut unnamed = UnnamedFiles::new(BTreeSet::new());
        let before = unnamed.look(&me);
        let memory = memfd_create("large", MemfdFlags::CLOEXEC).unwrap();
        let again = memory.try_clone().unwrap();
        std::fs::File::from(memory.try_clone().unwrap()).write_all(&vec![1; 3 << 20]).unwrap();
        let mut removed = tempfile::tempfile().unwrap();
        removed.write_all(&vec![1; 1 << 20]).unwrap();
        removed.sync_all().unwrap();
        let after = unnamed.look(&me);
        assert!(after.memory - before.memory >= 3 << 20, "{before:?} {after:?}");
        assert!(after.memory - before.memory < 4 << 20, "counted once: {before:?} {after:?}");
        assert!(after.disk - before.disk >= 1 << 20, "{before:?} {after:?}");
        drop((again, memory));
        let closed = unnamed.look(&me);
        assert!(closed.memory < after.memory, "{after:?} {closed:?}");
    }
}
