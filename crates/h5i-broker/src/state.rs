//! What a broker's grants stand at.

use std::time::SystemTime;

use crate::event::End;

/// A grant in the hands of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrantState {
    /// Name of the grant.
    pub grant: String,
    /// Number of the run in its session.
    pub run: u64,
    /// Requests that passed.
    pub uses: u64,
    /// Bytes of their bodies.
    pub sent: u64,
    /// Bytes of the bodies of their answers.
    pub received: u64,
    /// What is left of the budgets.
    pub left: Left,
    /// When it ends by itself.
    pub until: Option<SystemTime>,
    /// How it ended; `None` while it holds.
    pub ended: Option<End>,
}

/// What is left of a grant's budgets; `None` where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// Requests.
    pub requests: Option<u64>,
    /// Bytes of requests' bodies.
    pub sent: Option<u64>,
    /// Bytes of answers' bodies.
    pub received: Option<u64>,
}
