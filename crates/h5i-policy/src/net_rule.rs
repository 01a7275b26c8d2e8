//! One rule of a network allowlist.

use serde::{Deserialize, Serialize};

/// One rule of a network allowlist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NetRule(String);
