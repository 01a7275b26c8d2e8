//! Receipts of removed boxes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::path_error::{Action, PathError};
use crate::store::{BoxName, Manifest, Store, names};

/// What is kept of a removed box.
#[derive(Clone, Debug)]
pub(crate) struct Archived {
    /// The directory's name: the box's name and its identity.
    pub(crate) key: String,
    /// The directory.
    pub(crate) dir: PathBuf,
    /// The manifest; none if it can't be read.
    pub(crate) manifest: Option<Manifest>,
}

/// Every removed box, in the order of their names.
///
/// # Errors
/// An I/O failure.
pub(crate) fn archived(store: &Store) -> Result<Vec<Archived>, Failure> {
    let root = store.archive_dir();
    names(&root)?.into_iter().map(|key| Ok(Archived::at(root.join(&key), key)?)).collect()
}

/// The removed boxes of that name; more than one when the name was used again.
///
/// # Errors
/// An I/O failure.
pub(crate) fn archived_as(store: &Store, name: &BoxName) -> Result<Vec<Archived>, Failure> {
    let mut all = archived(store)?;
    all.retain(|found| found.manifest.as_ref().is_some_and(|manifest| manifest.name == *name));
    Ok(all)
}

impl Archived {
    /// The box's name; none if its manifest can't be read.
    pub(crate) fn name(&self) -> Option<&str> {
        self.manifest.as_ref().map(|manifest| manifest.name.as_str())
    }

    fn at(dir: PathBuf, key: String) -> Result<Self, PathError> {
        let manifest = read_if_there(&dir.join("manifest.json"))?;
        let manifest = manifest.and_then(|json| Manifest::parse(&json).ok());
        Ok(Self { key, dir, manifest })
    }
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, PathError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(PathError::at(Action::Read, path)(e)),
    }
}
