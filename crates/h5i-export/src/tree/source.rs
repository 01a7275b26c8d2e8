//! Where a box's tree is.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::TreeError;

/// The tree of a box, by the way that it is laid out on the host.
#[derive(Debug)]
#[non_exhaustive]
pub enum TreeSource {
    /// A directory that holds the whole tree.
    Checkout {
        /// The root, open for reading.
        root: OwnedFd,
    },
    /// The upper layer of an overlay whose lower layers hold the base's tree: what it does not have
    /// is as in the base.
    Overlay {
        /// The root of the upper layer, open for reading.
        upper: OwnedFd,
    },
}

/// How much of a tree stands in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layers {
    /// All of it.
    Whole,
    /// What differs from the base, in the format of overlayfs.
    Upper,
}

impl TreeSource {
    /// Opens the root of a checkout. `path` belongs to the host; its last component may not be a
    /// link.
    ///
    /// # Errors
    /// [`TreeError::Root`].
    pub fn checkout(path: &Path) -> Result<Self, TreeError> {
        Ok(Self::Checkout { root: open(path)? })
    }

    /// Opens the root of an overlay's upper layer, with the same rules. The base of the export must
    /// be the tree of the lower layers.
    ///
    /// # Errors
    /// [`TreeError::Root`].
    pub fn overlay(upper: &Path) -> Result<Self, TreeError> {
        Ok(Self::Overlay { upper: open(upper)? })
    }

    pub(crate) fn into_root(self) -> (OwnedFd, Layers) {
        match self {
            Self::Checkout { root } => (root, Layers::Whole),
            Self::Overlay { upper } => (upper, Layers::Upper),
        }
    }
}

fn open(path: &Path) -> Result<OwnedFd, TreeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| TreeError::Root { path: path.to_owned(), source: error.into() })
}
