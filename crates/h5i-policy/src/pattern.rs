//! The one matcher for workspace files, grants and export.

use serde::{Deserialize, Serialize};

/// A gitignore-like pattern over bytes, case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);
