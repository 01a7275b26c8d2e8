//! A box that is alive: its namespaces, its init, and the supervisor's thread outside.

mod holder;
mod live;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use h5i_policy::{Millis, Violation};
use rustix::net::{Shutdown, shutdown};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::command::Command;
use crate::elsewhere::KeptHere;
use crate::enforcement::{self, Enforcement};
use crate::error::StartError;
use crate::event::EventSink;
use crate::exec_record::FirstProgram;
use crate::outcome::{Outcome, Stop, Usage};
use crate::plan::{LIMIT_MEMORY, MEASURED, Plan, RunDefaults, SocketSlot};
use crate::processes::Caller;

/// A box that is alive. Its runs share namespaces and one Landlock domain: they may signal each
/// other and talk over `localhost`, as at home.
///
/// Holding one of [`Plan::start`], or a [`Run`](crate::Run) of any, proves that every step of its
/// plan was done. Dropping it ends the box: every process in it is killed, and the drop returns when
/// the last one is gone. When the process that holds it dies, the box ends as well.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    runs: Arc<RunDefaults>,
    enforcement: Enforcement,
}

/// What the session's thread and its users share.
pub(crate) struct Shared {
    pub(crate) control: OwnedFd,
    pub(crate) wake: OwnedFd,
    pub(crate) stage: OwnedFd,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) started: Instant,
    pub(crate) changed: Condvar,
    pub(crate) state: Mutex<State>,
}

/// How far the stage is.
#[derive(Debug, Default)]
pub(crate) enum Progress {
    /// It takes the steps.
    #[default]
    AtWork,
    /// It took them all.
    Ready,
    /// One failed; why, until it is told.
    Failed(Option<StartError>),
}

/// The stage and the runs of a session.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) progress: Progress,
    /// The sockets that the plan asked for, from when all are made until they are taken.
    pub(crate) asked: BTreeMap<u32, OwnedFd>,
    pub(crate) runs: BTreeMap<u64, RunState>,
    pub(crate) last_run: u64,
    /// Keepers of runs of which something is left, also of those that have ended.
    pub(crate) keepers: BTreeMap<u64, OwnedFd>,
    /// Sockets that were made in the box, or the errno, by the number of who waits for it.
    pub(crate) sockets: BTreeMap<u64, Result<OwnedFd, i32>>,
    pub(crate) last_socket: u64,
    /// What the box took when it was measured last.
    pub(crate) taken: Measured,
    /// A violation ended the session.
    pub(crate) reacted: Option<Violation>,
    /// The session takes no more runs.
    pub(crate) over: bool,
    /// Its owner ended it; otherwise it broke.
    pub(crate) intended: bool,
}

/// What a box took when it was measured last, bytes; `None` where it has no budget for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) memory: Option<u64>,
    pub(crate) disk: Option<u64>,
}

/// What the supervisor knows of one run.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) started: Instant,
    pub(crate) wall: Option<Millis>,
    pub(crate) deadline: Option<Instant>,
    /// The box's init has forked it.
    pub(crate) forked: bool,
    pub(crate) pidfd: Option<OwnedFd>,
    /// Its first process in this process's pid namespace and in the box's.
    pub(crate) process: Option<u32>,
    pub(crate) inside: u32,
    /// What that process is to execute.
    pub(crate) program: Arc<FirstProgram>,
    pub(crate) terminal: Option<OwnedFd>,
    pub(crate) stop: Option<Stop>,
    pub(crate) stop_sent: Option<Instant>,
    pub(crate) untold: Untold,
    pub(crate) cpu_ms: u64,
    pub(crate) end: Option<(Outcome, Usage)>,
    /// It has a keeper, whether that was told of or not.
    pub(crate) kept: bool,
    pub(crate) keeper_known: bool,
    /// Raised when there is an end.
    pub(crate) end_notice: Option<OwnedFd>,
}

/// What is still to be told of a run's stop.
#[derive(Debug, Default)]
pub(crate) enum Untold {
    #[default]
    Nothing,
    /// That it is stopped, and who spent the budget, where that was looked for.
    Stop(Option<Caller>),
}

impl RunState {
    /// Has the run stopped, unless it has ended or is being stopped for another reason.
    pub(crate) fn stop_for(&mut self, stop: Stop, spender: Option<&Caller>) {
        if self.end.is_none() && self.stop.is_none() {
            self.stop = Some(stop);
            self.untold = Untold::Stop(spender.cloned());
        }
    }
}

