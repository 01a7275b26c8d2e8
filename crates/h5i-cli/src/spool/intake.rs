//! Takes in what a box puts into its spool, while it lives and when a run of it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use h5i_export::SpoolFault;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, chmod, fchmod, fstat, open, statat};

use super::allowance::Allowance;
use super::claim::Claim;
use super::entry;

/// Entries that are looked at when a run has ended; what a flood leaves beyond them waits for the
/// next end, or for the box's.
const SWEPT: usize = 10_000;
/// Names of entries that could not be removed, so that they are told once.
const REMEMBERED: usize = 1024;
/// Entries that are looked at once while a session lives.
const LOOKED: usize = 128;
/// How coarse the kernel's clock of files is at most, with some to spare.
const COARSE: Duration = Duration::from_millis(50);
/// How long its writer may take to write an entry.
const UNFINISHED: Duration = Duration::from_secs(1);

/// Whether an entry may be unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// Its writer may be at it.
    Some,
    /// Nobody is.
    None,
}

/// Whether a time of a file is so long ago.
fn is_older(written: (i64, u64), than: Duration) -> bool {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, nanos) = written;
    let at = u64::try_from(seconds)
        .map(|seconds| Duration::new(seconds, u32::try_from(nanos).unwrap_or(0)));
    at.map_or(true, |at| since.saturating_sub(at) > than)
}

/// A box's spool while a session lives.
///
/// Whatever the box puts there costs a bounded amount of work and of the log: see `allowance`.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: OwnedFd,
    /// When it was changed, as it was looked at last; `None` when that was so short before that it
    /// may have changed again within a tick of the kernel's clock of files.
    looked: Option<(i64, u64)>,
    allowance: Allowance,
    faults: BTreeMap<SpoolFault, Count>,
    left: BTreeSet<OsString>,
}

#[derive(Debug, Default)]
struct Count {
    found: u64,
    told: u64,
}

/// Something that was taken in, or was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A claim of the box.
    Claim(Claim),
    /// What is not taken in, and how often since it was last told.
    Refused(SpoolFault, u64),
}

