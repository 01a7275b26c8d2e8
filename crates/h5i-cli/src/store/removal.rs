//! The end of a box.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use h5i_export::QUARANTINE;
use rustix::fs::FlockOperation;

use super::draft::lock_directory;
use super::lock::{BoxLock, LockError};
use super::manifest::Manifest;
use super::stored_box::StoredBox;
use super::unique::random_hex;
use super::{Store, make_private_dirs, names, remove_tree};
use crate::path_error::{Action, PathError};

/// What stays of a removed box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retain {
    /// The host's part (manifest, policy, receipt) goes to the archive.
    Receipt,
    /// Nothing.
    Nothing,
}

/// What a removal left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// Where the receipt is now.
    pub archive: Option<PathBuf>,
}

/// Why a box is not, or not wholly, removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// It is in use, and stays as it is.
    #[error("the box is in use by another process")]
    Busy,
    /// It is gone as a box; `gc` removes the rest of its files.
    #[error("the box is removed, but some of its files are left")]
    Left(#[source] PathError),
    /// It stays as it is.
    #[error(transparent)]
    Io(#[from] PathError),
}

impl Store {
    /// Removes a box, taking its lock first.
    ///
    /// # Errors
    /// [`RemoveError::Busy`] while it is in use; see the other variants of [`RemoveError`].
    pub fn remove(&self, stored: &StoredBox, retain: Retain) -> Result<Removed, RemoveError> {
        let lock = stored.lock().map_err(|e| match e {
            LockError::Busy => RemoveError::Busy,
            LockError::Io(e) => RemoveError::Io(e),
        })?;
        self.remove_locked(stored, lock, retain)
    }

    /// Removes a box whose lock the caller holds.
    ///
    /// The name is free from the first step on; what follows can be cut off and is finished by
    /// `gc`.
    ///
    /// # Errors
    /// [`RemoveError::Io`] if the box stays, [`RemoveError::Left`] if files of it stay.
    pub fn remove_locked(
        &self,
        stored: &StoredBox,
        lock: BoxLock,
        retain: Retain,
    ) -> Result<Removed, RemoveError> {
        let boxes = self.boxes_dir(stored.scope());
        let suffix = match retain {
            Retain::Receipt => "gone",
            Retain::Nothing => "purged",
        };
        let gone = boxes.join(format!(".{}.{}.{suffix}", stored.name(), random_hex(4)?));
        // Locked before it is renamed, so that gc never meets it without its owner.
        let owner = lock_directory(stored.dir(), FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(stored.dir(), &gone).map_err(PathError::at(Action::Rename, stored.dir()))?;
        let finished = self.finish_removal(&gone, stored.name().as_str(), retain);
        drop((lock, owner));
        finished.map_err(RemoveError::Left)
    }

    /// Archives and removes what was a box, under its hidden name.
    pub(super) fn finish_removal(
        &self,
        gone: &Path,
        name: &str,
        retain: Retain,
    ) -> Result<Removed, PathError> {
        let archive = match retain {
            Retain::Receipt => {
                drop_quarantines(gone)?;
                self.archive(&gone.join("host"), name)?
            }
            Retain::Nothing => None,
        };
        remove_tree(gone)?;
        Ok(Removed { archive })
    }

    fn archive(&self, host: &Path, name: &str) -> Result<Option<PathBuf>, PathError> {
        let manifest = match fs::read(host.join("manifest.json")) {
            Ok(json) => Manifest::parse(&json).ok(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(PathError::at(Action::Read, &host.join("manifest.json"))(e)),
        };
        // Without a manifest that can be read the receipt is kept all the same.
        let id = match manifest {
            Some(manifest) => manifest.id.as_str().to_owned(),
            None => format!("damaged-{}", random_hex(4)?),
        };
        make_private_dirs(&self.archive_dir())?;
        let kept = self.archive_dir().join(format!("{name}-{id}"));
        match fs::rename(host, &kept) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(PathError::at(Action::Rename, host)(e)),
        }
        for transient in ["lock", "control.sock", "session.log"] {
            let path = kept.join(transient);
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(PathError::at(Action::Remove, &path)(e)),
            }
        }
        Ok(Some(kept))
    }
}

/// Takes copies of what the box changed, that killed verbs left, out of what is archived: they go
/// with the rest. Whoever still works on one finds it gone with the box.
fn drop_quarantines(gone: &Path) -> Result<(), PathError> {
    let host = gone.join("host");
    for name in names(&host)?.into_iter().filter(|name| name.starts_with(QUARANTINE)) {
        let path = host.join(&name);
        match fs::rename(&path, gone.join(&name)) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(PathError::at(Action::Rename, &path)(e)),
        }
    }
    Ok(())
}
