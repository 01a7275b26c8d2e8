//! Names that a person gives to boxes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::shown::Shown;

/// A box's name: 1 to 63 characters of `a-z 0-9 . _ -`, the first a letter or digit.
///
/// It is a file name without tricks and a valid component of a Git ref: no `..`, no `.` at the end,
/// no `.lock` at the end. Names that h5i makes for its own use start with a dot, so they can't
/// collide with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BoxName(String);

/// Why a text is not a [`BoxName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoxNameError {
    /// It is empty.
    #[error("a box name can't be empty")]
    Empty,
    /// It is longer than 63 characters.
    #[error("a box name has at most 63 characters, this one has {length}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The first character is neither a lower-case letter nor a digit.
    #[error("box name `{}` must start with a lower-case letter or a digit", Shown::text(name))]
    Start {
        /// The text as given.
        name: String,
    },
    /// A character is none of `a-z 0-9 . _ -`.
    #[error("box name `{}` may have a-z, 0-9, `.`, `_` and `-` only", Shown::text(name))]
    Character {
        /// The text as given.
        name: String,
    },
    /// It has `..`, or ends with `.` or `.lock`, which Git refuses in the name of a branch.
    #[error(
        "box name `{name}` can't be part of a branch name: no `..`, no `.` or `.lock` at the end"
    )]
    NotARef {
        /// The text as given.
        name: String,
    },
}

impl BoxName {
    /// Checks `name` and keeps it.
    ///
    /// # Errors
    /// One variant of [`BoxNameError`] for each rule in the type's description.
    pub fn new(name: &str) -> Result<Self, BoxNameError> {
        let Some(first) = name.bytes().next() else { return Err(BoxNameError::Empty) };
        if name.len() > 63 {
            return Err(BoxNameError::TooLong { length: name.len() });
        }
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        if !plain(first) {
            return Err(BoxNameError::Start { name: name.to_owned() });
        }
        if !name.bytes().all(|b| plain(b) || matches!(b, b'.' | b'_' | b'-')) {
            return Err(BoxNameError::Character { name: name.to_owned() });
        }
        if name.contains("..") || name.ends_with('.') || name.ends_with(".lock") {
            return Err(BoxNameError::NotARef { name: name.to_owned() });
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BoxName {
    type Error = BoxNameError;
    fn try_from(name: String) -> Result<Self, BoxNameError> {
        Self::new(&name)
    }
}

impl std::str::FromStr for BoxName {
    type Err = BoxNameError;
    fn from_str(name: &str) -> Result<Self, BoxNameError> {
        Self::new(name)
    }
}

impl From<BoxName> for String {
    fn from(name: BoxName) -> Self {
        name.0
    }
}

impl fmt::Display for BoxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{BoxName, BoxNameError};

    #[test]
    fn plain_names_are_accepted() {
        for name in ["a", "7", "fix-auth", "npm-test-7f3a", "a.b_c-d", "a-.b", "x.locked"] {
            assert_eq!(BoxName::new(name).unwrap().as_str(), name);
        }
        assert_eq!(BoxName::new(&"a".repeat(63)).unwrap().as_str().len(), 63);
    }

    #[test]
    fn each_rule_refuses_what_breaks_it() {
        let refused = |name: &str| BoxName::new(name).unwrap_err();
        assert_eq!(refused(""), BoxNameError::Empty);
        assert_eq!(refused(&"a".repeat(64)), BoxNameError::TooLong { length: 64 });
        for name in [".a", "-a", "_a", "Abc", "/a", "../a", "ä", "\u{202e}a"] {
            assert!(matches!(refused(name), BoxNameError::Start { .. }), "{name}");
        }
        for name in ["aB", "a/b", "a b", "a\0", "a\n", "aä", "a~", "a^", "a:", "a@{"] {
            assert!(matches!(refused(name), BoxNameError::Character { .. }), "{name}");
        }
        for name in ["a..b", "a.", "a.lock", "a.."] {
            assert!(matches!(refused(name), BoxNameError::NotARef { .. }), "{name}");
        }
    }

    #[test]
    fn a_refusal_shows_control_characters_escaped() {
        assert!(!BoxName::new("a\x1b[2J").unwrap_err().to_string().contains('\x1b'));
    }

    #[test]
    fn every_accepted_name_is_a_branch_component_to_git() {
        for name in ["a", "a.b", "a-.b", "a_b", "x.locked", "0"] {
            assert!(git2::Branch::name_is_valid(name).unwrap(), "{name}");
        }
    }
}
