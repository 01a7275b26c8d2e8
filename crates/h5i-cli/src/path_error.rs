//! What was attempted on which path, and what the kernel said.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::shown::Shown;

/// One attempt on one path that the kernel refused.
///
/// The `Display` names the attempt and the path, escaped; the reason is its source.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`", Shown::path(path))]
#[non_exhaustive]
pub struct PathError {
    /// What was attempted.
    pub action: Action,
    /// On what.
    pub path: PathBuf,
    /// What the kernel said.
    #[source]
    pub source: io::Error,
}

/// What was attempted on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Make a directory.
    CreateDirectory,
    /// Make a file or a link.
    Create,
    /// Open what is there.
    Open,
    /// Read it.
    Read,
    /// Write it.
    Write,
    /// Give it its final name.
    Rename,
    /// Remove it.
    Remove,
    /// List a directory.
    List,
    /// Ask for its type, owner or size.
    Inspect,
    /// Take its lock.
    Lock,
    /// Give it to the box's owner.
    ChangeOwner,
    /// Change its mode or times.
    ChangeMode,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CreateDirectory => "create the directory",
            Self::Create => "create",
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::List => "list the directory",
            Self::Inspect => "inspect",
            Self::Lock => "lock",
            Self::ChangeOwner => "change the owner of",
            Self::ChangeMode => "change the mode of",
        })
    }
}

impl PathError {
    /// The error of `action` on `path`, for `map_err`.
    pub(crate) fn at<E: Into<io::Error>>(action: Action, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self { action, path: path.to_owned(), source: source.into() }
    }
}
