//! Paths below a box's home.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::escape::Escaped;

/// A path of a file below the box's home, written with `~/`: no `.`, no `..`, no empty component, no
/// NUL and no control character, at most 1,024 bytes.
///
/// Holding one says nothing about what is there; it is text, checked once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HomePath(String);

/// Why a string is not a [`HomePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HomePathError {
    /// It does not start with `~/`.
    #[error("a path of the box's home starts with `~/`")]
    NotBelowHome,
    /// It has a `.`, a `..` or an empty component.
    #[error("a path of the box's home must name a file, without `.`, `..` or empty components")]
    NotNormal,
    /// It has a NUL byte or a control character.
    #[error("a path of the box's home must not have control characters")]
    Control,
    /// It, or one of its components, is longer than a file system takes.
    #[error("a path of the box's home has at most 1024 bytes, and 255 between two `/`")]
    TooLong,
}

/// Largest path and largest component, in bytes.
const LONGEST: usize = 1024;
const LONGEST_COMPONENT: usize = 255;

impl HomePath {
    /// Checks `text` and keeps it.
    ///
    /// # Errors
    /// One variant of [`HomePathError`] for each rule in the type's description.
    pub fn new(text: &str) -> Result<Self, HomePathError> {
        let Some(below) = text.strip_prefix("~/") else {
            return Err(HomePathError::NotBelowHome);
        };
        if text.chars().any(char::is_control) {
            return Err(HomePathError::Control);
        }
        if below.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(HomePathError::NotNormal);
        }
        if text.len() > LONGEST || below.split('/').any(|part| part.len() > LONGEST_COMPONENT) {
            return Err(HomePathError::TooLong);
        }
        Ok(Self(text.to_owned()))
    }

    /// The path as it is written, with `~/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path relative to the home.
    #[must_use]
    pub fn below_home(&self) -> &str {
        self.0.strip_prefix("~/").unwrap_or(&self.0)
    }

    pub(crate) fn escaped(&self) -> Escaped<'_> {
        Escaped(&self.0)
    }

    /// Whether `other` is this path or lies below it, by text.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.0.strip_prefix(&self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl HomePathError {
    /// What to do instead.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotBelowHome | Self::Control | Self::NotNormal => {
                "write it as in \"~/.aws/credentials\""
            }
            Self::TooLong => "choose a shorter one",
        }
    }
}

impl TryFrom<String> for HomePath {
    type Error = HomePathError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<HomePath> for String {
    fn from(path: HomePath) -> Self {
        path.0
    }
}

impl fmt::Display for HomePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{HomePath, HomePathError};

    #[test]
    fn what_is_no_file_below_the_home_is_refused() {
        let long = format!("~/{}", "a/".repeat(512) + "a");
        let part = format!("~/{}", "a".repeat(256));
        for (text, error) in [
            ("", HomePathError::NotBelowHome),
            ("~", HomePathError::NotBelowHome),
            (".aws/credentials", HomePathError::NotBelowHome),
            ("/home/box/.aws/credentials", HomePathError::NotBelowHome),
            ("~root/.ssh/id_rsa", HomePathError::NotBelowHome),
            ("~/", HomePathError::NotNormal),
            ("~//a", HomePathError::NotNormal),
            ("~/a/", HomePathError::NotNormal),
            ("~/./a", HomePathError::NotNormal),
            ("~/a/../b", HomePathError::NotNormal),
            ("~/..", HomePathError::NotNormal),
            ("~/a\0b", HomePathError::Control),
            ("~/a\nb", HomePathError::Control),
            ("~/a\u{9b}b", HomePathError::Control),
            (&long, HomePathError::TooLong),
            (&part, HomePathError::TooLong),
        ] {
            assert_eq!(HomePath::new(text), Err(error), "{text:?}");
        }
        for text in ["~/a", "~/.aws/credentials", "~/...", "~/a b/é", &part[..257]] {
            assert_eq!(HomePath::new(text).expect(text).as_str(), text);
        }
        assert_eq!(HomePath::new("~/.a/b").expect("a path").below_home(), ".a/b");
    }
}
