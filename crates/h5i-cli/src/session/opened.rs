//! A planted credential that a run opened.

use serde::{Deserialize, Serialize};

/// A planted credential that a run opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// Its path in the policy.
    pub path: String,
    /// How often, at least.
    pub count: u64,
}
