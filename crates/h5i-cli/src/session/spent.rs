//! A budget that a run was stopped for.

use serde::{Deserialize, Serialize};

use crate::json_bytes::JsonBytes;

/// A budget that a run was stopped for, and who spent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// The limit, by its policy name.
    pub limit: String,
    /// How much was used, in the limit's unit.
    pub used: u64,
    /// How much is allowed, in the limit's unit.
    pub allowed: u64,
    /// Who took the most, or the run's program, as the box numbers it; 0 when it was gone.
    pub pid: u32,
    /// Its program, by its path in the box; empty when it was gone.
    pub program: JsonBytes,
}

impl From<&h5i_confine::Spent> for Spent {
    fn from(spent: &h5i_confine::Spent) -> Self {
        Self {
            limit: spent.stop.limit.name().to_owned(),
            used: spent.stop.used,
            allowed: spent.stop.allowed,
            pid: spent.pid,
            program: JsonBytes(spent.program.clone()),
        }
    }
}
