//! The receipt log of a box, and how the events of its sessions become records.

use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use h5i_confine::{self as confine, EventSink, SinkClosed, WORKSPACE};
use h5i_export::{
    Argv, ByteText, Digest, Event, Lane, LogReader, LogWriter, Opened, Outcome, Record, Timestamp,
};

use crate::failure::{Failure, Kind};
use crate::log_sync::LogSync;
use crate::path_error::{Action, PathError};
use crate::program_record::Programs;
use crate::store::{Manifest, StoredBox};

/// The log's name in the box's host directory.
pub const LOG: &str = "receipt.jsonl";
/// The counter of runs beside it.
const RUNS: &str = "runs";

/// The one writer of a box's log; its owner holds the box's lock.
#[derive(Debug)]
pub struct ReceiptLog {
    writer: Mutex<LogWriter>,
    runs: PathBuf,
    /// What was found on opening.
    pub opened: Opened,
}

/// What a run's first record says of it.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Number of the run in its box, from 1.
    pub number: u64,
    /// Its command and arguments.
    pub argv: Vec<std::ffi::OsString>,
    /// The tier.
    pub tier: String,
    /// Digest of the policy that holds.
    pub policy: String,
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
        Ok(Self { writer: Mutex::new(writer), runs: host_dir.join(RUNS), opened })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// An I/O failure; what the record describes must not go on.
    pub fn append(&self, lane: Lane, run: Option<u64>, event: Event) -> Result<Record, Failure> {
        self.writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(Timestamp::now(), lane, run, event)
            .map_err(|error| Failure::new(Kind::Io, &error))
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
    fn file(&self) -> Option<File> {
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

/// Turns the events of a session with one run into records, and keeps what was refused for the
/// summary.
#[derive(Debug)]
pub struct Recorder {
    log: ReceiptLog,
    run: RunFacts,
    refused: Mutex<Vec<confine::RefusedCall>>,
    programs: Mutex<Programs>,
    sync: Mutex<LogSync>,
}

impl Recorder {
    /// Records into `log` for this run.
    #[must_use]
    pub fn new(log: ReceiptLog, run: RunFacts) -> Self {
        let sync = Mutex::new(LogSync::new(log.file()));
        Self { log, run, refused: Mutex::default(), programs: Mutex::default(), sync }
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &ReceiptLog {
        &self.log
    }

    /// Number of the run in its box.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run.number
    }

    /// The programs so far.
    #[must_use]
    pub fn programs(&self) -> Programs {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn of_kernel(&self, make: impl FnOnce(&mut Programs) -> Event) -> Result<(), Failure> {
        let event = make(&mut self.programs.lock().unwrap_or_else(PoisonError::into_inner));
        self.log.append(Lane::Kernel, Some(self.run.number), event).map(drop)
    }

    /// What was refused so far; equal ones counted together.
    #[must_use]
    pub fn refused(&self) -> Vec<confine::RefusedCall> {
        let mut merged: Vec<confine::RefusedCall> = Vec::new();
        for call in self.refused.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let known = merged.iter_mut().find(|known| {
                (known.nr, known.args, &known.program) == (call.nr, call.args, &call.program)
            });
            match known {
                Some(known) => known.count += call.count,
                None => merged.push(call.clone()),
            }
        }
        merged
    }

    /// The record of a run's start.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn run_starts(&self) -> Result<(), Failure> {
        let argv = Argv::bounded(self.run.argv.iter().map(|arg| arg.as_bytes()));
        let event = Event::RunStart {
            argv: argv.argv,
            argv_cut: argv.cut,
            cwd: ByteText::new(WORKSPACE.as_bytes()),
            tier: self.run.tier.clone(),
            policy: self.run.policy.clone(),
        };
        self.log.append(Lane::Host, Some(self.run.number), event).map(drop)
    }

    /// The record of a run's end.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn run_ends(
        &self,
        outcome: confine::Outcome,
        usage: confine::Usage,
    ) -> Result<(), Failure> {
        let event = end_event(outcome, usage);
        self.log.append(Lane::Host, Some(self.run.number), event).map(drop)
    }
}

impl EventSink for Recorder {
    fn event(&self, event: confine::Event) -> Result<(), SinkClosed> {
        let recorded = match event {
            confine::Event::RunStarting { .. } => self.run_starts(),
            confine::Event::RunEnded { outcome, usage, .. } => self.run_ends(outcome, usage),
            confine::Event::RefusedCall(call) => {
                let event = refused_event(&call);
                self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(call);
                self.log.append(Lane::Kernel, Some(self.run.number), event).map(drop)
            }
            confine::Event::ExecAttempt(attempt) => self.of_kernel(|all| all.attempt(&attempt)),
            confine::Event::Exec(exec) => self.of_kernel(|all| all.exec(&exec)),
            confine::Event::ProcessEnded(ended) => self.of_kernel(|all| all.end(&ended)),
            _ => return Ok(()),
        };
        self.sync.lock().unwrap_or_else(PoisonError::into_inner).written();
        recorded.map_err(|_told_by_the_session| SinkClosed)
    }
}

fn refused_event(call: &confine::RefusedCall) -> Event {
    Event::RefusedCall {
        call: call.name.to_owned(),
        args: call.args.to_vec(),
        pid: call.pid,
        program: ByteText::new(call.program.clone()),
        errno: "EPERM".to_owned(),
        count: call.count,
    }
}

fn end_event(outcome: confine::Outcome, usage: confine::Usage) -> Event {
    let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let (word, exit_code, signal, stop) = match outcome {
        confine::Outcome::Exited(code) => (Outcome::Exited, Some(i32::from(code)), None, None),
        confine::Outcome::Signaled(signal) => (Outcome::Signaled, None, Some(signal), None),
        confine::Outcome::Stopped(stop) => (Outcome::Stopped, None, None, Some(stop)),
        _ => (Outcome::CutOff, None, None, None),
    };
    Event::RunEnd {
        outcome: word,
        exit_code,
        signal,
        limit: stop.map(|stop| stop.limit.name().to_owned()),
        used: stop.map(|stop| stop.used),
        allowed: stop.map(|stop| stop.allowed),
        wall_ms: millis(usage.wall),
        cpu_ms: millis(usage.cpu),
        max_rss_bytes: usage.max_rss,
    }
}
