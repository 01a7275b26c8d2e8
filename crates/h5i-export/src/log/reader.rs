//! Reading a log line by line in bounded memory.

use std::io::{self, BufRead, Read as _};

use super::MAX_LINE;
use crate::digest::Digest;
use crate::record::{Record, RecordError};

/// A streaming reader of records; it checks each line alone, the chain is for
/// [`verify_chain`](super::verify_chain).
#[derive(Debug)]
pub struct LogReader<R> {
    source: R,
    number: u64,
    buffer: Vec<u8>,
}

/// One whole line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Its number, from 0.
    pub number: u64,
    /// What it says.
    pub record: Record,
    /// The digest of its bytes without the newline, as the next record's `prev` has it.
    pub digest: Digest,
}

/// Why the next line can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source failed.
    #[error("can't read line {number} of the log")]
    Io {
        /// The line, from 0.
        number: u64,
        /// The failure.
        source: io::Error,
    },
    /// The line is longer than [`MAX_LINE`].
    #[error("line {number} of the log is longer than {MAX_LINE} bytes")]
    TooLong {
        /// The line, from 0.
        number: u64,
    },
    /// The last line has no newline: it was not written to its end.
    #[error("line {number} of the log was not written to its end")]
    Torn {
        /// The line, from 0.
        number: u64,
        /// How many bytes of it there are.
        bytes: usize,
    },
    /// The line is not a record.
    #[error("line {number} of the log is not a record")]
    Record {
        /// The line, from 0.
        number: u64,
        /// What is wrong with it.
        source: RecordError,
    },
}

impl ReadError {
    /// The line that can't be read, from 0.
    #[must_use]
    pub const fn number(&self) -> u64 {
        match self {
            Self::Io { number, .. }
            | Self::TooLong { number }
            | Self::Torn { number, .. }
            | Self::Record { number, .. } => *number,
        }
    }
}

impl<R: BufRead> LogReader<R> {
    /// Reads from `source`, whose first byte is the first byte of a log.
    pub const fn new(source: R) -> Self {
        Self { source, number: 0, buffer: Vec::new() }
    }

    fn read_line(&mut self) -> Result<Option<Line>, ReadError> {
        let number = self.number;
        self.buffer.clear();
        let limit = MAX_LINE as u64 + 1;
        let read = self.source.by_ref().take(limit).read_until(b'\n', &mut self.buffer);
        read.map_err(|source| ReadError::Io { number, source })?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        if self.buffer.last() != Some(&b'\n') {
            return Err(if self.buffer.len() > MAX_LINE {
                ReadError::TooLong { number }
            } else {
                ReadError::Torn { number, bytes: self.buffer.len() }
            });
        }
        self.buffer.pop();
        let record = Record::from_line(&self.buffer)
            .map_err(|source| ReadError::Record { number, source })?;
        self.number += 1;
        Ok(Some(Line { number, record, digest: Digest::of(&self.buffer) }))
    }
}

impl<R: BufRead> Iterator for LogReader<R> {
    type Item = Result<Line, ReadError>;

    /// The next line. After an error the reader stands where it failed; going on is for those who
    /// want what is left, not for those who trust it.
    fn next(&mut self) -> Option<Self::Item> {
        self.read_line().transpose()
    }
}
