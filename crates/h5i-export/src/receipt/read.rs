//! Reading a receipt of any length, one record after the other.

use std::io::{BufRead, BufReader, Read};

use super::Receipt;
use super::fields::{Fields, MAX_NAME, RECORDS, Taken, longest, there};
use super::once::each_key_once;
use super::pieces::{Next, PieceError, Pieces};
use crate::digest::Digest;
use crate::escape::Escaped;
use crate::log::{ChainError, ChainFault, ChainHead, Follow, MAX_LINE};
use crate::record::Record;

/// Why a text is no receipt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// It is not the text of one JSON object, or one with a value that is too long.
    #[error("it is not one JSON object")]
    Text(#[source] PieceError),
    /// It has a field that no receipt has.
    #[error("a receipt has no field `{}`", Escaped::new(field.as_bytes()))]
    Unknown {
        /// Its name.
        field: String,
    },
    /// A field is missing, of another type, or has a key twice.
    #[error("its fields are not those of a receipt")]
    Fields(#[source] serde_json::Error),
    /// A field is there twice.
    #[error("`{field}` is there twice")]
    Twice {
        /// Which.
        field: String,
    },
    /// The records come before what they are compared with.
    #[error("`records` stands before `manifest` or `head`, which the records are compared with")]
    TooEarly,
    /// A record is longer than a line of a log, in whatever layout.
    #[error("record {number} is longer than {MAX_LINE} bytes")]
    LongRecord {
        /// Which, from 0.
        number: u64,
    },
    /// A record is none, or has a key twice.
    #[error("record {number} is none")]
    Record {
        /// Which, from 0.
        number: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl From<PieceError> for ReceiptError {
    fn from(error: PieceError) -> Self {
        Self::Text(error)
    }
}

/// A receipt as it was found, and whether its records are whole.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) receipt: Receipt,
    pub(crate) chain: Result<(), ChainError>,
}

/// Reads a receipt; `each` is given every record in its order, whether or not the chain holds there.
///
/// # Errors
/// [`ReceiptError`] with the first thing that is not a receipt's.
pub(crate) fn read(
    source: impl Read,
    mut each: impl FnMut(&Record),
) -> Result<Found, ReceiptError> {
    let mut pieces = Pieces::new(BufReader::with_capacity(1 << 16, source));
    let mut fields = Fields::default();
    let mut chain = None;
    pieces.take(b'{', "an object")?;
    let mut next = pieces.first(b'}')?;
    while next == Next::Item {
        let name = pieces.value(MAX_NAME)?;
        let name: String = serde_json::from_slice(name).map_err(ReceiptError::Fields)?;
        pieces.take(b':', "a colon")?;
        let twice = if name == RECORDS {
            let follow = Chain::from_fields(&fields)?;
            chain.replace(records(&mut pieces, follow, &mut each)?).is_some()
        } else {
            // Before its value is read: that may be as long as it likes.
            let Some(longest) = longest(&name) else {
                return Err(ReceiptError::Unknown { field: name });
            };
            let text = pieces.value(longest)?;
            fields.take(&name, text).map_err(ReceiptError::Fields)? == Taken::Twice
        };
        if twice {
            return Err(ReceiptError::Twice { field: name });
        }
        next = pieces.next(b'}')?;
    }
    pieces.end()?;
    let receipt = fields.receipt().map_err(ReceiptError::Fields)?;
    let chain = there(chain, RECORDS).map_err(ReceiptError::Fields)?.end(receipt.head);
    Ok(Found { receipt, chain })
}

/// Takes the list of records.
fn records(
    pieces: &mut Pieces<impl BufRead>,
    mut chain: Chain,
    each: &mut impl FnMut(&Record),
) -> Result<Chain, ReceiptError> {
    pieces.take(b'[', "a list")?;
    let mut next = pieces.first(b']')?;
    while next == Next::Item {
        let number = chain.number;
        let piece = pieces.value(MAX_LINE).map_err(|error| match error {
            PieceError::TooLong { .. } => ReceiptError::LongRecord { number },
            error => error.into(),
        })?;
        // Nearly always it is the record's line; in another layout the line is made of it.
        let (record, digest) = match Record::from_own_line(piece) {
            Some(record) => (record, Digest::of(piece)),
            None => {
                let failed = |source| ReceiptError::Record { number, source };
                each_key_once(piece).map_err(failed)?;
                let record: Record = serde_json::from_slice(piece).map_err(failed)?;
                let line = record.to_line().map_err(failed)?;
                (record, Digest::of(line.as_bytes()))
            }
        };
        each(&record);
        chain.step(&record, digest);
        next = pieces.next(b']')?;
    }
    Ok(chain)
}

/// Follows records until one does not follow.
struct Chain {
    follow: Follow,
    broken: Option<ChainError>,
    number: u64,
}

impl Chain {
    fn from_fields(fields: &Fields) -> Result<Self, ReceiptError> {
        let (Some(manifest), Some(head)) = (fields.manifest, fields.head) else {
            return Err(ReceiptError::TooEarly);
        };
        Ok(Self { follow: Follow::new(manifest, Some(head)), broken: None, number: 0 })
    }

    fn step(&mut self, record: &Record, digest: Digest) {
        self.number += 1;
        if self.broken.is_none() {
            self.broken = self.follow.step(record, digest).err();
        }
    }

    /// Whether the records were all of them and no more.
    fn end(self, head: ChainHead) -> Result<(), ChainError> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        if self.follow.end()? == head {
            return Ok(());
        }
        let fault = ChainFault::Surplus { expected: head.records };
        Err(ChainError { record: head.records, fault })
    }
}
