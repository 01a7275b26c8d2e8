//! Boxes as directories: where they stand, how they come to be, how they end.
//!
//! A box is whole or absent. It is made under a hidden name beside its place and gets its name by
//! one `renameat2`; it ends by being renamed away first. What a crash leaves behind has a name that
//! no box can have, and `gc` removes it once nobody holds its lock.

mod box_name;
mod draft;
mod gc;
mod host_id;
mod lock;
mod manifest;
mod objects;
mod own_roots;
mod removal;
mod remove_tree;
mod replace;
mod scope;
mod stored_box;
#[cfg(test)]
mod tests;
mod trees;
mod unique;

use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub use box_name::{BoxName, BoxNameError};
pub use draft::{BoxDraft, CommitError, DraftError};
pub use gc::{Collected, GcError, GcReport};
pub use host_id::{HostId, HostIdError};
pub use lock::{BoxLock, LockError};
pub use manifest::{
    ApprovedArtifact, BaseRecord, BoxId, Manifest, ManifestError, ParentBundle, WorkspaceKind,
};
pub use objects::{ObjectsKey, ObjectsKeyError, ObjectsLease};
pub use removal::{RemoveError, Removed, Retain};
pub use scope::{Origin, RepoId, Scope};
pub use stored_box::{FROZEN_POLICY, FindError, StoredBox};
pub use trees::{LayerName, LayerNameError, TreeKey};

pub(crate) use lock::open as open_lock;
pub(crate) use objects::{OBJECTS_OWNER, own_objects};
pub(crate) use remove_tree::remove_tree;
pub(crate) use replace::replace_file;
pub(crate) use unique::{random_bytes, random_hex};

use crate::path_error::{Action, PathError};
use crate::shown::Shown;

/// What says, beside the boxes of a repository, which one that is.
const ORIGIN: &str = "origin.json";

/// The state directory of h5i, `$XDG_STATE_HOME/h5i`.
///
/// Opening it writes nothing: directories appear with the first box, mode 0700.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// Why a path can't be the state directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not absolute.
    #[error("the state directory `{}` is not an absolute path", Shown::path(path))]
    Relative {
        /// The path as given.
        path: PathBuf,
    },
    /// It leaves no room below it: the kernel takes paths up to 4,095 bytes, and a box needs
    /// [`Store::ROOM`] of them.
    #[error("the state directory's path has {length} bytes; at most {most} leave room for boxes")]
    TooLong {
        /// Bytes of the path as given.
        length: usize,
        /// The most that is accepted.
        most: usize,
    },
    /// It has a character that Git's `alternates` file can't carry.
    #[error("the state directory `{}` has a line break or starts with a quote", Shown::path(path))]
    Unwritable {
        /// The path as given.
        path: PathBuf,
    },
}

impl Store {
    /// Bytes that are kept free for names below the state directory.
    pub const ROOM: usize = 512;

    /// Names the state directory. Nothing is read or written.
    ///
    /// # Errors
    /// [`OpenError`] for a path that can't hold boxes.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        if !root.is_absolute() {
            return Err(OpenError::Relative { path: root.to_owned() });
        }
        let bytes = root.as_os_str().as_bytes();
        let most = 4095 - Self::ROOM;
        if bytes.len() > most {
            return Err(OpenError::TooLong { length: bytes.len(), most });
        }
        if bytes.contains(&b'\n') {
            return Err(OpenError::Unwritable { path: root.to_owned() });
        }
        Ok(Self { root: root.to_owned() })
    }

    /// The state directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the boxes of a repository stand.
    pub(crate) fn boxes_dir(&self, scope: &Scope) -> PathBuf {
        self.scope_dir(scope).join("boxes")
    }

    pub(crate) fn scope_dir(&self, scope: &Scope) -> PathBuf {
        self.root.join("repos").join(scope.directory())
    }

    /// The repository whose boxes a scope has: its working tree, or itself where it is bare; none for
    /// boxes of none, or where that is not written down.
    pub(crate) fn repository_of(&self, scope: &Scope) -> Option<PathBuf> {
        let json = fs::read(self.scope_dir(scope).join(ORIGIN)).ok()?;
        let origin: Origin = serde_json::from_slice(&json).ok()?;
        let common = PathBuf::from(std::ffi::OsString::from_vec(origin.common_dir.0));
        let tree = common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned);
        Some(tree.unwrap_or(common))
    }

    /// Where receipts of removed boxes are kept.
    #[must_use]
    pub fn archive_dir(&self) -> PathBuf {
        self.root.join("archive")
    }

    /// Where root directories are kept that sessions mount; see [`h5i_confine::Layout`].
    #[must_use]
    pub fn roots_dir(&self) -> PathBuf {
        self.root.join("roots")
    }

    /// Where base objects are kept, one bare repository of h5i's own per base.
    #[must_use]
    pub fn objects_dir(&self) -> PathBuf {
        self.root.join("objects")
    }

    /// Every scope that has a directory, in order.
    ///
    /// # Errors
    /// [`PathError`] if the state directory exists and can't be listed.
    pub fn scopes(&self) -> Result<Vec<Scope>, PathError> {
        let repos = self.root.join("repos");
        Ok(names(&repos)?.iter().filter_map(|name| Scope::from_directory(name)).collect())
    }
}

/// The names in a directory that are UTF-8, sorted; none if it is absent. Names h5i made are ASCII.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, PathError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(PathError::at(Action::List, dir)(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(PathError::at(Action::List, dir))?;
        if let Ok(name) = entry.file_name().into_string() {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// Makes a directory and its missing parents, mode 0700.
pub(crate) fn make_private_dirs(dir: &Path) -> Result<(), PathError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(PathError::at(Action::CreateDirectory, dir))
}

/// Makes one directory, mode 0700; it must not be there.
pub(crate) fn make_private_dir(dir: &Path) -> Result<(), PathError> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(dir)
        .map_err(PathError::at(Action::CreateDirectory, dir))
}
