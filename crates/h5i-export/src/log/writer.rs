//! Appending to a log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::MAX_LINE;
use super::chain::ChainHead;
use crate::digest::Digest;
use crate::record::{Event, Lane, Record, RecordError, Timestamp};

/// The one writer of a log.
///
/// Every record is one `write(2)` to a descriptor opened with `O_APPEND`; a record is in the
/// kernel's hands when [`append`](Self::append) returns and on the disk after
/// [`sync`](Self::sync). The caller holds the box's lock: two writers would break the chain.
#[derive(Debug)]
pub struct LogWriter {
    file: File,
    length: u64,
    head: ChainHead,
    state: State,
}

/// Whether the file ends with a whole line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Whole,
    /// A write failed half-way and its bytes could not be taken back.
    Torn,
}

/// How a log was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opened {
    /// It did not exist, or had no record.
    Empty,
    /// Its last line was whole.
    Whole,
    /// Its last line was not whole; `bytes` were moved aside and a `cut-off` record says so.
    Torn {
        /// How many bytes were moved aside.
        bytes: u64,
    },
}

/// Why a log can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file operation failed.
    #[error("can't {operation} `{}`", path.display())]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// The last whole line is not a record: the log was changed by something else.
    #[error("the last record of `{}` is not a record", path.display())]
    Corrupt {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        source: RecordError,
    },
    /// The last whole line is longer than [`MAX_LINE`], or the unfinished one is.
    #[error("the last line of `{}` is longer than {MAX_LINE} bytes", path.display())]
    TooLong {
        /// The log.
        path: PathBuf,
    },
    /// The `cut-off` record could not be written.
    #[error("can't record in `{}` that it was cut off", path.display())]
    Append {
        /// The log.
        path: PathBuf,
        /// Why.
        source: AppendError,
    },
}

