//! Reading a box's tree as hostile data.

mod content;
mod layer;
mod source;
mod walk;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use content::{Content, Regular, read_content};
pub(crate) use layer::Cover;
pub(crate) use source::Layers;
pub use source::TreeSource;
pub(crate) use walk::{Kind, Step, Walk};

use crate::escape::Escaped;

/// Bounds on reading one tree, ignored files included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadLimits {
    /// The most entries that are looked at.
    pub entries: u64,
    /// The longest time that reading may take.
    pub time: Duration,
}

impl Default for ReadLimits {
    /// Two million entries, five minutes.
    fn default() -> Self {
        Self { entries: 2_000_000, time: Duration::from_secs(300) }
    }
}

/// What an entry is that is neither a file, a directory nor a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Special {
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
    /// Something else.
    Unknown,
}

impl Special {
    /// What to call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Unknown => "of an unknown type",
        }
    }
}

impl TreeError {
    /// Whether the mode of something keeps its owner, whom the host reads for, from looking into it.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// Why a tree can't be read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// A system call failed.
    #[error("can't {operation} `{}` in the box's tree", Escaped::new(path))]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// On what, relative to the root.
        path: Vec<u8>,
        /// The failure.
        source: io::Error,
    },
    /// There are more entries than [`ReadLimits::entries`].
    #[error("the box's tree has more than {limit} entries")]
    TooManyEntries {
        /// The limit.
        limit: u64,
    },
    /// A directory is deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    #[error("the directory `{}` is more than {limit} levels deep", Escaped::new(path))]
    TooDeep {
        /// The directory.
        path: Vec<u8>,
        /// The limit.
        limit: usize,
    },
    /// Reading took longer than [`ReadLimits::time`].
    #[error("reading the box's tree took longer than {} s, at `{}`", limit.as_secs(), Escaped::new(path))]
    TooLong {
        /// Where reading was.
        path: Vec<u8>,
        /// The limit.
        limit: Duration,
    },
    /// An entry of an overlay's upper layer has its content or its place elsewhere. Overlays of h5i
    /// make no such entries.
    #[error(
        "`{}` has the attribute {attribute}: the layer does not stand for itself",
        Escaped::new(path)
    )]
    Indirect {
        /// The entry.
        path: Vec<u8>,
        /// The attribute that says so.
        attribute: &'static str,
    },
    /// The quarantine can't be written.
    #[error("can't keep what was read")]
    Store(#[from] crate::store::StoreError),
    /// The root can't be opened.
    #[error("can't open the tree `{}`", path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
}
