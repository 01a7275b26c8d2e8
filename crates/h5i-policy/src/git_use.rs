//! What git may do by a grant.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::escape::Escaped;
use crate::pattern::Pattern;

/// What of git's smart HTTP a grant lets pass, within its paths. gitprotocol-http(5).
///
/// Each lets pass what those before it do, but for [`Any`](Self::Any), which is not about git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GitUse {
    /// Requests are not looked at as git's.
    Any,
    /// Git may fetch; nothing else passes, also nothing that is not git's.
    Fetch,
    /// Git may fetch, and push to the references that one of the patterns matches; nothing else
    /// passes. A reference is matched by its whole name (`refs/heads/main`); none is deleted. An
    /// empty list lets git ask what there is to be pushed to, and push nothing.
    Push(BTreeSet<Pattern>),
}

impl GitUse {
    /// Whether everything that passes here passes `outer` too.
    #[must_use]
    pub fn is_within(&self, outer: &Self) -> bool {
        match (self, outer) {
            (_, Self::Any) | (Self::Fetch, _) => true,
            (Self::Any, _) | (Self::Push(_), Self::Fetch) => false,
            (Self::Push(own), Self::Push(outer)) => own.is_subset(outer),
        }
    }

    /// What passes here and there.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Any, narrow) | (narrow, Self::Any) => narrow.clone(),
            (Self::Fetch, _) | (_, Self::Fetch) => Self::Fetch,
            (Self::Push(a), Self::Push(b)) => Self::Push(a & b),
        }
    }

    /// Whether the reference is one that may be pushed to.
    #[must_use]
    pub fn pushes_to(&self, reference: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Fetch => false,
            Self::Push(list) => list.iter().any(|pattern| pattern.matches(reference, false)),
        }
    }
}

impl fmt::Display for GitUse {
    /// `fetch and push to refs/heads/agent/**`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("do anything"),
            Self::Fetch => f.write_str("fetch"),
            Self::Push(list) if list.is_empty() => f.write_str("fetch and push to nothing"),
            Self::Push(list) => {
                f.write_str("fetch and push to ")?;
                for (at, pattern) in list.iter().enumerate() {
                    write!(f, "{}{}", if at > 0 { ", " } else { "" }, Escaped(pattern.as_str()))?;
                }
                Ok(())
            }
        }
    }
}
