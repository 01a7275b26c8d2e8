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
}

impl TreeSource {
    /// Opens the root of a checkout. `path` belongs to the host; its last component may not be a
    /// link.
    ///
    /// # Errors
    /// [`TreeError::Root`].
    pub fn checkout(path: &Path) -> Result<Self, TreeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| TreeError::Root { path: path.to_owned(), source: error.into() })?;
        Ok(Self::Checkout { root })
    }
}
