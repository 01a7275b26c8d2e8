//! The receipt log of a box, and how the events of its sessions become records.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use h5i_confine::{self as confine, EventSink, KnownHolders, SessionHandle, SinkClosed, WORKSPACE};
use h5i_export::{
    Argv, ByteText, Digest, Event, Lane, LogReader, LogWriter, NetworkChange, Opened, Outcome,
    Record, Timestamp,
};

use h5i_policy::{NetMode, ResolvedPolicy, Tier};

use crate::failure::{Failure, Kind};
use crate::log_sync::LogSync;
use crate::net_record::{NetDeeds, NetRecord};
use crate::path_error::{Action, PathError};
use crate::program_record::{Programs, Tally};
use crate::session::Refused;
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

/// Turns the events of a session into records, and keeps what was refused for the summaries.
#[derive(Debug)]
pub struct Recorder {
    log: ReceiptLog,
    tier: Tier,
    policy: Mutex<String>,
    runs: Mutex<BTreeMap<u64, Going>>,
    /// Programs of runs that are over, and those of which nobody knows whose they are.
    others: Mutex<Programs>,
    net: Mutex<NetRecord>,
    holders: Mutex<KnownHolders>,
    session: OnceLock<SessionHandle>,
    sync: Mutex<LogSync>,
}

/// A run that goes.
#[derive(Debug)]
struct Going {
    argv: Vec<OsString>,
    since: Timestamp,
    refused: Vec<Refused>,
    programs: Programs,
}

/// What a run did, as far as it is told at its end.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    /// What it was refused; equal ones counted together.
    pub refused: Vec<Refused>,
    /// The programs that ran.
    pub programs: Tally,
    /// What it did on the network; in a session of this process it is told after its end.
    pub network: NetDeeds,
}

impl Recorder {
    /// Records into `log` for a session of this box.
    #[must_use]
    pub fn new(log: ReceiptLog, manifest: &Manifest, policy: &ResolvedPolicy) -> Self {
        let (tier, net) = (policy.tier, Mutex::new(NetRecord::new(policy.net.mode)));
        let policy = Mutex::new(manifest.policy_digest.to_string());
        let sync = Mutex::new(LogSync::new(log.file()));
        let (runs, others, holders, session) = Default::default();
        Self { log, tier, policy, runs, others, net, holders, session, sync }
    }

    /// Takes the next number for a run of this command.
    ///
    /// # Errors
    /// As [`ReceiptLog::next_run`].
    pub fn admit(&self, argv: Vec<OsString>) -> Result<u64, Failure> {
        let mut runs = self.runs();
        let number = self.log.next_run()?;
        let (since, refused, programs) = (Timestamp::now(), Vec::new(), Programs::default());
        runs.insert(number, Going { argv, since, refused, programs });
        Ok(number)
    }

    /// A run is over: yields what it did.
    pub fn leave(&self, run: u64) -> Deeds {
        let deeds = |going: Going| {
            let (refused, programs) = (going.refused, going.programs.tally());
            Deeds { refused, programs, network: NetDeeds::default() }
        };
        self.runs().remove(&run).map(deeds).unwrap_or_default()
    }

    /// What a run did on the network, once it has ended; told once.
    pub fn network_of(&self, run: u64) -> NetDeeds {
        self.net.lock().unwrap_or_else(PoisonError::into_inner).take(run)
    }

    fn of_program(
        &self,
        run: u64,
        make: impl FnOnce(&mut Programs) -> Event,
    ) -> Result<(), Failure> {
        let event = match self.runs().get_mut(&run) {
            Some(going) => make(&mut going.programs),
            None => make(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        self.log.append(Lane::Kernel, (run != 0).then_some(run), event).map(drop)
    }

    /// The runs that go: number, command, and since when in milliseconds of Unix time.
    #[must_use]
    pub fn going(&self) -> Vec<(u64, Vec<OsString>, u64)> {
        let told = |(run, going): (&u64, &Going)| {
            (*run, going.argv.clone(), going.since.unix_micros() / 1000)
        };
        self.runs().iter().map(told).collect()
    }

    /// Records what the host did to the session.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn host(&self, event: Event) -> Result<(), Failure> {
        self.log.append(Lane::Host, None, event).map(drop)
    }

    /// Says that the runs without an end on record had none: who held their session died.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub(crate) fn cut_off_what_goes_on(&self, stored: &StoredBox) -> Result<(), Failure> {
        let mut open = BTreeSet::new();
        for line in records(&stored.host_dir())?.map_while(Result::ok) {
            match (line.record.event, line.record.run) {
                (Event::RunStart { .. }, Some(run)) => drop(open.insert(run)),
                (Event::RunEnd { .. }, Some(run)) => drop(open.remove(&run)),
                (Event::CutOff { .. }, _) => open.clear(),
                _ => {}
            }
        }
        if open.is_empty() {
            Ok(())
        } else {
            self.host(Event::CutOff { torn_bytes: 0, torn: None })
        }
    }

