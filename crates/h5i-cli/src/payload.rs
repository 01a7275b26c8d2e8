//! Output of a run that is kept on the host, where its policy says so.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use h5i_confine::{OutputTap, TappedStream};
use h5i_export::{Digest, Event, Redactor, Stream, payload_name};

use crate::failure::Failure;
use crate::path_error::{Action, PathError};
use crate::store::random_hex;

/// Where it is kept, in the box's host directory.
pub(crate) const PAYLOADS: &str = "payloads";
/// Bytes of one output of a run that are kept.
const KEPT: u64 = 4 << 20;

/// Keeps what a run writes: the first of it, redacted. Its files have their names once its number is
/// known and it is over; what a crash leaves has none that a record names.
#[derive(Debug)]
pub(crate) struct Payloads {
    directory: PathBuf,
    streams: Mutex<BTreeMap<Stream, Payload>>,
}

#[derive(Debug)]
struct Payload {
    path: PathBuf,
    /// None once it can't be written any more.
    file: Option<File>,
    redactor: Redactor,
    bytes: u64,
    kept: u64,
}

impl Payloads {
    /// Keeps output of one run below a box's host directory.
    ///
    /// # Errors
    /// When the directory can't be made.
    pub(crate) fn new(host_dir: &Path) -> Result<Self, PathError> {
        let directory = host_dir.join(PAYLOADS);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(PathError::at(Action::CreateDirectory, &directory)(error))
            }
            _ => Ok(Self { directory, streams: Mutex::default() }),
        }
    }

    /// The run is over, and this was its number: what is kept of it, as records.
    ///
    /// # Errors
    /// When a payload can't be finished.
    pub(crate) fn finish(&self, run: u64) -> Result<Vec<Event>, Failure> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = Vec::new();
        for (stream, payload) in std::mem::take(&mut *streams) {
            let Payload { path, file, redactor, bytes, kept } = payload;
            if let Some(mut file) = file {
                file.write_all(&redactor.finish()).map_err(PathError::at(Action::Write, &path))?;
            }
            let name = self.directory.join(payload_name(run, stream));
            fs::rename(&path, &name).map_err(PathError::at(Action::Rename, &path))?;
            let read = File::open(&name).and_then(Digest::of_reader);
            let payload = read.map_err(PathError::at(Action::Read, &name))?;
            events.push(Event::Output { stream, bytes, kept, payload });
        }
        Ok(events)
    }
}

impl OutputTap for Payloads {
    fn wrote(&self, stream: TappedStream, bytes: &[u8]) {
        let stream = match stream {
            TappedStream::Stderr => Stream::Stderr,
            TappedStream::Terminal => Stream::Terminal,
            _ => Stream::Stdout,
        };
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a payload nothing is said of it, and its run goes on.
        let payload = match streams.entry(stream) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                match Payload::begin(&self.directory) {
                    Ok(payload) => place.insert(payload),
                    Err(_) => return,
                }
            }
        };
        payload.take(bytes);
    }
}

impl Payload {
    fn begin(directory: &Path) -> io::Result<Self> {
        let name = random_hex(8).map_err(io::Error::other)?;
        let path = directory.join(format!(".{name}.new"));
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, file: Some(file), redactor: Redactor::default(), bytes: 0, kept: 0 })
    }

    fn take(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        let left = usize::try_from(KEPT - self.kept).unwrap_or(usize::MAX);
        let part = &bytes[..bytes.len().min(left)];
        if let (Some(file), false) = (&mut self.file, part.is_empty()) {
            match file.write_all(&self.redactor.push(part)) {
                Ok(()) => self.kept += part.len() as u64,
                // A full disk: what is there is what is kept.
                Err(_) => self.file = None,
            }
        }
    }
}

impl Drop for Payloads {
    /// What was not finished belongs to no run.
    fn drop(&mut self) {
        let streams = self.streams.get_mut().unwrap_or_else(PoisonError::into_inner);
        for payload in streams.values() {
            fs::remove_file(&payload.path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_bounded_redacted_and_named_by_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let payloads = Payloads::new(dir.path()).unwrap();
        let secret = format!("ghp_{}", "A1b2".repeat(9));
        let (first, second) = secret.split_at(7);
        for part in ["token: ", first, second, "\n"] {
            payloads.wrote(TappedStream::Stderr, part.as_bytes());
        }
        for _ in 0..100 {
            payloads.wrote(TappedStream::Stdout, &[b'x'; 60_000]);
        }
        let events = payloads.finish(3).unwrap();
        let [
            Event::Output { stream: Stream::Stdout, bytes: 6_000_000, kept: KEPT, payload },
            rest @ ..,
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        let read = |name: &str| fs::read(dir.path().join(PAYLOADS).join(name)).unwrap();
        let content = read("output-3-stdout.txt");
        assert_eq!((content.len() as u64, Digest::of(&content)), (KEPT, *payload));
        assert_eq!(read("output-3-stderr.txt"), b"token: [redacted: code host token]\n");
        assert_eq!(rest.len(), 1);
        // A run that did not come to its end leaves nothing.
        let unfinished = Payloads::new(dir.path()).unwrap();
        unfinished.wrote(TappedStream::Terminal, b"x");
        drop(unfinished);
        assert_eq!(fs::read_dir(dir.path().join(PAYLOADS)).unwrap().count(), 2);
    }
}
