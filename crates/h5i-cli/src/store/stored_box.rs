//! A box on disk.

use std::fs;
use std::path::PathBuf;

use super::box_name::BoxName;
use super::lock::{BoxLock, LockError};
use super::manifest::{Manifest, ManifestError};
use super::scope::Scope;
use super::{Store, names};
use crate::path_error::{Action, PathError};

/// The resolved policy in a box's host directory, as canonical JSON: what its digest is over.
pub const FROZEN_POLICY: &str = "policy.json";

/// A box on disk, by its name. Holding one says that it was there, not that it still is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBox {
    scope: Scope,
    name: BoxName,
    dir: PathBuf,
}

/// Why a box can't be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No box has that name.
    #[error("no box `{name}` in this repository")]
    NotFound {
        /// The name that was asked for.
        name: BoxName,
        /// The names there are.
        names: Vec<BoxName>,
    },
    /// Its manifest can't be used.
    #[error("box `{name}` is damaged")]
    Corrupt {
        /// The box's name.
        name: BoxName,
        /// What is wrong with the manifest.
        #[source]
        source: ManifestError,
    },
    /// The kernel refused to read it.
    #[error(transparent)]
    Io(#[from] PathError),
}

impl Store {
    /// The box of that name.
    ///
    /// # Errors
    /// [`FindError::NotFound`] with the names there are, or [`FindError::Io`].
    pub fn find(&self, scope: &Scope, name: &BoxName) -> Result<StoredBox, FindError> {
        let found = StoredBox::new(self, scope, name);
        match fs::symlink_metadata(&found.dir) {
            Ok(meta) if meta.is_dir() => Ok(found),
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(PathError::at(Action::Inspect, &found.dir)(e).into())
            }
            _ => {
                let boxes = self.boxes(scope)?;
                let names = boxes.into_iter().map(|b| b.name).collect();
                Err(FindError::NotFound { name: name.clone(), names })
            }
        }
    }

    /// The boxes of a repository, in the order of their names.
    ///
    /// # Errors
    /// [`PathError`] if the directory is there and can't be listed.
    pub fn boxes(&self, scope: &Scope) -> Result<Vec<StoredBox>, PathError> {
        let names = names(&self.boxes_dir(scope))?;
        let valid = names.iter().filter_map(|name| BoxName::new(name).ok());
        Ok(valid.map(|name| StoredBox::new(self, scope, &name)).collect())
    }
}

impl StoredBox {
    pub(super) fn new(store: &Store, scope: &Scope, name: &BoxName) -> Self {
        let dir = store.boxes_dir(scope).join(name.as_str());
        Self { scope: scope.clone(), name: name.clone(), dir }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &BoxName {
        &self.name
    }

    /// The repository it belongs to.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The directory that holds `host/` and `box/`.
    #[must_use]
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// The host's part: manifest, policy, receipt, lock. Never visible in the box.
    #[must_use]
    pub fn host_dir(&self) -> PathBuf {
        self.dir.join("host")
    }

    /// What the box may write: workspace, home, spool.
    #[must_use]
    pub fn box_dir(&self) -> PathBuf {
        self.dir.join("box")
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// [`FindError::NotFound`] if the box went away meanwhile, [`FindError::Corrupt`] if its
    /// manifest can't be used, [`FindError::Io`] if it can't be read.
    pub fn manifest(&self) -> Result<Manifest, FindError> {
        let path = self.host_dir().join("manifest.json");
        let json = match fs::read(&path) {
            Ok(json) => json,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(FindError::NotFound { name: self.name.clone(), names: Vec::new() });
            }
            Err(e) => return Err(PathError::at(Action::Read, &path)(e).into()),
        };
        Manifest::parse(&json)
            .map_err(|source| FindError::Corrupt { name: self.name.clone(), source })
    }

    /// Takes the box's lock without waiting.
    ///
    /// # Errors
    /// [`LockError::Busy`] while another process holds it.
    pub fn lock(&self) -> Result<BoxLock, LockError> {
        BoxLock::take(&self.host_dir().join("lock"))
    }
}
