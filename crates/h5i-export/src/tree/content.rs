//! The content of one file, read once and hashed as read.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use git2::{ObjectType, Oid};

use super::TreeError;
use super::walk::{Walk, failed};
use crate::store::{Store, StoreError};

/// The largest file that is read into memory at once; larger ones go through the quarantine.
const IN_MEMORY: u64 = 8 << 20;

/// An opened regular file, with what `fstat` said of the descriptor.
#[derive(Debug)]
pub(crate) struct Regular {
    file: File,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) inode: (u64, u64),
    changed: (i64, i64),
}

/// A file's content as it was read.
#[derive(Debug)]
pub(crate) enum Content {
    /// The bytes; not in the quarantine yet.
    Bytes(Vec<u8>),
    /// It was large and is in the quarantine.
    Stored(Oid),
    /// It grew, shrank or was written to while it was read.
    Unsteady,
}

impl Regular {
    /// Takes an opened descriptor; `None` when it is no regular file.
    pub(crate) fn new(opened: OwnedFd, path: &[u8]) -> Result<Option<Self>, TreeError> {
        let file = File::from(opened);
        let stat = file.metadata().map_err(failed("stat", path))?;
        if !stat.is_file() {
            return Ok(None);
        }
        Ok(Some(Self {
            size: stat.size(),
            mode: stat.mode(),
            links: stat.nlink(),
            inode: (stat.dev(), stat.ino()),
            changed: (stat.mtime(), stat.mtime_nsec()),
            file,
        }))
    }

    /// Whether size and time of change are still what they were.
    fn is_steady(&self, path: &[u8]) -> Result<bool, TreeError> {
        let stat = self.file.metadata().map_err(failed("stat", path))?;
        Ok(stat.size() == self.size && (stat.mtime(), stat.mtime_nsec()) == self.changed)
    }
}

/// Reads `regular` to the size that it had when it was opened, and not a byte further.
pub(crate) fn read_content(
    mut regular: Regular,
    path: &[u8],
    store: &Store,
    walk: &Walk,
) -> Result<Content, TreeError> {
    if regular.size <= IN_MEMORY {
        let mut bytes = Vec::with_capacity(usize::try_from(regular.size).unwrap_or(0));
        // One byte more than expected shows that the file grew.
        let mut bounded = (&mut regular.file).take(regular.size + 1);
        bounded.read_to_end(&mut bytes).map_err(failed("read", path))?;
        let steady = bytes.len() as u64 == regular.size && regular.is_steady(path)?;
        return Ok(if steady { Content::Bytes(bytes) } else { Content::Unsteady });
    }
    let git = StoreError::git("write a large file into the quarantine");
    let Ok(size) = usize::try_from(regular.size) else { return Ok(Content::Unsteady) };
    let odb = store.repo.odb().map_err(StoreError::git("open the quarantine"))?;
    let mut writer = odb.writer(size, ObjectType::Blob).map_err(git)?;
    let mut buffer = vec![0; 1 << 18];
    let mut left = regular.size;
    while left > 0 {
        walk.check_time()?;
        let want = usize::try_from(left).unwrap_or(buffer.len()).min(buffer.len());
        let count = match regular.file.read(&mut buffer[..want]) {
            Ok(0) => return Ok(Content::Unsteady),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed("read", path)(error)),
        };
        writer.write_all(&buffer[..count]).map_err(failed("keep", path))?;
        left -= count as u64;
    }
    if !regular.is_steady(path)? {
        return Ok(Content::Unsteady);
    }
    let id = writer.finalize().map_err(StoreError::git("keep a large file"))?;
    Ok(Content::Stored(id))
}
