//! Absolute paths of the host that a policy grants.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// An absolute, normalised path of the host: no `.`, no `..`, no empty component, no trailing `/`,
/// no NUL.
///
/// Holding one says nothing about what is there; it is text, checked once. It is UTF-8, as the
/// policy document is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPath(String);

/// Why a string is not a [`HostPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostPathError {
    /// It does not start with `/`.
    #[error("a granted path must be absolute")]
    Relative,
    /// It has a `.`, a `..` or an empty component.
    #[error("a granted path must not have `.`, `..` or empty components")]
    NotNormal,
    /// It has a NUL byte or a control character.
    #[error("a granted path must not have control characters")]
    Control,
}

impl HostPath {
    /// Checks `text` and keeps it.
    ///
    /// # Errors
    /// One variant of [`HostPathError`] for each rule in the type's description. A single trailing
    /// `/` is dropped, not refused.
    pub fn new(text: &str) -> Result<Self, HostPathError> {
        let Some(rest) = text.strip_prefix('/') else { return Err(HostPathError::Relative) };
        if text.chars().any(char::is_control) {
            return Err(HostPathError::Control);
        }
        if rest.is_empty() {
            return Ok(Self("/".to_owned()));
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(HostPathError::NotNormal);
        }
        Ok(Self(format!("/{rest}")))
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as the standard library's type.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// Whether `other` is this path or lies below it, by text.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.0 == "/"
            || other.0 == self.0
            || other.0.strip_prefix(&self.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl TryFrom<String> for HostPath {
    type Error = HostPathError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<HostPath> for String {
    fn from(path: HostPath) -> Self {
        path.0
    }
}

impl std::borrow::Borrow<str> for HostPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{HostPath, HostPathError};

    #[test]
    fn what_is_not_a_normal_absolute_path_is_refused() {
        for (text, error) in [
            ("", HostPathError::Relative),
            ("a", HostPathError::Relative),
            ("~/x", HostPathError::Relative),
            ("/a/../b", HostPathError::NotNormal),
            ("/a/./b", HostPathError::NotNormal),
            ("/a//b", HostPathError::NotNormal),
            ("//", HostPathError::NotNormal),
            ("/a\0b", HostPathError::Control),
            ("/a\nb", HostPathError::Control),
        ] {
            assert_eq!(HostPath::new(text), Err(error), "{text:?}");
        }
        for (text, kept) in [("/", "/"), ("/a", "/a"), ("/a/", "/a"), ("/a/b c", "/a/b c")] {
            assert_eq!(HostPath::new(text).expect(text).as_str(), kept);
        }
    }

    #[test]
    fn a_path_covers_itself_and_what_is_below_it() {
        let path = |text| HostPath::new(text).expect(text);
        for (top, other, covered) in [
            ("/a", "/a", true),
            ("/a", "/a/b", true),
            ("/", "/a", true),
            ("/a", "/ab", false),
            ("/a/b", "/a", false),
        ] {
            assert_eq!(path(top).covers(&path(other)), covered, "{top} {other}");
        }
    }
}
