//! One line of the receipt log.

mod argv;
mod byte_text;
mod claim;
mod event;
mod quick;
#[cfg(test)]
pub(crate) mod tests;
mod timestamp;
mod words;

use serde::{Deserialize, Serialize};

pub use argv::Argv;
pub use byte_text::ByteText;
pub use claim::{Gap, SpoolFault, Stream};
pub use event::Event;
pub use timestamp::{Timestamp, TimestampFormError};
pub use words::{CanaryLoss, FlowVerdict, GrantChange, GrantEnd, NetworkChange, Outcome, Unread};

use crate::digest::Digest;

/// The version of the record format that this crate writes and reads.
pub const RECORD_VERSION: u32 = 1;

/// Who observed what a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Lane {
    /// h5i itself: life of the box, exits.
    Host,
    /// The kernel: programs started, calls refused.
    Kernel,
    /// The relay, the resolver and the gate of the network.
    Net,
    /// The holder of the credentials.
    Broker,
    /// The holder of the browser's pipe.
    Browser,
    /// The box about itself: a claim, never an observation.
    Box,
}

/// One record.
///
/// Its line is one JSON object without spaces, fields in this order, then a newline. `prev` is the
/// SHA-256 of the exact bytes of the line before, *without* its newline; the first record's `prev`
/// is the digest of the box's manifest. A record has exactly one spelling, any other is refused on
/// reading.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its place in the log, from 0, without gaps.
    pub seq: u64,
    /// When the host wrote it.
    pub at: Timestamp,
    /// Who observed it.
    pub lane: Lane,
    /// The run that it belongs to.
    pub run: Option<u64>,
    /// What happened.
    pub event: Event,
    /// The digest of what is before it.
    pub prev: Digest,
}

/// Why a line is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is not JSON, lacks a field, has an unknown one, or a value of the wrong type.
    #[error("the line is not a record")]
    Malformed(#[source] serde_json::Error),
    /// Its version is one that this program does not know.
    #[error("the record has version {found}, this program reads version {RECORD_VERSION}")]
    Version {
        /// The version that it has.
        found: u32,
    },
    /// It has another spelling than the one that its content has: spaces, another order of fields,
    /// a field twice.
    #[error("the record is not written in its one canonical spelling")]
    NotCanonical,
}

/// The fields in the order of the line.
#[derive(Serialize)]
struct Flat<'a> {
    v: u32,
    seq: u64,
    at: Timestamp,
    lane: Lane,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u64>,
    #[serde(flatten)]
    event: &'a Event,
    prev: Digest,
}

impl Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { seq, at, lane, run, event, prev } = self;
        let (v, seq, at, lane, run, prev) = (RECORD_VERSION, *seq, *at, *lane, *run, *prev);
        Flat { v, seq, at, lane, run, event, prev }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = serde_json::Map::deserialize(deserializer)?;
        let record = Self::from_fields(fields.clone()).map_err(serde::de::Error::custom)?;
        // A kind without fields would let any field pass, and an optional one `null`.
        match serde_json::to_value(&record) {
            Ok(serde_json::Value::Object(written)) if written == fields => Ok(record),
            _ => Err(serde::de::Error::custom(RecordError::NotCanonical)),
        }
    }
}

impl Record {
    /// The record's line, without a newline.
    ///
    /// # Errors
    /// None in practice: every field is a string, a number or a list of them.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Reads a line, without its newline.
    ///
    /// # Errors
    /// One variant of [`RecordError`] for each way to be wrong.
    pub fn from_line(line: &[u8]) -> Result<Self, RecordError> {
        match Self::from_own_line(line) {
            Some(record) => Ok(record),
            None => Self::from_any_line(line),
        }
    }

    /// As [`Self::from_line`]; none for what is no record in its spelling, without a look at why.
    pub(crate) fn from_own_line(line: &[u8]) -> Option<Self> {
        let record = quick::read(line)?;
        record.to_line().is_ok_and(|written| written.as_bytes() == line).then_some(record)
    }

    /// As [`Self::from_line`], whatever the line is; says what is wrong with it.
    fn from_any_line(line: &[u8]) -> Result<Self, RecordError> {
        let fields = serde_json::from_slice(line).map_err(RecordError::Malformed)?;
        let record = Self::from_fields(fields)?;
        if record.to_line().map_err(RecordError::Malformed)?.as_bytes() == line {
            Ok(record)
        } else {
            Err(RecordError::NotCanonical)
        }
    }

    fn from_fields(
        mut fields: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, RecordError> {
        let version: u32 = take(&mut fields, "v")?;
        if version != RECORD_VERSION {
            return Err(RecordError::Version { found: version });
        }
        Ok(Self {
            seq: take(&mut fields, "seq")?,
            at: take(&mut fields, "at")?,
            lane: take(&mut fields, "lane")?,
            run: take(&mut fields, "run")?,
            prev: take(&mut fields, "prev")?,
            event: serde_json::from_value(fields.into()).map_err(RecordError::Malformed)?,
        })
    }
}

/// Removes one field and gives it its type; an absent one is `null`, which only `run` takes.
fn take<T: serde::de::DeserializeOwned>(
    fields: &mut serde_json::Map<String, serde_json::Value>,
    name: &str,
) -> Result<T, RecordError> {
    serde_json::from_value(fields.remove(name).unwrap_or_default()).map_err(RecordError::Malformed)
}
