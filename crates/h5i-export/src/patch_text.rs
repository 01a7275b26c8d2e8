//! A patch, however large.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::digest::Digest;

/// Up to this size a patch is kept in memory, in bytes.
const IN_MEMORY: usize = 1 << 20;

/// The text of a patch and its digest. A small one is in memory, a larger one in a file of the
/// host's that has no name, so that nobody changes it and it goes by itself.
#[derive(Clone)]
pub struct PatchText {
    place: Place,
    length: u64,
    digest: Digest,
}

#[derive(Clone)]
enum Place {
    Memory(Arc<[u8]>),
    File(Arc<File>),
}

impl PatchText {
    /// Keeps all that `source` gives; `scratch` is a directory of the host for a temporary file.
    ///
    /// # Errors
    /// What `source` or the file fails with.
    pub fn keep(mut source: impl Read, scratch: &Path) -> io::Result<Self> {
        let mut writer = PatchWriter::new(scratch);
        io::copy(&mut source, &mut writer)?;
        writer.finish()
    }

    /// The text from its beginning.
    pub fn reader(&self) -> impl BufRead + '_ {
        BufReader::with_capacity(1 << 16, Reader { place: &self.place, at: 0 })
    }

    /// The whole text in memory.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn to_vec(&self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        self.reader().read_to_end(&mut all)?;
        Ok(all)
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.length
    }

    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The digest of the text.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

impl PartialEq for PatchText {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for PatchText {}

impl std::fmt::Debug for PatchText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PatchText")
            .field("length", &self.length)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// A place of its own in the text: readers do not share one.
struct Reader<'a> {
    place: &'a Place,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match self.place {
            Place::Memory(text) => {
                let at = usize::try_from(self.at).unwrap_or(usize::MAX);
                text.get(at..).unwrap_or_default().read(into)?
            }
            Place::File(file) => file.read_at(into, self.at)?,
        };
        self.at += read as u64;
        Ok(read)
    }
}

/// A patch that is being written.
pub(crate) struct PatchWriter {
    scratch: PathBuf,
    hash: Sha256,
    length: u64,
    buffer: Vec<u8>,
    /// Once the text is too large for memory; the buffer is then what is not written yet.
    file: Option<File>,
}

impl PatchWriter {
    pub(crate) fn new(scratch: &Path) -> Self {
        let scratch = scratch.to_owned();
        Self { scratch, hash: Sha256::new(), length: 0, buffer: Vec::new(), file: None }
    }

    pub(crate) fn finish(mut self) -> io::Result<PatchText> {
        if self.file.is_some() {
            self.spill()?;
        }
        let place = match self.file {
            Some(file) => Place::File(Arc::new(file)),
            None => Place::Memory(self.buffer.into()),
        };
        Ok(PatchText { place, length: self.length, digest: Digest::of_hash(self.hash) })
    }

    fn spill(&mut self) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.scratch)?,
        };
        file.write_all(&self.buffer)?;
        self.buffer.clear();
        self.file = Some(file);
        Ok(())
    }
}

impl Write for PatchWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > IN_MEMORY {
            self.spill()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::{IN_MEMORY, PatchText};
    use crate::digest::Digest;

    #[test]
    fn small_and_large_texts_come_back_and_readers_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().expect("a directory");
        for length in [0, 1, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY + 17] {
            let text: Vec<u8> =
                (0..length).map(|at| u8::try_from(at % 251).expect("small")).collect();
            let kept = PatchText::keep(&text[..], dir.path()).expect("keeps");
            assert_eq!((kept.len(), kept.digest()), (length as u64, Digest::of(&text)));
            let mut half = vec![0; length / 2];
            let mut reader = kept.reader();
            reader.read_exact(&mut half).expect("reads");
            assert!(kept.to_vec().expect("reads") == text, "{length}");
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).expect("reads");
            assert!([half, rest].concat() == text, "{length}");
            // The file has no name.
            assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
        }
    }
}