/// Why a record was not appended. The log is as it was before, except after `Torn`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The record's line would be longer than [`MAX_LINE`].
    #[error("the record is {bytes} bytes long, more than {MAX_LINE}")]
    TooLong {
        /// How long.
        bytes: usize,
    },
    /// The record has no JSON form.
    #[error("can't write the record as JSON")]
    Json(#[source] serde_json::Error),
    /// The write failed or was short (disk full); what was written of it was taken back.
    #[error("can't append to the log")]
    Write(#[source] io::Error),
    /// The log can't reach the disk.
    #[error("can't bring the log to the disk")]
    Sync(#[source] io::Error),
    /// An earlier write failed half-way and could not be taken back; opening the log anew mends it.
    #[error("the log ends in a half-written record; open it anew")]
    Torn,
}

impl LogWriter {
    /// Opens the log at `path`, or makes it with mode 0600; links are not followed.
    ///
    /// Only the end of the file is read, at most two lines. A last line without a newline is moved
    /// aside to `PATH.torn-SEQ`, cut off the log, and a `cut-off` record with its length and digest
    /// is appended; nothing before it is lost. If that is interrupted, the next opening finishes it.
    ///
    /// # Errors
    /// [`OpenError`]; `Corrupt` when the last whole line is not a record.
    pub fn open(
        path: &Path,
        manifest: Digest,
        now: Timestamp,
    ) -> Result<(Self, Opened), OpenError> {
        let failed = |operation, path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { operation, path, source }
        };
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(no_follow())
            .open(path)
            .map_err(failed("open", path))?;
        let size = file.metadata().map_err(failed("stat", path))?.len();
        let (last, torn) = read_end(&file, size, path)?;
        let head = match &last {
            None => ChainHead::empty(manifest),
            Some(line) => {
                let record = Record::from_line(line)
                    .map_err(|source| OpenError::Corrupt { path: path.to_owned(), source })?;
                ChainHead { records: record.seq + 1, last: Digest::of(line) }
            }
        };
        let whole = size - torn.len() as u64;
        let mut log = Self { file, length: whole, head, state: State::Whole };
        let aside = beside(path, &format!("torn-{}", head.records));
        let mut moved = match fs::read(&aside) {
            Ok(earlier) => earlier,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(failed("read", &aside)(source)),
        };
        if torn.is_empty() && moved.is_empty() {
            return Ok((log, if last.is_none() { Opened::Empty } else { Opened::Whole }));
        }
        // The same bytes may be aside already, when an earlier opening got as far as that.
        if !moved.ends_with(&torn) {
            moved.extend_from_slice(&torn);
            write_whole(&aside, &moved).map_err(failed("write", &aside))?;
        }
        log.file.set_len(whole).map_err(failed("cut the unfinished line off", path))?;
        let bytes = moved.len() as u64;
        let event = Event::CutOff { torn_bytes: bytes, torn: Some(Digest::of(&moved)) };
        log.append(now, Lane::Host, None, event)
            .and_then(|_| log.sync())
            .map_err(|source| OpenError::Append { path: path.to_owned(), source })?;
        Ok((log, Opened::Torn { bytes }))
    }

    /// Appends one record; returns it as it was written.
    ///
    /// # Errors
    /// [`AppendError`]. The caller must not let what the record describes go on.
    pub fn append(
        &mut self,
        at: Timestamp,
        lane: Lane,
        run: Option<u64>,
        event: Event,
    ) -> Result<Record, AppendError> {
        if self.state == State::Torn {
            return Err(AppendError::Torn);
        }
        let record = Record { seq: self.head.records, at, lane, run, event, prev: self.head.last };
        let mut line = record.to_line().map_err(AppendError::Json)?.into_bytes();
        if line.len() > MAX_LINE {
            return Err(AppendError::TooLong { bytes: line.len() });
        }
        let digest = Digest::of(&line);
        line.push(b'\n');
        let written = loop {
            match self.file.write(&line) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match written {
            Ok(count) if count == line.len() => {
                self.length += line.len() as u64;
                self.head = ChainHead { records: self.head.records + 1, last: digest };
                Ok(record)
            }
            short => {
                let error = match short {
                    // The kernel says with the next write what was in the way of a short one.
                    Ok(count) => match self.file.write(line.get(count..).unwrap_or_default()) {
                        Err(error) => error,
                        Ok(_) => io::ErrorKind::WriteZero.into(),
                    },
                    Err(error) => error,
                };
                if self.file.set_len(self.length).is_err() {
                    self.state = State::Torn;
                }
                Err(AppendError::Write(error))
            }
        }
    }

    /// Waits until every record is on the disk.
    ///
    /// # Errors
    /// [`AppendError::Sync`].
    pub fn sync(&self) -> Result<(), AppendError> {
        self.file.sync_data().map_err(AppendError::Sync)
    }

    /// The log's file, to bring it to the disk while others append.
    ///
    /// # Errors
    /// When the descriptor can't be duplicated.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Where the log ends now.
    #[must_use]
    pub const fn head(&self) -> ChainHead {
        self.head
    }
}

fn no_follow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

/// How much of a log's end is read at first; most records are far shorter.
const FIRST_WINDOW: u64 = 4096;
/// The most that is read: two lines as long as may be.
const LAST_WINDOW: u64 = 2 * (MAX_LINE as u64 + 1);

/// The last whole line without its newline, and the bytes after it.
fn read_end(file: &File, size: u64, path: &Path) -> Result<(Option<Vec<u8>>, Vec<u8>), OpenError> {
    let mut window = FIRST_WINDOW;
    loop {
        let span = window.min(size);
        let mut tail = vec![0; usize::try_from(span).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut tail, size - span).map_err(|source| OpenError::Io {
            operation: "read the end of",
            path: path.to_owned(),
            source,
        })?;
        match split_end(tail, span == size) {
            Some((_, torn)) if torn.len() > MAX_LINE + 1 => break,
            Some(found) => return Ok(found),
            None if window >= LAST_WINDOW => break,
            None => window = (window * 8).min(LAST_WINDOW),
        }
    }
    Err(OpenError::TooLong { path: path.to_owned() })
}

/// Splits the end of a log, or the `whole` of it, into its last whole line and what follows; `None`
/// where the line begins before it.
fn split_end(mut tail: Vec<u8>, whole: bool) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
    let newline = tail.iter().rposition(|&byte| byte == b'\n');
    let torn = tail.split_off(newline.map_or(0, |at| at + 1));
    if tail.pop().is_none() {
        return whole.then_some((None, torn));
    }
    match tail.iter().rposition(|&byte| byte == b'\n') {
        Some(before) => Some((Some(tail.split_off(before + 1)), torn)),
        None => whole.then_some((Some(tail), torn)),
    }
}

/// `path` with `.suffix` added to its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Writes a file by a temporary one beside it, so that it is whole or as before.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path, "new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(no_follow())
        .open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}
