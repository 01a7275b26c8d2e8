//! Paths that may leave a box.

mod fold;
mod name_set;
mod rule;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::escape::Escaped;

pub(crate) use fold::fold_name;
pub use name_set::{NameClash, NameSet};
pub use rule::PathRule;
pub(crate) use rule::is_dot_git;

/// The longest path that may be exported, in bytes (Linux `PATH_MAX` with its NUL).
pub const MAX_PATH: usize = 4095;
/// The longest single name that may be exported, in bytes (Linux `NAME_MAX`).
pub const MAX_NAME: usize = 255;
/// The most components that an exported path may have.
pub const MAX_DEPTH: usize = 200;

/// A path relative to the root of a tree, proven safe to write on any host.
///
/// Holding one proves: it is relative, has no empty, `.` or `..` component, and no component is
/// (or becomes, on a file system that folds case, normalises Unicode, ignores code points, trims
/// dots and spaces, makes 8.3 names or has named streams) a git directory, a drive, a reserved
/// device or a path separator. Its bytes need not be UTF-8. It says nothing about what is at the
/// path, and nothing about other names beside it: [`NameSet`] answers that.
///
/// Only [`ExportPath::new`] makes one; it does no I/O.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExportPath(Box<[u8]>);

/// Why bytes are not an [`ExportPath`].
///
/// Its Display names the rule and shows the path with every control character made visible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path `{}` can't be exported: {rule}", Escaped::new(path))]
#[non_exhaustive]
pub struct ExportPathError {
    /// The bytes that were refused, cut after [`MAX_PATH`] bytes.
    pub path: Vec<u8>,
    /// The rule that they break.
    pub rule: PathRule,
}

impl ExportPath {
    /// Checks `path` and keeps a copy of it.
    ///
    /// # Errors
    /// [`ExportPathError`] with the first [`PathRule`] that the path breaks.
    pub fn new(path: &[u8]) -> Result<Self, ExportPathError> {
        match rule::check(path) {
            Ok(()) => Ok(Self(path.into())),
            Err(rule) => {
                let path = path.get(..MAX_PATH).unwrap_or(path).to_vec();
                Err(ExportPathError { path, rule })
            }
        }
    }

    /// The path as bytes, components separated by `/`.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The names from the root down; at least one, none empty.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/')
    }
}

impl fmt::Display for ExportPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaped::new(&self.0).fmt(f)
    }
}

impl fmt::Debug for ExportPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Escaped::new(&self.0), f)
    }
}
