//! The seam between ways to lay out a workspace.

use std::fmt;
use std::path::Path;

use git2::{Index, Oid, Repository};

use super::checkout::CheckoutError;
use super::prepare::Owner;
use crate::store::WorkspaceKind;

/// A way to lay out a workspace: how the files of the base tree come to stand in the box.
///
/// A back end writes the files and prepares the index with the data that `stat` will show inside,
/// so that the first `git status` in the box reads no file. All else about a workspace (objects, git
/// directory, home, spool) is the same for every back end.
pub trait Backend: fmt::Debug {
    /// How the layout is called in the manifest.
    fn kind(&self) -> WorkspaceKind;

    /// Lays out the tree.
    ///
    /// # Errors
    /// [`CheckoutError`] naming the path; the caller removes what was written.
    fn lay_out(&self, layout: &Layout<'_>, index: &mut Index) -> Result<LaidOut, CheckoutError>;
}

/// What was laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaidOut {
    /// What a person should know about it.
    pub notes: Vec<Note>,
    /// The bytes of the files that were written, rounded up to blocks.
    pub bytes: u64,
}

/// What a back end is given.
#[non_exhaustive]
pub struct Layout<'a> {
    /// The repository that holds the base's objects.
    pub objects: &'a Repository,
    /// The tree.
    pub tree: Oid,
    /// The tree that the directory is laid over, if it is: then only what differs is written, what
    /// is gone is hidden, and the index that is given is that tree's.
    pub over: Option<Oid>,
    /// The directory that becomes the root of the workspace; it is there and has no file of the
    /// tree.
    pub root: &'a Path,
    /// Whose the files are on the host.
    pub owner: Owner,
    /// The user and group that `stat` shows in the box.
    pub inside: (u32, u32),
    /// The time of the files, in seconds since 1970; in the past, so that no later change can
    /// share it.
    pub mtime: i64,
}

impl fmt::Debug for Layout<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("tree", &self.tree)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// Something about the workspace that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A submodule: an empty directory stands in its place.
    Submodule {
        /// Its path, bytes.
        path: Vec<u8>,
    },
    /// A file that Git LFS would replace: its pointer stands there.
    LfsPointer {
        /// Its path, bytes.
        path: Vec<u8>,
    },
}

impl Note {
    /// The path that it is about.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        let (Self::Submodule { path } | Self::LfsPointer { path }) = self;
        path
    }
}
