//! Whether a log is whole.

use std::io::BufRead;

use serde::{Deserialize, Serialize};

use super::reader::{LogReader, ReadError};
use crate::digest::Digest;
use crate::record::Record;

/// Where a log ends: how many records there are and the digest of the last one's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChainHead {
    /// The number of records.
    pub records: u64,
    /// The digest of the last line without its newline; of the manifest when there is none.
    pub last: Digest,
}

impl ChainHead {
    /// The head of a log without a record.
    #[must_use]
    pub const fn empty(manifest: Digest) -> Self {
        Self { records: 0, last: manifest }
    }
}

/// The first record of a log that is not as it was written, and what is wrong.
#[derive(Debug, thiserror::Error)]
#[error("record {record} of the log: {fault}")]
#[non_exhaustive]
pub struct ChainError {
    /// The first bad record, from 0.
    pub record: u64,
    /// What is wrong with it.
    #[source]
    pub fault: ChainFault,
}

/// What is wrong with a record in its chain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainFault {
    /// It can't be read.
    #[error("it can't be read")]
    Unreadable(#[source] ReadError),
    /// It is not there; the next one found has number `found`.
    #[error("it is missing or out of its place, record {found} stands there")]
    Missing {
        /// The number of the record in its place.
        found: u64,
    },
    /// It is not what the record after it (or the expected head) was chained to.
    #[error("it was changed after it was written")]
    Changed,
    /// It is the first one and does not follow this manifest.
    #[error("it does not follow the box's manifest")]
    OtherManifest,
    /// It was not there when the head was noted.
    #[error("it is one too many, {expected} records were written")]
    Surplus {
        /// How many records there must be.
        expected: u64,
    },
    /// The log ends before it.
    #[error("the log ends before it, at least {expected} records were written")]
    CutShort {
        /// How many records there must be.
        expected: u64,
    },
}

/// Follows records from a manifest on, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follow {
    head: ChainHead,
    expected: Option<ChainHead>,
    noted: bool,
}

impl Follow {
    pub(crate) fn new(manifest: Digest, expected: Option<ChainHead>) -> Self {
        let head = ChainHead::empty(manifest);
        let noted = expected.is_none_or(|expected| expected == head);
        Self { head, expected, noted }
    }

    /// The next record, whose line has this digest.
    ///
    /// # Errors
    /// [`ChainError`] when it is not the next one.
    pub(crate) fn step(&mut self, record: &Record, digest: Digest) -> Result<(), ChainError> {
        let head = self.head;
        let bad = |record, fault| Err(ChainError { record, fault });
        if record.seq != head.records {
            return bad(head.records, ChainFault::Missing { found: record.seq });
        }
        if record.prev != head.last {
            return match head.records.checked_sub(1) {
                None => bad(0, ChainFault::OtherManifest),
                Some(before) => bad(before, ChainFault::Changed),
            };
        }
        self.head = ChainHead { records: head.records + 1, last: digest };
        if let Some(expected) = self.expected
            && expected.records == self.head.records
        {
            if expected.last != digest {
                return bad(head.records, ChainFault::Changed);
            }
            self.noted = true;
        }
        Ok(())
    }

    /// There is no more; yields where they led.
    ///
    /// # Errors
    /// [`ChainError`] when records that were expected are missing.
    pub(crate) fn end(self) -> Result<ChainHead, ChainError> {
        let bad = |record, fault| Err(ChainError { record, fault });
        match self.expected {
            Some(expected) if !self.noted => match self.head.records {
                // A log without a record can only differ from a noted empty one by its manifest.
                _ if expected.records == 0 => bad(0, ChainFault::OtherManifest),
                records => bad(records, ChainFault::CutShort { expected: expected.records }),
            },
            _ => Ok(self.head),
        }
    }
}

/// Reads a whole log and checks that every record follows the one before.
///
/// `manifest` is what the first record follows. `expected` is a head that was noted earlier (in a
/// receipt): the log must have at least those records, unchanged; without it, records removed from
/// the end and a change of the very last record can't be seen. `each` is given every good record in
/// order.
///
/// # Errors
/// [`ChainError`] names the first bad record. A record that was edited is found through the record
/// after it, and it is the edited one that is named.
pub fn verify_chain(
    source: impl BufRead,
    manifest: Digest,
    expected: Option<ChainHead>,
    mut each: impl FnMut(&Record),
) -> Result<ChainHead, ChainError> {
    let mut follow = Follow::new(manifest, expected);
    for line in LogReader::new(source) {
        let line = line.map_err(|error| ChainError {
            record: error.number(),
            fault: ChainFault::Unreadable(error),
        })?;
        follow.step(&line.record, line.digest)?;
        each(&line.record);
    }
    follow.end()
}
