//! Where the parts of a box lie on the host and where they stand in the box.

use std::path::PathBuf;

/// Where the box works.
pub const WORKSPACE: &str = "/work";
/// The home of the box's only user.
pub const HOME: &str = "/home/box";
/// The only place where the box may write evidence.
pub const SPOOL: &str = "/run/h5i/spool";
/// The box's only user id, as seen inside.
pub const BOX_ID: u32 = 1000;

/// Whether a mounted directory may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Reading and executing.
    Read,
    /// Reading, executing and writing.
    Write,
}

/// Name of the directory in an overlay's area that receives what the box writes.
pub const UPPER: &str = "upper";
/// Name of the directory in an overlay's area that the kernel works in.
pub const OVERLAY_WORK: &str = "work";

/// One part of the host that stands in the box at another place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// What of the host stands there.
    pub source: Source,
    /// Absolute path in the box.
    pub target: PathBuf,
}

/// What of the host a [`Placement`] shows.
///
/// Every path is absolute, a directory (or a file) by the time the plan is started, and no part of
/// it a symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// One directory.
    Directory {
        /// Where it is on the host.
        path: PathBuf,
        /// Whether the box may write there.
        access: Access,
    },
    /// One file, for reading and executing.
    File {
        /// Where it is on the host.
        path: PathBuf,
    },
    /// Several directories as one (`overlayfs`), which the box may write; only the area changes.
    Overlay {
        /// Directories that are only read, the one that hides the others first; at least one.
        lowers: Vec<PathBuf>,
        /// A directory with [`UPPER`] and [`OVERLAY_WORK`] in it, on one file system that supports
        /// an overlay's writable layer. Nothing but that is used of it.
        area: PathBuf,
    },
}

/// Where the parts of a box lie on the host and where they stand in the box.
///
/// Every host path must be absolute and lead to what is meant by itself: the caller owns these
/// directories, and nothing in a box may rename them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// The parts, in the order in which they are mounted.
    pub placements: Vec<Placement>,
    /// Files of this content, by path in the box; for reading.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// When the caller is root: the non-zero host id (user and group) under which the box runs and
    /// which owns what it may write. Without it a root caller is refused.
    pub host_id: Option<u32>,
    /// A directory of the host, mode 0700, where roots may be kept that are made once and mounted
    /// by every session of the same shape. Without it each session makes its own, in memory. What
    /// is in it must not be removed while a session is alive.
    pub prepared_roots: Option<PathBuf>,
    /// Directories of the host that the box does not see and yet fills, as that of its records: what
    /// they take counts as the box's own on disk.
    pub filled: Vec<PathBuf>,
}

impl Layout {
    /// A layout with the workspace at [`WORKSPACE`] and the home at [`HOME`], both writable.
    pub fn new(workspace: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        Self::default().place(workspace, WORKSPACE, Access::Write).place(home, HOME, Access::Write)
    }

    /// Adds a part.
    #[must_use]
    pub fn place(
        mut self,
        source: impl Into<PathBuf>,
        target: impl Into<PathBuf>,
        access: Access,
    ) -> Self {
        let source = Source::Directory { path: source.into(), access };
        self.placements.push(Placement { source, target: target.into() });
        self
    }

    /// Adds an overlay of `lowers`, the one that hides the others first, and the `area` that
    /// receives what the box writes; see [`Source::Overlay`].
    #[must_use]
    pub fn overlay(
        mut self,
        lowers: Vec<PathBuf>,
        area: impl Into<PathBuf>,
        target: impl Into<PathBuf>,
    ) -> Self {
        let source = Source::Overlay { lowers, area: area.into() };
        self.placements.push(Placement { source, target: target.into() });
        self
    }

    /// Shows one file of the host, for reading and executing.
    #[must_use]
    pub fn file(mut self, source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        let source = Source::File { path: source.into() };
        self.placements.push(Placement { source, target: target.into() });
        self
    }

    /// Adds a file of this content, for reading.
    #[must_use]
    pub fn content(mut self, target: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((target.into(), content.into()));
        self
    }

    /// The directories of the host that the box writes to or fills.
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        let of = |part: &Placement| match &part.source {
            Source::Directory { path, access: Access::Write } => Some(path.clone()),
            Source::Directory { .. } | Source::File { .. } => None,
            Source::Overlay { area, .. } => Some(area.join(UPPER)),
        };
        self.placements.iter().filter_map(of).chain(self.filled.iter().cloned()).collect()
    }

    /// Counts a directory of the host that the box fills without seeing it.
    #[must_use]
    pub fn filled(mut self, directory: impl Into<PathBuf>) -> Self {
        self.filled.push(directory.into());
        self
    }

    /// Keeps prepared roots in this directory.
    #[must_use]
    pub fn prepared_roots(mut self, directory: impl Into<PathBuf>) -> Self {
        self.prepared_roots = Some(directory.into());
        self
    }

    /// Sets the host id for a root caller's box.
    #[must_use]
    pub fn host_id(mut self, id: u32) -> Self {
        self.host_id = Some(id);
        self
    }
}
