//! Directories of the host that take what a box proposes, each as long as its owner lives.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempDir;

/// What the name of every quarantine begins with.
pub const QUARANTINE: &str = "quarantine-";

/// A directory that goes with the value. Its owner holds an exclusive `flock(2)` on it, which ends
/// with the process whatever ends that: what nobody has locked is left over.
#[derive(Debug)]
pub(crate) struct Quarantine {
    // Removed before the lock is let go.
    dir: TempDir,
    _owner: File,
}

impl Quarantine {
    /// Makes one in `scratch`, a directory of the host.
    pub(crate) fn new(scratch: &Path) -> io::Result<Self> {
        loop {
            let dir = tempfile::Builder::new().prefix(QUARANTINE).tempdir_in(scratch)?;
            let owner = match open(dir.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                owner => owner?,
            };
            rustix::fs::flock(&owner, FlockOperation::LockExclusive)?;
            // Until it was locked it looked like one that is left over.
            if is_at(&owner, dir.path())? {
                return Ok(Self { dir, _owner: owner });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the quarantines in `scratch` that were left by processes that were killed, and names
/// them. One that is in use stays. A `scratch` that is not there has none.
///
/// `scratch` must be a directory that only this crate's users write to: what has the name of a
/// quarantine is taken for one.
///
/// # Errors
/// The first directory that can't be listed, opened, locked or removed.
pub fn collect_quarantines(scratch: &Path) -> io::Result<Vec<PathBuf>> {
    let mut collected = Vec::new();
    let entries = match fs::read_dir(scratch) {
        Err(error) if is_passing(&error) => return Ok(collected),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let is_quarantine = entry.file_name().to_str().is_some_and(|n| n.starts_with(QUARANTINE));
        if !is_quarantine {
            continue;
        }
        let path = entry.path();
        let owner = match open(&path) {
            Err(error) if is_passing(&error) => continue,
            owner => owner?,
        };
        match rustix::fs::flock(&owner, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => continue,
            locked => locked?,
        }
        // Its owner, or another collection, was faster.
        if is_at(&owner, &path)? {
            fs::remove_dir_all(&path)?;
            collected.push(path);
        }
    }
    collected.sort();
    Ok(collected)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Whether what is looked for is gone, or is no directory.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether an open directory still stands at its path.
fn is_at(directory: &File, path: &Path) -> io::Result<bool> {
    let own = directory.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Quarantine, collect_quarantines};

    #[test]
    fn what_nobody_has_locked_is_collected_and_what_is_in_use_stays() {
        let scratch = tempfile::tempdir().expect("a directory");
        let living = Quarantine::new(scratch.path()).expect("makes one");
        let dead = scratch.path().join("quarantine-dead");
        fs::create_dir_all(dead.join("objects/00")).expect("makes");
        fs::write(dead.join("objects/00/x"), "x").expect("writes");
        for other in ["other", "quarantine"] {
            fs::create_dir(scratch.path().join(other)).expect("makes");
        }
        fs::write(scratch.path().join("quarantine-file"), "x").expect("writes");
        let collected = collect_quarantines(scratch.path()).expect("collects");
        assert_eq!(collected, [dead]);
        assert!(living.path().is_dir());
        drop(living);
        assert_eq!(collect_quarantines(scratch.path()).expect("collects").len(), 0);
        assert_eq!(fs::read_dir(scratch.path()).expect("lists").count(), 3);
        assert!(collect_quarantines(&scratch.path().join("absent")).expect("none").is_empty());
    }

    #[test]
    fn makers_and_collections_side_by_side_never_meet() {
        let scratch = tempfile::tempdir().expect("a directory");
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..300 {
                            let made = Quarantine::new(scratch.path()).expect("makes one");
                            let file = made.path().join("x");
                            fs::write(&file, "x").expect("writes");
                            assert!(file.is_file());
                        }
                    })
                })
                .collect();
            while !makers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                // What an owner removes meanwhile may be gone between two looks.
                collect_quarantines(scratch.path()).ok();
            }
        });
        assert!(collect_quarantines(scratch.path()).expect("collects").is_empty());
    }
}
