//! A box in the making.

use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;

use super::box_name::BoxName;
use super::lock::{BoxLock, LockError};
use super::manifest::{Manifest, ManifestError};
use super::objects::{ObjectsKey, ObjectsLease};
use super::scope::{Origin, Scope};
use super::stored_box::StoredBox;
use super::trees::TreeKey;
use super::unique::random_hex;
use super::{ORIGIN, Store, make_private_dir, make_private_dirs, remove_tree, replace_file};
use crate::path_error::{Action, PathError};

/// A box in the making: it has directories under a hidden name and no name yet.
///
/// [`commit`](Self::commit) gives it its name in one step. Dropping it instead removes all that was
/// made for it, also the base objects that were made for it alone.
#[derive(Debug)]
pub struct BoxDraft {
    hidden: Hidden,
    lock: BoxLock,
}

/// The hidden directory and what goes with it when it is dropped as a draft.
#[derive(Debug)]
struct Hidden {
    store: Store,
    scope: Scope,
    name: BoxName,
    dir: PathBuf,
    state: State,
    lease: Option<ObjectsLease>,
    fresh: Vec<ObjectsKey>,
    fresh_trees: Vec<TreeKey>,
    // While it is held, gc knows that the directory has an owner.
    _owner: File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Draft,
    Committed,
}

/// Why no box could be begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// There is a box of that name.
    #[error("box `{name}` exists")]
    Exists {
        /// The name.
        name: BoxName,
    },
    /// A directory or lock can't be made.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// Why a box could not be given its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Another process made a box of that name meanwhile.
    #[error("box `{name}` exists")]
    Exists {
        /// The name.
        name: BoxName,
    },
    /// The manifest can't be written as JSON.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The manifest can't be stored, or the directory can't be renamed.
    #[error(transparent)]
    Io(#[from] PathError),
}

impl Store {
    /// Begins a box: makes `host/` and `box/` under a hidden name and takes the box's lock.
    ///
    /// # Errors
    /// [`DraftError::Exists`] if the name is taken, [`DraftError::Io`] with the path for anything
    /// the kernel refuses (read-only, full, too long). Nothing is left behind.
    pub fn draft(
        &self,
        scope: &Scope,
        name: &BoxName,
        origin: Option<&Origin>,
    ) -> Result<BoxDraft, DraftError> {
        let boxes = self.boxes_dir(scope);
        let place = boxes.join(name.as_str());
        if is_there(&place)? {
            return Err(DraftError::Exists { name: name.clone() });
        }
        let (dir, owner) = self.hidden_directory(scope, name)?;
        let mut hidden = Hidden {
            store: self.clone(),
            scope: scope.clone(),
            name: name.clone(),
            dir,
            state: State::Draft,
            lease: None,
            fresh: Vec::new(),
            fresh_trees: Vec::new(),
            _owner: owner,
        };
        make_private_dir(&hidden.dir.join("host"))?;
        make_private_dir(&hidden.dir.join("box"))?;
        let lock = match BoxLock::take(&hidden.dir.join("host/lock")) {
            Ok(lock) => lock,
            Err(LockError::Io(e)) => return Err(e.into()),
            // Nobody knows the hidden name; somebody who guessed it has what the name says.
            Err(LockError::Busy) => return Err(DraftError::Exists { name: name.clone() }),
        };
        hidden.lease = Some(self.lease_objects()?);
        if let Some(origin) = origin {
            let scope_dir = self.scope_dir(scope);
            let json = serde_json::to_vec(origin)
                .map_err(|e| PathError::at(Action::Write, &scope_dir)(std::io::Error::from(e)))?;
            replace_file(&scope_dir, ORIGIN, &json)?;
        }
        Ok(BoxDraft { hidden, lock })
    }