    /// A remark of the host.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn note(&self, text: &str) -> Result<(), Failure> {
        self.host(Event::Note { text: ByteText::new(text.as_bytes()) })
    }

    /// The digest of the policy that holds.
    #[must_use]
    pub fn policy(&self) -> String {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a change of the network; runs that start from here on name the new policy.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`]; the change must not be made then.
    pub fn network_changes(
        &self,
        change: NetworkChange,
        rule: Option<String>,
        policy: &str,
        mode: NetMode,
    ) -> Result<(), Failure> {
        self.host(Event::NetworkChange { change, rule, policy: policy.to_owned() })?;
        self.net.lock().unwrap_or_else(PoisonError::into_inner).is_of(mode);
        policy.clone_into(&mut self.policy.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// The record of a run's start.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn run_starts(&self, run: u64) -> Result<(), Failure> {
        let argv = self.runs().get(&run).map(|going| going.argv.clone()).unwrap_or_default();
        let argv = Argv::bounded(argv.iter().map(|arg| arg.as_bytes()));
        let event = Event::RunStart {
            argv: argv.argv,
            argv_cut: argv.cut,
            cwd: ByteText::new(WORKSPACE.as_bytes()),
            tier: self.tier.to_string(),
            policy: self.policy(),
        };
        self.log.append(Lane::Host, Some(run), event).map(drop)
    }

    /// The record of a run's end.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn run_ends(
        &self,
        run: u64,
        outcome: confine::Outcome,
        usage: confine::Usage,
    ) -> Result<(), Failure> {
        self.log.append(Lane::Host, Some(run), end_event(outcome, usage)).map(drop)
    }

    /// From here on a refusal among several runs is looked up here.
    pub(crate) fn tells_runs_apart(&self, session: SessionHandle) {
        // There is one session in a recorder's life.
        self.session.set(session).ok();
    }

    /// A refusal is of the run that goes alone, of the one that its process belongs to, or, where that
    /// is gone, of one that was refused the same before.
    fn refused(&self, call: &confine::RefusedCall) -> Result<(), Failure> {
        let alone = self.alone();
        let refused = Refused::from(call);
        let run = alone.or_else(|| self.session.get()?.run_of(call.pid)).or_else(|| {
            let same = |going: &Going| going.refused.iter().any(|kind| kind.is_kind_of(&refused));
            self.runs().iter().find(|(_, going)| same(going)).map(|(run, _)| *run)
        });
        if let (Some(run), mut runs) = (run, self.runs())
            && let Some(going) = runs.get_mut(&run)
        {
            refused.count_among(&mut going.refused);
        }
        self.log.append(Lane::Kernel, run, refused_event(call)).map(drop)
    }

    /// The run that goes, if it is only one.
    fn alone(&self) -> Option<u64> {
        let runs = self.runs();
        runs.keys().next().copied().filter(|_| runs.len() == 1)
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<u64, Going>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Recorder {
    fn event(&self, event: confine::Event) -> Result<(), SinkClosed> {
        let recorded = match event {
            confine::Event::RunStarting { run } => self.run_starts(run),
            confine::Event::RunEnded { run, outcome, usage } => self.run_ends(run, outcome, usage),
            confine::Event::RefusedCall(call) => self.refused(&call),
            confine::Event::ExecAttempt(attempt) => {
                self.of_program(attempt.run, |all| all.attempt(&attempt))
            }
            confine::Event::Exec(exec) => self.of_program(exec.run, |all| all.exec(&exec)),
            confine::Event::ProcessEnded(ended) => {
                self.of_program(ended.run, |all| all.end(&ended))
            }
            _ => return Ok(()),
        };
        self.sync.lock().unwrap_or_else(PoisonError::into_inner).written();
        recorded.map_err(|_told_by_the_session| SinkClosed)
    }
}

impl h5i_net::EventSink for Recorder {
    /// What the network saw is of the run whose process holds the socket, or of the one that goes
    /// alone; what has no socket any more, among several, is of none.
    fn event(&self, event: h5i_net::Event) -> Result<(), h5i_net::SinkClosed> {
        let alone = self.alone();
        let holder = match &event {
            h5i_net::Event::FlowOpened { socket: Some(inode), .. }
            | h5i_net::Event::FlowRefused { socket: Some(inode), .. } => {
                let mut known = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
                self.session.get().and_then(|session| session.holder_of(*inode, &mut known))
            }
            _ => None,
        };
        let taken = {
            let mut net = self.net.lock().unwrap_or_else(PoisonError::into_inner);
            net.take_in(event, alone, holder)
        };
        let Some((run, event)) = taken else { return Ok(()) };
        let recorded = self.log.append(Lane::Net, run, event);
        self.sync.lock().unwrap_or_else(PoisonError::into_inner).written();
        recorded.map(drop).map_err(|_what_follows_does_not_go_on| h5i_net::SinkClosed)
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
