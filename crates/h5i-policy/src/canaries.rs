//! Credentials that are planted in a box's home, to see who opens them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::home_path::HomePath;

/// Credentials that are planted in a box's home: at most 16 files, none of which stands where another
/// one's directory must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeSet<HomePath>", into = "BTreeSet<HomePath>")]
pub struct Canaries(BTreeSet<HomePath>);

/// Why paths can't be planted together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanariesError {
    /// One would be the directory of another one.
    #[error("`{}` can't be a file and hold `{}`", upper.escaped(), lower.escaped())]
    Nested {
        /// The one that would be a directory.
        upper: HomePath,
        /// The one below it.
        lower: HomePath,
    },
    /// One stands there twice.
    #[error("`{}` is listed twice", path.escaped())]
    Twice {
        /// The path.
        path: HomePath,
    },
    /// More than the bound.
    #[error("at most {limit} credentials are planted, not {count}")]
    TooMany {
        /// The bound.
        limit: usize,
        /// How many there would be.
        count: usize,
    },
}

impl CanariesError {
    /// What to do instead.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Nested { .. } | Self::Twice { .. } => "leave one of them out",
            Self::TooMany { .. } => "plant those that a thief looks for first",
        }
    }
}

impl Canaries {
    /// Most files.
    pub const MOST: usize = 16;

    /// Checks that these can stand beside each other.
    ///
    /// # Errors
    /// [`CanariesError::Nested`] and [`CanariesError::TooMany`].
    pub fn new(paths: BTreeSet<HomePath>) -> Result<Self, CanariesError> {
        if paths.len() > Self::MOST {
            return Err(CanariesError::TooMany { limit: Self::MOST, count: paths.len() });
        }
        for upper in &paths {
            if let Some(lower) = paths.iter().find(|path| *path != upper && upper.covers(path)) {
                let (upper, lower) = (upper.clone(), lower.clone());
                return Err(CanariesError::Nested { upper, lower });
            }
        }
        Ok(Self(paths))
    }

    /// Those of both.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn union(&self, other: &Self) -> Result<Self, CanariesError> {
        Self::new(&self.0 | &other.0)
    }

    /// The paths, in order.
    pub fn iter(&self) -> impl Iterator<Item = &HomePath> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that `other` does not have.
    pub(crate) fn beyond<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a HomePath> {
        self.0.difference(&other.0)
    }
}

impl TryFrom<BTreeSet<HomePath>> for Canaries {
    type Error = CanariesError;
    fn try_from(paths: BTreeSet<HomePath>) -> Result<Self, Self::Error> {
        Self::new(paths)
    }
}

impl From<Canaries> for BTreeSet<HomePath> {
    fn from(canaries: Canaries) -> Self {
        canaries.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Canaries, CanariesError, HomePath};

    fn paths<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Canaries, CanariesError> {
        Canaries::new(texts.into_iter().map(|text| HomePath::new(text).expect(text)).collect())
    }

    #[test]
    fn files_that_can_not_stand_beside_each_other_are_refused() {
        let nested = paths(["~/.aws", "~/.aws-sso", "~/.aws/credentials"]).expect_err("nested");
        assert!(matches!(nested, CanariesError::Nested { .. }), "{nested}");
        paths(["~/.aws-sso", "~/.aws/config", "~/.aws/credentials"]).expect("beside each other");
        let many: Vec<String> = (0..17).map(|number| format!("~/{number}")).collect();
        paths(many[1..].iter().map(String::as_str)).expect("as many as may be");
        let error = paths(many.iter().map(String::as_str)).expect_err("one more");
        assert_eq!(error, CanariesError::TooMany { limit: 16, count: 17 });
        let json = "[\"~/a\",\"~/a/b\"]";
        serde_json::from_str::<Canaries>(json).expect_err("nested");
    }
}
