//! What the supervisor observes, as it happens.

mod exec;

use std::time::Duration;

use crate::outcome::{Outcome, Stop, Usage};
pub use exec::{Arguments, Exec, ExecAttempt, ProcessEnd, ProcessEnded, ProcessId, Seen};

/// One observation of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A run's program is about to be started: sent before its process is made.
    RunStarting {
        /// Number of the run in its session, from 1.
        run: u64,
    },
    /// A run's program is going.
    RunStarted {
        /// Number of the run in its session.
        run: u64,
        /// Process id inside the box.
        pid: u32,
    },
    /// A run ended.
    RunEnded {
        /// Number of the run in its session.
        run: u64,
        /// How it ended.
        outcome: Outcome,
        /// What it cost.
        usage: Usage,
    },
    /// A budget is spent: sent before anything is stopped for it, where it was not the kernel that
    /// did.
    BudgetSpent(Spent),
    /// A system call was refused: the first of its kind, or how often the kind came again.
    RefusedCall(RefusedCall),
    /// A process asks for another program: sent before it gets it. A sink that is closed then means
    /// that it does not.
    ExecAttempt(ExecAttempt),
    /// An attempt has succeeded.
    Exec(Exec),
    /// A process that made an attempt has ended.
    ProcessEnded(ProcessEnded),
}

/// A budget that is spent, and on what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The run that is stopped for it; none where what took the most was left by a run that has
    /// ended.
    pub run: Option<u64>,
    /// Which budget, what was used, what is allowed.
    pub stop: Stop,
    /// Process id inside the box of who took the most, or of the run's program; 0 when it was gone.
    pub pid: u32,
    /// Its executable by `/proc/<pid>/exe`, empty when it was gone.
    pub program: Vec<u8>,
}

/// A refused system call. Same call, same program, same scalar arguments are one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedCall {
    /// Name of the call, `unknown` for a number without one.
    pub name: &'static str,
    /// Number of the call on this architecture.
    pub nr: i32,
    /// The first three arguments as the kernel got them; pointers among them are numbers only.
    pub args: [u64; 3],
    /// Why it is refused.
    pub reason: &'static str,
    /// The policy's setting that would have allowed it; none for what no box may do.
    pub allowed_by: Option<&'static str>,
    /// Process id inside the box, 0 when it was gone before it could be asked.
    pub pid: u32,
    /// The executable by `/proc/<pid>/exe`, empty when it was gone before it could be asked.
    pub program: Vec<u8>,
    /// The errno that the program got.
    pub errno: i32,
    /// How often this kind came since it was last reported.
    pub count: u64,
    /// Time since the session's start.
    pub since_start: Duration,
}

/// Takes the supervisor's observations. It is called from the session's own thread.
pub trait EventSink: Send + Sync {
    /// Takes one observation.
    ///
    /// # Errors
    /// [`SinkClosed`] when it can't be kept; the session then refuses what it was about to let go
    /// on, and ends.
    fn event(&self, event: Event) -> Result<(), SinkClosed>;
}

/// The sink can't keep observations any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record of the session can't be written")]
pub struct SinkClosed;

/// A sink that drops everything, for harnesses without a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl EventSink for NoSink {
    fn event(&self, _: Event) -> Result<(), SinkClosed> {
        Ok(())
    }
}
