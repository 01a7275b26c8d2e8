//! A place in a session that another process holds.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use h5i_confine::{
    Command, Connection, KeptHere, Outcome, RunElsewhere, SessionElsewhere, SpawnError,
    StartedElsewhere, Stop, Usage,
};
use h5i_export::Event;
use h5i_policy::Bytes;
use rustix::process::Pid;

use super::control_socket::{PATIENCE, be_patient, peer, reach};
use super::frame::{receive, send};
use super::message::{Connected, End, Reply, Request, Terminal, Wanted};
use super::say_aside;
use crate::failure::Failure;
use crate::json_bytes::JsonBytes;
use crate::receipt_log::Deeds;

/// A place in a session that another process holds, for one run.
#[derive(Debug)]
pub(crate) struct Joined {
    stream: UnixStream,
    /// Messages go out whole.
    sending: Mutex<()>,
    kept: KeptHere,
    wall: Mutex<Option<u64>>,
    run: AtomicU64,
    heard: Mutex<Heard>,
    changed: Condvar,
}

/// What the holder said since the run goes.
#[derive(Debug, Default)]
struct Heard {
    stopping: bool,
    end: Option<End>,
}

/// Why there is no place.
#[derive(Debug)]
pub(super) enum NoPlace {
    /// Nobody holds a session, or it ends.
    NoSession,
    /// Who holds it does not answer.
    Silent(Option<Pid>),
    /// The holder says no.
    Refused(Box<Failure>),
    /// The conversation failed otherwise.
    Io(io::Error),
}

impl Joined {
    /// Asks the holder of a box's session for a place.
    pub(super) fn enter(host_dir: &Path) -> Result<Self, NoPlace> {
        let stream = reach(host_dir, PATIENCE).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => NoPlace::NoSession,
            io::ErrorKind::WouldBlock => NoPlace::Silent(None),
            _ => NoPlace::Io(error),
        })?;
        let silent = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => NoPlace::Silent(peer(&stream)),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => NoPlace::NoSession,
            _ => NoPlace::Io(error),
        };
        send(&stream, &Request::Enter, &[]).map_err(silent)?;
        match receive::<Reply>(&stream).map_err(silent)? {
            Some((Reply::Entered { output, owner }, _)) => {
                be_patient(&stream).map_err(NoPlace::Io)?;
                let kept = KeptHere { output: output.map(Bytes::new), owner };
                let (sending, wall, run, heard) = Default::default();
                let changed = Condvar::new();
                Ok(Self { stream, sending, kept, wall, run, heard, changed })
            }
            Some((Reply::Ending, _)) | None => Err(NoPlace::NoSession),
            Some((Reply::Refused(failure), _)) => Err(NoPlace::Refused(Box::new(failure))),
            Some(_) => Err(NoPlace::Io(io::ErrorKind::InvalidData.into())),
        }
    }

    /// The run that the place is for.
    pub(crate) fn command(
        self: &Arc<Self>,
        program: &std::ffi::OsStr,
        wall: Option<h5i_policy::Millis>,
    ) -> Command<'static> {
        *lock(&self.wall) = wall.map(h5i_policy::Millis::count);
        let session: Arc<dyn SessionElsewhere> = Arc::<Self>::clone(self);
        Command::elsewhere(session, self.kept, program)
    }

    /// Number of the run in its box, once it was started.
    pub(crate) fn run(&self) -> u64 {
        self.run.load(Ordering::Relaxed)
    }

    /// What the run did, once it has ended.
    pub(crate) fn deeds(&self) -> Deeds {
        lock(&self.heard).end.as_ref().map(End::deeds).unwrap_or_default()
    }

    /// Has the holder record what is kept of the run's output.
    pub(crate) fn output_kept(&self, output: Vec<Event>) {
        // A holder that is gone has nobody to write it.
        self.ask(&Request::Kept { output }).ok();
    }

    fn ask(&self, request: &Request) -> io::Result<()> {
        let _whole = lock(&self.sending);
        send(&self.stream, request, &[])
    }
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionElsewhere for Joined {
    fn start(&self, run: RunElsewhere) -> Result<StartedElsewhere, SpawnError> {
        let failed = |source: io::Error| SpawnError::Prepare { what: "ask the holder", source };
        let bytes = |text: &std::ffi::OsStr| JsonBytes(text.as_bytes().to_vec());
        let mut pipes: Vec<OwnedFd> = Vec::new();
        let stdio = run.stdio.map(|connection| match connection {
            Connection::Null => Connected::Null,
            Connection::Terminal => Connected::Terminal,
            Connection::Pipe(fd) => {
                pipes.push(fd);
                Connected::Pipe
            }
        });
        let words = std::iter::once(&run.program).chain(&run.args);
        let wanted = Wanted {
            command: words.map(|word| bytes(word)).collect(),
            environment: run.environment.iter().map(|(n, v)| (bytes(n), bytes(v))).collect(),
            directory: JsonBytes::of_path(&run.directory),
            terminal: run.terminal.map(|(size, modes)| Terminal {
                rows: size.rows,
                columns: size.columns,
                modes: modes.map(|modes| modes.to_parts()),
            }),
            stdio,
            wall_ms: *lock(&self.wall),
        };
        let fds: Vec<_> = pipes.iter().map(OwnedFd::as_fd).collect();
        send(&self.stream, &Request::Run(wanted), &fds).map_err(failed)?;
        drop(fds);
        // The run's own ends are the box's from here on.
        drop(pipes);
        match receive::<Reply>(&self.stream).map_err(failed)? {
            Some((Reply::Started { run, left_ms }, mut fds)) => {
                self.run.store(run, Ordering::Relaxed);
                let deadline = left_ms.map(|left| Instant::now() + Duration::from_millis(left));
                Ok(StartedElsewhere { run, terminal: fds.pop(), deadline })
            }
            Some((Reply::Refused(failure), _)) => Err(told(failure)),
            Some(_) => Err(failed(io::ErrorKind::InvalidData.into())),
            None => Err(SpawnError::SessionEnded),
        }
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        if lock(&self.heard).end.is_some() {
            return Err(rustix::io::Errno::SRCH.into());
        }
        self.ask(&Request::Signal { signal })
    }

    fn stop(&self, stop: Stop) {
        if self.ask(&Request::StopForOutput { used: stop.used, allowed: stop.allowed }).is_err() {
            // A holder that is gone has taken the run with it.
            return;
        }
        // Who carries closes the pipe next, which ends the program as well: it is to be known why.
        let mut heard = lock(&self.heard);
        while !heard.stopping && heard.end.is_none() {
            heard = self.changed.wait(heard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait(&self) -> (Outcome, Usage) {
        let ended = loop {
            match receive::<Reply>(&self.stream) {
                Ok(Some((Reply::Stopping, _))) => {
                    lock(&self.heard).stopping = true;
                    self.changed.notify_all();
                }
                Ok(Some((Reply::Told { line }, _))) => say_aside(&line),
                Ok(Some((Reply::Ended(end), _))) => break end,
                _ => break End::new(Outcome::CutOff, Usage::default(), Deeds::default()),
            }
        };
        let (outcome, usage) = (ended.outcome(), ended.usage());
        lock(&self.heard).end = Some(ended);
        self.changed.notify_all();
        (outcome, usage)
    }
}

fn told(failure: Failure) -> SpawnError {
    SpawnError::Elsewhere(Box::new(failure))
}
