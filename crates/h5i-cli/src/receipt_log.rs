//! The receipt log of a box, and how what is seen and said of its sessions becomes records.

mod granted;
mod hidden;
mod looking;
mod planted;
mod recorder;
mod said;
mod seen;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use h5i_broker::{RedactorError, Secret};
use h5i_export::{
    Digest, Event, Lane, LogReader, LogWriter, Opened, Record, Timestamp, payload_name,
};

use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::payload::PAYLOADS;
use crate::store::{Manifest, StoredBox};

use hidden::Hidden;
pub use recorder::{Deeds, Recorder};

/// The log's name in the box's host directory.
pub const LOG: &str = "receipt.jsonl";
/// The counter of runs beside it.
const RUNS: &str = "runs";

/// The one writer of a box's log; its owner holds the box's lock.
#[derive(Debug)]
pub struct ReceiptLog {
    writer: Mutex<LogWriter>,
    hidden: Hidden,
    /// Why a record could not be appended.
    broke: OnceLock<String>,
    runs: PathBuf,
    /// What was found on opening.
    pub opened: Opened,
}

impl ReceiptLog {
    /// Begins the log of a box in the making.
    ///
    /// # Errors
    /// A failure when it can't be written.
    pub fn begin(
        host_dir: &Path,
        manifest_json: &[u8],
        manifest: &Manifest,
    ) -> Result<(), Failure> {
        let log = Self::open_at(host_dir, manifest_json)?;
        log.append(
            Lane::Host,
            None,
            Event::Create {
                name: manifest.name.to_string(),
                base: manifest.base.commit.clone(),
                tree: manifest.base.tree.clone(),
                tier: manifest.tier.to_string(),
                profile: manifest.profile.clone(),
                policy: manifest.policy_digest.to_string(),
            },
        )?;
        Ok(())
    }

    /// Opens the log of a box; a record that a crash cut off is moved aside and said.
    ///
    /// # Errors
    /// `corrupt` when its last record is none.
    pub fn open(stored: &StoredBox) -> Result<Self, Failure> {
        let host = stored.host_dir();
        let path = host.join("manifest.json");
        let manifest = fs::read(&path).map_err(PathError::at(Action::Read, &path))?;
        Self::open_at(&host, &manifest)
    }

    fn open_at(host_dir: &Path, manifest_json: &[u8]) -> Result<Self, Failure> {
        let digest = Digest::of(manifest_json);
        let (writer, opened) = LogWriter::open(&host_dir.join(LOG), digest, Timestamp::now())
            .map_err(|error| Failure::new(open_kind(&error), &error))?;
        let (writer, hidden, broke) = (Mutex::new(writer), Hidden::default(), OnceLock::new());
        Ok(Self { writer, hidden, broke, runs: host_dir.join(RUNS), opened })
    }

    /// The box's host directory.
    fn host_dir(&self) -> &Path {
        self.runs.parent().unwrap_or(&self.runs)
    }

    /// Appends a record.
    ///
    /// # Errors
    /// An I/O failure; what the record describes must not go on.
    pub fn append(&self, lane: Lane, run: Option<u64>, event: Event) -> Result<Record, Failure> {
        let event = self.hidden.cover(event);
        self.writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(Timestamp::now(), lane, run, event)
            .map_err(|error| {
                let failure = Failure::new(Kind::Io, &error);
                // The first one is the cause of what follows.
                self.broke.set(failure.message.clone()).ok();
                failure
            })
    }

    /// Why a record could not be appended, where one could not.
    pub(crate) fn broke(&self) -> Option<&str> {
        self.broke.get().map(String::as_str)
    }

    /// Keeps these values out of every record from here on.
    ///
    /// # Errors
    /// When they can't be searched for.
    pub(crate) fn hides(&self, grant: &str, secrets: &[Secret]) -> Result<(), RedactorError> {
        self.hidden.hide(grant, secrets)
    }

    /// Covers these values in output of a run that is kept; yields its record as it then is.
    ///
    /// # Errors
    /// When the payload can't be read or written.
    pub(crate) fn cover_output(&self, run: u64, event: Event) -> Result<Event, Failure> {
        let Event::Output { stream, bytes, kept, .. } = event else { return Ok(event) };
        let path = self.host_dir().join(PAYLOADS).join(payload_name(run, stream));
        // Some megabytes at most.
        let text = fs::read(&path).map_err(PathError::at(Action::Read, &path))?;
        let Some(clean) = self.hidden.cover_bytes(&text) else { return Ok(event) };
        fs::write(&path, &clean).map_err(PathError::at(Action::Write, &path))?;
        Ok(Event::Output { stream, bytes, kept, payload: Digest::of(&clean) })
    }

    /// Waits until every record is on the disk.
    ///
    /// # Errors
    /// An I/O failure.
    pub fn sync(&self) -> Result<(), Failure> {
        self.writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .sync()
            .map_err(|error| Failure::new(Kind::Io, &error))
    }

    /// The log's file, to bring it to the disk while records are appended.
    pub(crate) fn file(&self) -> Option<File> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).file().ok()
    }

    /// Where the log ends now.
    #[must_use]
    pub fn head(&self) -> h5i_export::ChainHead {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).head()
    }

    /// Takes the next number of a run.
    ///
    /// # Errors
    /// An I/O failure.
    pub fn next_run(&self) -> Result<u64, Failure> {
        use std::io::{Read as _, Seek as _, Write as _};
        // Written in place: a file that is truncated first is brought to the disk when it is closed.
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.runs)
            .map_err(PathError::at(Action::Open, &self.runs))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(PathError::at(Action::Read, &self.runs))?;
        let number = text.trim().parse::<u64>().unwrap_or(0) + 1;
        // Fixed width: a shorter number never leaves digits of a longer one behind.
        file.rewind()
            .and_then(|()| file.write_all(format!("{number:020}\n").as_bytes()))
            .map_err(PathError::at(Action::Write, &self.runs))?;
        Ok(number)
    }
}

fn open_kind(error: &h5i_export::OpenError) -> Kind {
    match error {
        h5i_export::OpenError::Corrupt { .. } | h5i_export::OpenError::TooLong { .. } => {
            Kind::Corrupt
        }
        _ => Kind::Io,
    }
}

/// Reads the records of a box, oldest first.
///
/// # Errors
/// An I/O failure; a bad record is an item of its own.
pub fn records(
    host_dir: &Path,
) -> Result<impl Iterator<Item = Result<h5i_export::Line, h5i_export::ReadError>>, Failure> {
    let path = host_dir.join(LOG);
    let file = File::open(&path).map_err(PathError::at(Action::Open, &path))?;
    Ok(LogReader::new(BufReader::new(file)))
}
