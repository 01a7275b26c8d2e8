//! Who holds a box.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::path_error::{Action, PathError};

/// The exclusive lock of one box. Dropping it, or the end of the process, releases it.
///
/// It is a `flock(2)`, so only processes of this host see it; descriptors are close-on-exec, so no
/// child inherits it by accident.
#[derive(Debug)]
pub struct BoxLock {
    // Held for its lifetime only.
    _file: File,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process holds it.
    #[error("the box is in use by another process")]
    Busy,
    /// The lock file can't be opened or locked.
    #[error(transparent)]
    Io(#[from] PathError),
}

impl BoxLock {
    /// Takes the lock at `path` without waiting; makes the file where it is missing.
    pub(crate) fn take(path: &Path) -> Result<Self, LockError> {
        let file = open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(Errno::WOULDBLOCK) => Err(LockError::Busy),
            Err(e) => Err(PathError::at(Action::Lock, path)(e).into()),
        }
    }
}

/// Opens the lock file at `path`, making it where it is missing.
pub(crate) fn open(path: &Path) -> Result<File, PathError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc_nofollow())
        .open(path)
        .map_err(PathError::at(Action::Open, path))
}

fn libc_nofollow() -> i32 {
    // O_NOFOLLOW fits into the C int that open(2) takes.
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}
