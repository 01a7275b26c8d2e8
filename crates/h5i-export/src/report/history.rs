//! What records tell, taken in one after the other.

use std::collections::BTreeMap;

use super::canaries::Canaries;
use super::claims::Claims;
use super::flows::Network;
use super::grants::Grants;
use super::refused_calls::RefusedCalls;
use super::runs::{Completeness, Ends, Runs};
use crate::bundle::payload_of;
use crate::digest::Digest;
use crate::record::Record;

/// What a report tells of a box's records.
///
/// It is made of the records one after the other and needs memory for what a report can show and for
/// what is going on, such as processes that live, but not for what is over, however much that was.
/// Of kinds beyond what can be shown, more than a thousand of one sort, it knows the number of their
/// records only.
#[derive(Debug, Default)]
pub struct History {
    pub(super) runs: Runs,
    pub(super) calls: RefusedCalls,
    pub(super) network: Network,
    pub(super) grants: Grants,
    pub(super) canaries: Canaries,
    pub(super) claims: Claims,
    ends: Ends,
    payloads: BTreeMap<String, Digest>,
}

impl History {
    /// Before the first record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next record.
    pub fn take(&mut self, record: &Record) {
        self.runs.take(record);
        self.calls.take(record);
        self.network.take(record);
        self.grants.take(record);
        self.canaries.take(record);
        self.claims.take(record);
        self.ends.take(record);
        self.payloads.extend(payload_of(record));
    }

    /// Whether every run came to an end of its own.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        self.ends.completeness()
    }

    /// The kept output that records tell of, by its name.
    pub(crate) const fn payloads(&self) -> &BTreeMap<String, Digest> {
        &self.payloads
    }
}

impl<'a> FromIterator<&'a Record> for History {
    fn from_iter<I: IntoIterator<Item = &'a Record>>(records: I) -> Self {
        let mut history = Self::new();
        records.into_iter().for_each(|record| history.take(record));
        history
    }
}
