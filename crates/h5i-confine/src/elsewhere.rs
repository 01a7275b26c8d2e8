//! A run in a session that another process holds: its bytes are carried here, everything else is
//! asked for there.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use h5i_policy::Bytes;

use crate::command::TerminalSize;
use crate::error::SpawnError;
use crate::outcome::{Outcome, Stop, Usage};
use crate::session::Shared;
use crate::sys;
use crate::terminal_modes::TerminalModes;

/// The way to a session that another process holds, for one run.
///
/// How the two processes talk is the implementor's affair; the other one starts the run with
/// [`Stdio::Handed`](crate::Stdio::Handed) and answers.
pub trait SessionElsewhere: Send + Sync + fmt::Debug {
    /// Starts the run; returns when its program has been executed or could not be.
    ///
    /// # Errors
    /// [`SpawnError`], as of [`Command::spawn`](crate::Command::spawn).
    fn start(&self, run: RunElsewhere) -> Result<StartedElsewhere, SpawnError>;

    /// Sends the run a signal, as [`RunHandle::signal`](crate::RunHandle::signal) does.
    ///
    /// # Errors
    /// `ESRCH` when it has ended.
    fn signal(&self, signal: i32) -> io::Result<()>;

    /// A budget that is kept here is spent: the run is to be stopped for it.
    fn stop(&self, stop: Stop);

    /// Waits for the end of the run; [`Outcome::CutOff`] when the other process is gone.
    fn wait(&self) -> (Outcome, Usage);
}

/// What the policy says of a run in a session elsewhere that is kept on this side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptHere {
    /// Bytes that the run may write.
    pub output: Option<Bytes>,
    /// For a root caller: the host id that owns what is handed to a run.
    pub owner: Option<u32>,
}

/// A run to be started elsewhere.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunElsewhere {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables that are set beside the policy's.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory to start in, a path of the box.
    pub directory: PathBuf,
    /// The terminal it gets.
    pub terminal: Option<(TerminalSize, Option<TerminalModes>)>,
    /// Input, output and errors.
    pub stdio: [Connection; 3],
}

/// What one of input, output and errors is connected to.
#[derive(Debug)]
pub enum Connection {
    /// The box's null device.
    Null,
    /// The run's terminal.
    Terminal,
    /// This end of a pipe.
    Pipe(OwnedFd),
}

/// A run that was started elsewhere.
#[derive(Debug)]
pub struct StartedElsewhere {
    /// Number of the run in its session.
    pub run: u64,
    /// The other side of its terminal, if it has one.
    pub terminal: Option<OwnedFd>,
    /// When it will be stopped at the latest.
    pub deadline: Option<Instant>,
}

/// Who holds a run's session.
#[derive(Clone, Debug)]
pub(crate) enum Holder {
    /// This process.
    Here { shared: Arc<Shared>, run: u64 },
    /// Another one.
    Elsewhere(Arc<dyn SessionElsewhere>),
}

impl Holder {
    /// Has the run stopped, unless it has ended or is being stopped for another reason.
    pub(crate) fn stop(&self, stop: Stop) {
        match self {
            Self::Here { shared, run } => {
                if let Some(run) = shared.state().runs.get_mut(run) {
                    run.stop_for(stop, None);
                }
                shared.wake();
            }
            Self::Elsewhere(session) => session.stop(stop),
        }
    }

    /// Sends a signal to the run's program and its process group.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        match self {
            Self::Here { shared, run } => {
                let state = shared.state();
                let run = state.runs.get(run).filter(|run| run.end.is_none());
                let pidfd =
                    run.and_then(|run| run.pidfd.as_ref()).ok_or(rustix::io::Errno::SRCH)?;
                sys::signal_group(std::os::fd::AsFd::as_fd(pidfd), signal)
            }
            Self::Elsewhere(session) => session.signal(signal),
        }
    }

    /// Whether the run is alive, as far as is known here.
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Self::Here { shared, run } => {
                shared.state().runs.get(run).is_some_and(|run| run.end.is_none())
            }
            // It is asked there.
            Self::Elsewhere(_) => true,
        }
    }
}