impl Spool {
    /// Opens a spool.
    ///
    /// # Errors
    /// When it is not there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match open(path, flags, Mode::empty()) {
            // The box owns it, and may have closed it.
            Err(rustix::io::Errno::ACCESS) => {
                chmod(path, Mode::RWXU)?;
                open(path, flags, Mode::empty())?
            }
            opened => opened?,
        };
        let (allowance, faults, left) =
            (Allowance::new(Instant::now()), BTreeMap::new(), BTreeSet::new());
        Ok(Self { directory, looked: None, allowance, faults, left })
    }

    /// Takes in some of what has come since it was looked at last. It does not wait.
    ///
    /// Of an entry that makes no sense its writer may be in the middle: it is left for a while.
    pub(crate) fn take_in(&mut self) -> Vec<Found> {
        let Ok(found) = fstat(&self.directory) else { return Vec::new() };
        let changed = entry::time_of(&found);
        if self.looked == Some(changed) {
            return Vec::new();
        }
        self.looked = is_older(changed, COARSE).then_some(changed);
        self.unlock();
        self.take_names(LOOKED, Patience::Some)
    }

    /// Takes in whatever lies there, and tells what was not told yet.
    pub(crate) fn sweep(&mut self) -> Vec<Found> {
        self.unlock();
        let mut found = self.take_names(SWEPT, Patience::None);
        for (fault, count) in &mut self.faults {
            if count.found > count.told {
                found.push(Found::Refused(*fault, count.found - count.told));
                count.told = count.found;
            }
        }
        found
    }

    /// The box owns the directory, and may have closed it.
    fn unlock(&self) {
        // What can't be opened then is told.
        fchmod(&self.directory, Mode::RWXU).ok();
    }

    /// Whether everything was taken in so far.
    pub(crate) fn is_complete(&self) -> bool {
        self.faults.is_empty()
    }

    /// Takes in entries in the order in which they were written.
    fn take_names(&mut self, most: usize, patience: Patience) -> Vec<Found> {
        // Nothing is read twice: what was told of before is gone from the directory.
        let Ok(entries) = Dir::read_from(&self.directory) else { return Vec::new() };
        let mut names: Vec<((i64, u64), OsString)> = entries
            .filter_map(Result::ok)
            .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
            .filter(|name| name != "." && name != "..")
            .take(most)
            .map(|name| {
                let found = statat(&self.directory, &name, AtFlags::SYMLINK_NOFOLLOW);
                (found.map(|found| entry::time_of(&found)).unwrap_or_default(), name)
            })
            .collect();
        names.sort();
        names.iter().filter_map(|(_, name)| self.take(name, patience)).collect()
    }

    fn take(&mut self, name: &OsStr, patience: Patience) -> Option<Found> {
        if self.left.contains(name) {
            return None;
        }
        let taken = if self.allowance.entry(Instant::now()) {
            match entry::read(&self.directory, name) {
                Ok(None) => return None,
                Ok(Some(content)) => match Claim::parse(&content.bytes) {
                    None if patience == Patience::Some
                        && !is_older(content.written, UNFINISHED) =>
                    {
                        // Writing on does not change the directory.
                        self.looked = None;
                        return None;
                    }
                    claim => {
                        self.allowance.read(content.bytes.len());
                        claim.ok_or(SpoolFault::Malformed)
                    }
                },
                Err(fault) => Err(fault),
            }
        } else {
            Err(SpoolFault::TooMany)
        };
        if !entry::remove(&self.directory, name) && self.left.len() < REMEMBERED {
            self.left.insert(name.to_owned());
        }
        match taken {
            Ok(claim) => Some(Found::Claim(claim)),
            Err(fault) => {
                let count = self.faults.entry(fault).or_default();
                count.found += 1;
                if count.told > 0 {
                    return None;
                }
                count.told = 1;
                Some(Found::Refused(fault, 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn note(text: &str) -> Vec<u8> {
        Claim::note(text.as_bytes())
    }

    fn ground() -> (tempfile::TempDir, Spool) {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::open(dir.path()).unwrap();
        (dir, spool)
    }

    #[test]
    fn what_is_written_is_told_of_taken_in_and_gone() {
        let (dir, mut spool) = ground();
        assert_eq!(spool.take_in(), []);
        fs::write(dir.path().join("a"), note("one")).unwrap();
        fs::write(dir.path().join(".b"), note("two")).unwrap();
        fs::rename(dir.path().join(".b"), dir.path().join("b")).unwrap();
        let notes = |found: Vec<Found>| -> Vec<Vec<u8>> {
            let text = |found| match found {
                Found::Claim(Claim::Note(text)) => text,
                other => panic!("{other:?}"),
            };
            found.into_iter().map(text).collect()
        };
        assert_eq!(notes(spool.take_in()), [b"one", b"two"]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // What is being written is left until it is whole, or nobody is there to write on.
        let writer = fs::File::create(dir.path().join("c")).unwrap();
        let whole = note("three");
        std::io::Write::write_all(&mut &writer, &whole[..4]).unwrap();
        // Just written, however long this takes.
        let soon = SystemTime::now() + Duration::from_secs(3600);
        writer.set_modified(soon).unwrap();
        assert_eq!(spool.take_in(), []);
        std::io::Write::write_all(&mut &writer, &whole[4..]).unwrap();
        assert_eq!(notes(spool.take_in()), [b"three"]);
        fs::write(dir.path().join("d"), &whole[..4]).unwrap();
        let unfinished = fs::File::options().write(true).open(dir.path().join("d")).unwrap();
        unfinished.set_modified(soon).unwrap();
        assert_eq!(spool.take_in(), []);
        assert_eq!(spool.sweep(), [Found::Refused(SpoolFault::Malformed, 1)]);
        let (_dir, mut spool) = ground();
        assert!(spool.is_complete() && spool.sweep().is_empty());
    }

    #[test]
    fn what_is_no_small_file_is_told_once_and_nothing_waits() {
        let (dir, mut spool) = ground();
        let at = |name: &str| dir.path().join(name);
        let secret = tempfile::NamedTempFile::new().unwrap();
        fs::write(secret.path(), note("of the host")).unwrap();
        symlink(secret.path(), at("link")).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), mode).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::create_dir_all(at("full/x")).unwrap();
        fs::write(at("large"), vec![b'x'; entry::LARGEST + 1]).unwrap();
        fs::File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        fs::write(at("nonsense"), "{\"lane\":\"host\"}").unwrap();
        fs::write(at("note"), note("fine")).unwrap();
        let mut found = spool.sweep();
        found.sort_by_key(|found| format!("{found:?}"));
        let refused = |fault, count| Found::Refused(fault, count);
        assert_eq!(
            found,
            [
                Found::Claim(Claim::Note(b"fine".to_vec())),
                refused(SpoolFault::Link, 1),
                refused(SpoolFault::Malformed, 1),
                refused(SpoolFault::NotFile, 1),
                // Those after the first.
                refused(SpoolFault::NotFile, 3),
                refused(SpoolFault::TooLarge, 1),
                refused(SpoolFault::TooLarge, 1),
            ]
        );
        let left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["full"]);
        assert!(spool.sweep().is_empty(), "told once");
        assert_eq!(fs::read(secret.path()).unwrap(), note("of the host"));
    }

    #[test]
    fn a_flood_is_two_lines() {
        let (dir, mut spool) = ground();
        for number in 0..5000 {
            fs::write(dir.path().join(number.to_string()), note("x")).unwrap();
        }
        let found: Vec<Found> = spool.sweep();
        let claims = found.iter().filter(|found| matches!(found, Found::Claim(_))).count();
        assert!((256..1000).contains(&claims), "{claims}");
        assert_eq!(found.len() - claims, 2, "the first one and the number of the others");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_the_box_closed_is_opened() {
        let (dir, mut spool) = ground();
        fs::write(dir.path().join("a"), note("one")).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(spool.sweep(), [Found::Claim(Claim::Note(b"one".to_vec()))]);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o000)).unwrap();
        drop(spool);
        Spool::open(dir.path()).unwrap();
    }
}
