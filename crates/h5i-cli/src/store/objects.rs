//! Leases on base objects, so that nobody collects what a box in the making needs.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Store, lock, make_private_dirs};
use crate::path_error::{Action, PathError};

/// The name of an object directory below `objects/`: a commit, and what else it depends on.
///
/// 40 hexadecimal digits, then nothing, `.borrow`, or `.` and 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectsKey(String);

/// A text is not the name of an object directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of an object directory")]
pub struct ObjectsKeyError;

impl ObjectsKey {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ObjectsKey {
    type Error = ObjectsKeyError;
    fn try_from(text: String) -> Result<Self, ObjectsKeyError> {
        let hex = |t: &str, n: usize| {
            t.len() == n && t.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
        };
        let (commit, rest) =
            text.split_once('.').map_or((text.as_str(), None), |(c, r)| (c, Some(r)));
        if hex(commit, 40) && rest.is_none_or(|r| r == "borrow" || hex(r, 16)) {
            Ok(Self(text))
        } else {
            Err(ObjectsKeyError)
        }
    }
}

impl From<ObjectsKey> for String {
    fn from(key: ObjectsKey) -> Self {
        key.0
    }
}

impl fmt::Display for ObjectsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A shared lock on `objects/`: while one is held, `gc` collects no object directory.
#[derive(Debug)]
pub struct ObjectsLease {
    // Held for its lifetime only.
    _file: File,
}

/// The file of base objects in the making that who makes them has locked.
pub(crate) const OBJECTS_OWNER: &str = "owner";

/// Makes and locks the file that says that base objects in the making have an owner. The lock goes
/// with the last copy of the descriptor.
///
/// # Errors
/// [`PathError`] if it can't be made or locked.
pub(crate) fn own_objects(dir: &Path) -> Result<File, PathError> {
    let path = dir.join(OBJECTS_OWNER);
    let file = lock::open(&path)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)
        .map_err(PathError::at(Action::Lock, &path))?;
    Ok(file)
}

/// Whether base objects in the making have an owner that lives.
pub(super) fn are_owned(dir: &Path) -> Result<bool, PathError> {
    let path = dir.join(OBJECTS_OWNER);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(PathError::at(Action::Open, &path)(e)),
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(e) => Err(PathError::at(Action::Lock, &path)(e)),
    }
}

impl Store {
    /// Takes a lease on the base objects, waiting for a collection that is under way.
    ///
    /// # Errors
    /// [`PathError`] if the directory or its lock can't be made.
    pub fn lease_objects(&self) -> Result<ObjectsLease, PathError> {
        make_private_dirs(&self.objects_dir())?;
        let path = self.objects_lock();
        let file = lock::open(&path)?;
        rustix::fs::flock(&file, FlockOperation::LockShared)
            .map_err(PathError::at(Action::Lock, &path))?;
        Ok(ObjectsLease { _file: file })
    }

    /// The exclusive lock, or `None` while anybody holds a lease or the directory is absent.
    pub(super) fn objects_to_collect(&self) -> Result<Option<ObjectsLease>, PathError> {
        let dir = self.objects_dir();
        if !dir.try_exists().map_err(PathError::at(Action::Inspect, &dir))? {
            return Ok(None);
        }
        let path = self.objects_lock();
        let file = lock::open(&path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(ObjectsLease { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(PathError::at(Action::Lock, &path)(e)),
        }
    }

    /// Where the object directory of that name stands.
    #[must_use]
    pub fn objects_path(&self, key: &ObjectsKey) -> PathBuf {
        self.objects_dir().join(key.as_str())
    }

    /// The object directories that stand for that name: its own, and those of the host that it
    /// borrows.
    ///
    /// # Errors
    /// [`PathError`] if its list of borrowed directories can't be read.
    pub fn object_dirs(&self, key: &ObjectsKey) -> Result<Vec<PathBuf>, PathError> {
        let own = self.objects_path(key).join("objects");
        let list = own.join("info/alternates");
        let borrowed = match fs::read(&list) {
            Ok(borrowed) => borrowed,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(PathError::at(Action::Read, &list)(e)),
        };
        let lines = borrowed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let borrowed = lines.map(|line| PathBuf::from(OsStr::from_bytes(line)));
        Ok(std::iter::once(own).chain(borrowed).collect())
    }

    fn objects_lock(&self) -> PathBuf {
        self.objects_dir().join(".lock")
    }
}
