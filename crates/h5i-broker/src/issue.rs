//! What a run is given.

use std::collections::BTreeSet;
use std::time::SystemTime;

/// Grants for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issue {
    /// Number of the run in its session.
    pub run: u64,
    /// Which grants.
    pub which: Which,
    /// They hold from then on.
    pub not_before: Option<SystemTime>,
    /// They end then, or when their own time is over, whichever is first.
    pub not_after: Option<SystemTime>,
    /// For how many requests each.
    pub uses: Uses,
}

impl Issue {
    /// All grants, from now on, for as much as they say themselves.
    #[must_use]
    pub fn to(run: u64) -> Self {
        Self { run, which: Which::All, not_before: None, not_after: None, uses: Uses::Many }
    }
}

/// Which of a broker's grants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Which {
    /// All of them.
    All,
    /// Those of these names.
    Only(BTreeSet<String>),
}

/// For how many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uses {
    /// As many as the grant's budget allows.
    Many,
    /// One.
    Once,
}