    /// Makes `.<name>.<random>.new` among the boxes of a scope, and locks it.
    fn hidden_directory(
        &self,
        scope: &Scope,
        name: &BoxName,
    ) -> Result<(PathBuf, File), PathError> {
        let boxes = self.boxes_dir(scope);
        let dir = boxes.join(format!(".{name}.{}.new", random_hex(4)?));
        loop {
            make_private_dirs(&boxes)?;
            // Shared with other drafts, against gc: it must not meet the directory unlocked.
            let guard = match lock_directory(&boxes, FlockOperation::LockShared) {
                Ok(guard) => guard,
                // Another draft's clean-up removed the empty directory meanwhile.
                Err(e) if e.source.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            match make_private_dir(&dir) {
                Ok(()) => {}
                Err(e) if e.source.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            }
            let owner = lock_directory(&dir, FlockOperation::LockExclusive);
            drop(guard);
            return match owner {
                Ok(owner) => Ok((dir, owner)),
                Err(e) => {
                    fs::remove_dir(&dir).ok();
                    Err(e)
                }
            };
        }
    }
}

impl BoxDraft {
    /// Where the host's part of the box is being made: never visible in the box.
    #[must_use]
    pub fn host_dir(&self) -> PathBuf {
        self.hidden.dir.join("host")
    }

    /// Where the box's own part is being made.
    #[must_use]
    pub fn box_dir(&self) -> PathBuf {
        self.hidden.dir.join("box")
    }

    /// Where the box's own part will be once it has its name.
    #[must_use]
    pub fn final_box_dir(&self) -> PathBuf {
        let hidden = &self.hidden;
        hidden.store.boxes_dir(&hidden.scope).join(hidden.name.as_str()).join("box")
    }

    /// The store that the box is made in.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.hidden.store
    }

    /// The box's name to be.
    #[must_use]
    pub fn name(&self) -> &BoxName {
        &self.hidden.name
    }

    /// Notes base objects that were made for this box: if the box does not come to be and no other
    /// one uses them, they go with it.
    pub(crate) fn made_objects(&mut self, key: ObjectsKey) {
        self.hidden.fresh.push(key);
    }

    /// Notes a pristine tree that was made for this box, as [`BoxDraft::made_objects`].
    pub(crate) fn made_tree(&mut self, key: TreeKey) {
        self.hidden.fresh_trees.push(key);
    }

    /// Stores a file of the host's part.
    ///
    /// # Errors
    /// [`PathError`] if it can't be written.
    pub fn write_host_file(&self, name: &str, bytes: &[u8]) -> Result<(), PathError> {
        replace_file(&self.host_dir(), name, bytes)
    }

    /// Writes the manifest and gives the box its name, in one step that happens or does not.
    ///
    /// The box's lock is handed on, so that its first run can't lose a race.
    ///
    /// # Errors
    /// [`CommitError`]; everything that was made is removed then.
    pub fn commit(self, manifest: &Manifest) -> Result<(StoredBox, BoxLock), CommitError> {
        self.write_host_file("manifest.json", &manifest.to_json()?)?;
        let Self { mut hidden, lock } = self;
        let place = hidden.store.boxes_dir(&hidden.scope).join(hidden.name.as_str());
        match rustix::fs::renameat_with(CWD, &hidden.dir, CWD, &place, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY) => {
                return Err(CommitError::Exists { name: hidden.name.clone() });
            }
            Err(e) => return Err(PathError::at(Action::Rename, &place)(e).into()),
        }
        hidden.state = State::Committed;
        Ok((StoredBox::new(&hidden.store, &hidden.scope, &hidden.name), lock))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if self.state == State::Committed {
            return;
        }
        // The error that led here is the one to tell; what can't be removed now is left to gc.
        remove_tree(&self.dir).ok();
        self.lease = None;
        if !self.fresh.is_empty() {
            self.store.collect_objects(Some(&self.fresh)).ok();
        }
        if !self.fresh_trees.is_empty() {
            self.store.collect_trees(Some(&self.fresh_trees), 0).ok();
        }
        if fs::remove_dir(self.store.boxes_dir(&self.scope)).is_ok() {
            let scope_dir = self.store.scope_dir(&self.scope);
            fs::remove_file(scope_dir.join(ORIGIN)).ok();
            fs::remove_dir(&scope_dir).ok();
        }
    }
}

/// Whether anything has that name, a dangling link too.
fn is_there(path: &Path) -> Result<bool, PathError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(PathError::at(Action::Inspect, path)(e)),
    }
}

/// Opens a directory and takes a lock on it.
pub(super) fn lock_directory(dir: &Path, operation: FlockOperation) -> Result<File, PathError> {
    let file = File::open(dir).map_err(PathError::at(Action::Open, dir))?;
    rustix::fs::flock(&file, operation).map_err(PathError::at(Action::Lock, dir))?;
    Ok(file)
}
