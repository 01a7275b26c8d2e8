//! A log that is whole, for what is made of all its records.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt as _;

use crate::digest::{Digest, DigestReader};
use crate::log::{ChainError, ChainFault, ChainHead, ReadError, verify_chain};
use crate::report::History;

/// A log that was read to an end and is whole up to there: what its records tell, and where they lead.
///
/// The records themselves stay in the file. A bundle's receipt reads them from there once more, and
/// is not made if they are others by then.
#[derive(Debug)]
pub struct WholeLog {
    file: File,
    length: u64,
    digest: Digest,
    manifest: Digest,
    head: ChainHead,
    history: History,
}

impl WholeLog {
    /// Reads the first `length` bytes of a log, in bounded memory.
    ///
    /// # Errors
    /// [`ChainError`] names the first bad record.
    pub fn read(file: File, length: u64, manifest: Digest) -> Result<Self, ChainError> {
        let mut history = History::new();
        let mut source = DigestReader::new(Part { file: &file, at: 0, end: length });
        let head = verify_chain(BufReader::new(&mut source), manifest, None, |record| {
            history.take(record);
        })?;
        let digest = source.finish().map_err(|source| {
            let number = head.records;
            let fault = ChainFault::Unreadable(ReadError::Io { number, source });
            ChainError { record: number, fault }
        })?;
        Ok(Self { file, length, digest, manifest, head, history })
    }

    /// What the records tell.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// Where they lead.
    #[must_use]
    pub const fn head(&self) -> ChainHead {
        self.head
    }

    /// The digest of the box's manifest, which the first record follows.
    pub(crate) const fn manifest(&self) -> Digest {
        self.manifest
    }

    /// Gives the lines once more; false when they are not those that were read before.
    ///
    /// # Errors
    /// What the file or `give` fails with.
    pub(crate) fn again(
        &self,
        give: impl FnOnce(&mut dyn BufRead) -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut source = DigestReader::new(Part { file: &self.file, at: 0, end: self.length });
        give(&mut BufReader::with_capacity(1 << 16, &mut source))?;
        source.finish().map(|digest| digest == self.digest)
    }
}

/// The first bytes of a file, from a place of its own.
struct Part<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = left.min(into.len());
        let read = self.file.read_at(into.get_mut(..most).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
