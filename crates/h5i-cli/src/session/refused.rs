//! A kind of system call that a run was refused.

use h5i_confine::RefusedCall;
use serde::{Deserialize, Serialize};

/// A kind of system call that a run was refused, for its summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The call's name.
    pub call: String,
    /// Its first arguments, as numbers.
    pub args: [u64; 3],
    /// The program, by its path in the box; empty when it was gone.
    pub program: Vec<u8>,
    /// How often.
    pub count: u64,
    /// Why.
    pub reason: String,
    /// The setting that would have allowed it, where one would.
    pub allowed_by: Option<String>,
}

impl From<&RefusedCall> for Refused {
    fn from(call: &RefusedCall) -> Self {
        Self {
            call: call.name.to_owned(),
            args: call.args,
            program: call.program.clone(),
            count: call.count,
            reason: call.reason.to_owned(),
            allowed_by: call.allowed_by.map(str::to_owned),
        }
    }
}

impl Refused {
    /// Whether both are of one kind: call, arguments and program are the same.
    pub(crate) fn is_kind_of(&self, other: &Self) -> bool {
        (&self.call, self.args, &self.program) == (&other.call, other.args, &other.program)
    }

    /// Counts one more with its kind.
    pub(crate) fn count_among(self, known: &mut Vec<Self>) {
        match known.iter_mut().find(|kind| kind.is_kind_of(&self)) {
            Some(kind) => kind.count += self.count,
            None => known.push(self),
        }
    }
}