impl State {
    /// The run whose first process this is: its number, the process's id inside the box, and what
    /// it is to execute.
    pub(crate) fn first_of(&self, process: u32) -> Option<(u64, u32, Arc<FirstProgram>)> {
        let (id, run) = self.runs.iter().find(|(_, run)| run.process == Some(process))?;
        Some((*id, run.inside, Arc::clone(&run.program)))
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Shared {
    /// The state. A panic of another holder left whole values behind, since every change is one
    /// assignment.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the session's thread.
    pub(crate) fn wake(&self) {
        // The counter can't overflow in a lifetime, and a full one is awake anyway.
        rustix::io::write(&self.wake, &1u64.to_ne_bytes()).ok();
    }

    /// The sockets that the plan asked for are made.
    pub(crate) fn has_sockets(&self, asked: BTreeMap<u32, OwnedFd>) {
        self.state().asked = asked;
        self.changed.notify_all();
    }

    /// The stage took every step.
    pub(crate) fn is_ready(&self) {
        self.state().progress = Progress::Ready;
        self.changed.notify_all();
    }

    /// A step failed; nothing will run.
    pub(crate) fn has_failed(&self, error: StartError) {
        {
            let mut state = self.state();
            state.progress = Progress::Failed(Some(error));
            state.over = true;
        }
        self.changed.notify_all();
    }

    pub(crate) fn wait_ready(&self) -> Result<(), StartError> {
        let mut state = self.state();
        loop {
            match &mut state.progress {
                Progress::Ready => return Ok(()),
                Progress::Failed(error) => {
                    return Err(error.take().unwrap_or(StartError::StageDied));
                }
                Progress::AtWork => {}
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells the box's side that the conversation is over; it kills everything and ends.
    pub(crate) fn close(&self, intended: bool) {
        {
            let mut state = self.state();
            state.intended |= intended && !state.over;
            state.over = true;
        }
        shutdown(&self.control, Shutdown::Both).ok();
    }
}

impl Session {
    pub(crate) fn new(plan: &Plan, shared: Arc<Shared>, thread: JoinHandle<()>) -> Self {
        let (runs, enforcement) = (Arc::clone(&plan.runs), plan.enforcement().clone());
        Self { shared, thread: Some(thread), runs, enforcement }
    }

    /// Waits until every step of the plan is done.
    ///
    /// # Errors
    /// [`StartError`]; a failing step is named with its errno. It is told once.
    pub(crate) fn wait_ready(&self) -> Result<(), StartError> {
        self.shared.wait_ready()
    }

    /// A run in this session.
    pub fn command(&self, program: impl Into<std::ffi::OsString>) -> Command<'_> {
        self.handle().into_command(program.into())
    }

    /// What other threads may do with the session. It does not keep it alive.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle { shared: Arc::clone(&self.shared), runs: Arc::clone(&self.runs) }
    }

    /// What is enforced, mechanism by mechanism.
    #[must_use]
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// Yields a socket that [`Plan::request_socket`] asked for, once; `None` as well where the box
    /// could not be made. It is there before the box is: [`SessionHandle::wait_ready`] says when, and
    /// whether, that is made.
    pub fn take_socket(&mut self, slot: SocketSlot) -> Option<OwnedFd> {
        let mut state = self.shared.state();
        loop {
            if let Some(socket) = state.asked.remove(&slot.0) {
                return Some(socket);
            }
            if !matches!(state.progress, Progress::AtWork) {
                return None;
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until the box is over, ended by a [`SessionHandle`] or broken.
    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // As in the drop.
            drop(thread.join());
        }
    }

    /// Tells the box to end and returns at once; [`end`](Self::end) and the drop wait for it.
    pub fn stop(&self) {
        self.shared.close(true);
        self.shared.wake();
    }

    /// Ends the box: kills every process in it and returns when the last one is gone. Runs that are
    /// alive end with [`Outcome::Ended`].
    pub fn end(self) {
        drop(self);
    }

    /// The cgroup that was planned could not be had.
    pub(crate) fn has_no_cgroup(&mut self) {
        if let Some(memory) = self.runs.limits.memory {
            let detail = format!("{memory} {MEASURED}");
            self.enforcement.set(LIMIT_MEMORY, enforcement::State::On, &detail);
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// A session for other threads than the one that owns it. It does not keep the session alive.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    shared: Arc<Shared>,
    runs: Arc<RunDefaults>,
}

impl SessionHandle {
    /// A run in the session.
    pub fn command(&self, program: impl Into<std::ffi::OsString>) -> Command<'static> {
        self.clone().into_command(program.into())
    }

    fn into_command(self, program: std::ffi::OsString) -> Command<'static> {
        Command::joined(self.shared, self.runs, program)
    }

    /// What a process that has a run in this session keeps on its side.
    #[must_use]
    pub fn kept_elsewhere(&self) -> KeptHere {
        KeptHere { output: self.runs.limits.output, owner: self.runs.owner }
    }

    /// Waits until the box is made.
    ///
    /// # Errors
    /// [`StartError`], once: a failing step is named with its errno.
    pub fn wait_ready(&self) -> Result<(), StartError> {
        self.shared.wait_ready()
    }

    /// As [`Session::stop`].
    pub fn stop(&self) {
        self.shared.close(true);
        self.shared.wake();
    }

    /// As [`Session::stop`], for a violation: runs that are alive, and are not being stopped for a
    /// budget, end with [`Outcome::Reacted`].
    pub fn kill_for(&self, violation: Violation) {
        {
            let mut state = self.shared.state();
            if !state.over {
                state.reacted = Some(violation);
            }
        }
        self.stop();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by the panic hook; the box is over either way.
            drop(thread.join());
        }
    }
}

pub use holder::{KnownHolders, SocketHolder};
pub use live::{InUse, LiveProcess};

/// Reaps the stage. It is this process's child, and ends when the box is gone.
pub(crate) fn reap(stage: &OwnedFd) {
    rustix::io::retry_on_intr(|| waitid(WaitId::PidFd(stage.as_fd()), WaitIdOptions::EXITED)).ok();
}
