//! What a violation does beyond the record.

use serde::{Deserialize, Serialize};

/// What a violation does beyond the record, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct React {}
