//! Where a box's workspace stands on the host.

use std::path::{Path, PathBuf};

use h5i_confine::UPPER;
use h5i_export::{TreeError, TreeSource};

use crate::store::{LayerName, Store};

/// Where a box's workspace stands on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// A directory holds all of it.
    Directory(PathBuf),
    /// The box's own part holds what it changed.
    Overlay {
        /// What it was given, the layer that hides the others first.
        lowers: Vec<PathBuf>,
        /// The box's own part.
        area: PathBuf,
    },
}

impl Standing {
    /// The workspace of the box of that `box/` directory whose manifest lists these layers.
    #[must_use]
    pub fn of(store: &Store, box_dir: &Path, layers: &[LayerName]) -> Self {
        if layers.is_empty() {
            return Self::Directory(super::Workspace::work_dir(box_dir));
        }
        let lowers = layers.iter().map(|layer| store.layer_path(layer)).collect();
        Self::Overlay { lowers, area: Self::area(box_dir) }
    }

    /// Where a box with an overlay has its own part of it.
    #[must_use]
    pub fn area(box_dir: &Path) -> PathBuf {
        box_dir.join("overlay")
    }

    /// The tree as the gate reads it.
    ///
    /// # Errors
    /// [`TreeError::Root`].
    pub fn tree_source(&self) -> Result<TreeSource, TreeError> {
        match self {
            Self::Directory(path) => TreeSource::checkout(path),
            Self::Overlay { area, .. } => TreeSource::overlay(&area.join(UPPER)),
        }
    }
}
