//! One command in a session: started, watched, waited for.

mod handle;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::child::{self, EXECUTE, STEPS};
use crate::command::{Command, Target};
use crate::control;
use crate::error::SpawnError;
use crate::event::Event;
use crate::list::List;
use crate::outcome::{Outcome, Usage};
use crate::plan::RunDefaults;
use crate::pump::{Budget, Pumps};
use crate::session::{Progress, RunState, Session, Shared, State};
use crate::stdio::StdioPlan;
use crate::wire::{ExecFailure, MSG_START, Message};

pub use handle::RunHandle;

/// How long a run's last output may take to reach a slow receiver after the run has ended.
const DRAIN: Duration = Duration::from_millis(500);

/// A command that was started.
///
/// Dropping it does not stop the command, unless its session is its own: then everything ends.
#[derive(Debug)]
pub struct Run {
    id: u64,
    shared: Arc<Shared>,
    own: Option<Session>,
    pumps: Pumps,
    terminal: Option<OwnedFd>,
    budget: Option<Arc<Budget>>,
    receiver: Receiver,
    /// The writing end of the input, when it is [`Stdio::Piped`](crate::Stdio::Piped).
    pub stdin: Option<File>,
    /// The reading end of the output, when it is [`Stdio::Piped`](crate::Stdio::Piped).
    pub stdout: Option<File>,
    /// The reading end of the errors, when they are [`Stdio::Piped`](crate::Stdio::Piped).
    pub stderr: Option<File>,
}

impl Run {
    /// Number of the run in its session, from 1.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the end of the run. A session of its own is over when this returns. Its output has
    /// reached its receiver, unless the run was stopped or its deadline came and the receiver was
    /// too slow for half a second more, or [`RunHandle::abandon_output`] was called. A pipe of the
    /// caller's ([`Stdio::Piped`](crate::Stdio::Piped)) is waited for half a second only: who waits
    /// here may be the one to read it.
    pub fn wait(self) -> Outcome {
        self.finish().0
    }

    /// Waits as [`Run::wait`] does, and tells what the run cost.
    pub fn finish(mut self) -> (Outcome, Usage) {
        let mut state = self.shared.state();
        let end = loop {
            match state.runs.get(&self.id).map(|run| run.end) {
                Some(Some(end)) => break end,
                Some(None) => {
                    state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                None => break (Outcome::CutOff, Usage::default()),
            }
        };
        let deadline = state.runs.remove(&self.id).and_then(|run| run.deadline);
        drop(state);
        if let Some(own) = self.own.take() {
            own.end();
        }
        // A program that ended by itself has its output delivered however slow the receiver is, as
        // a pipe would; one that was stopped has had its time.
        let patience = match (end.0, self.receiver) {
            (Outcome::Exited(_) | Outcome::Signaled(_), Receiver::Other) => {
                deadline.map(|deadline| deadline + DRAIN)
            }
            _ => Some(Instant::now() + DRAIN),
        };
        self.pumps.finish(patience);
        end
    }

    /// What other threads may do to the run while this value is being waited for.
    ///
    /// # Errors
    /// When the terminal's descriptor can't be duplicated.
    pub fn handle(&self) -> io::Result<RunHandle> {
        let terminal = self.terminal.as_ref().map(OwnedFd::try_clone).transpose()?;
        let (id, shared) = (self.id, Arc::clone(&self.shared));
        Ok(RunHandle { id, shared, terminal, output: self.pumps.handle() })
    }

    /// Carries bytes between the run's terminal and these descriptors until the run ends: `input`
    /// is polled before each read, what the run writes is counted by `limits.output`. The caller
    /// puts its own terminal into raw mode first and restores it afterwards.
    ///
    /// # Errors
    /// When the run has no terminal, or a descriptor or thread can't be made.
    pub fn carry_terminal(&mut self, input: OwnedFd, output: OwnedFd) -> io::Result<()> {
        let writing = self.terminal()?.try_clone()?;
        self.carry_terminal_output(output, None)?;
        self.pumps.start_shared(input, writing)
    }

    /// Carries what the run writes to its terminal, counted by `limits.output`, and leaves what is
    /// typed to [`RunHandle::type_in`]. `notice`, an event counter, is raised after each part.
    ///
    /// # Errors
    /// When the run has no terminal, or a descriptor or thread can't be made.
    pub fn carry_terminal_output(
        &mut self,
        output: OwnedFd,
        notice: Option<OwnedFd>,
    ) -> io::Result<()> {
        let terminal = self.terminal()?.try_clone()?;
        self.pumps.start_polled(terminal, output, self.budget.clone(), notice)
    }

    fn terminal(&self) -> io::Result<&OwnedFd> {
        self.terminal.as_ref().ok_or_else(|| io::Error::from(rustix::io::Errno::NOTTY))
    }
}

/// Who reads what a run writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiver {
    /// Who waits for it, by a pipe.
    Caller,
    /// Whoever has the other end of the caller's descriptors.
    Other,
}

pub(crate) fn spawn(command: &mut Command<'_>) -> Result<Run, SpawnError> {
    check_strings(command)?;
    let own = match &command.target {
        Target::Alone { plan, sink } => Some(plan.start(Arc::clone(sink))?),
        Target::Joined(_) => None,
    };
    let (shared, runs) = match (&command.target, &own) {
        (Target::Joined(session), _) => (Arc::clone(session.shared()), session.runs()),
        (Target::Alone { plan, .. }, Some(session)) => (Arc::clone(session.shared()), &plan.runs),
        (Target::Alone { .. }, None) => return Err(SpawnError::SessionEnded),
    };
    let limits = &runs.limits;
    let started = Instant::now();
    let id = {
        let mut state = shared.state();
        if state.over {
            return Err(over(&mut state));
        }
        state.last_run += 1;
        let id = state.last_run;
        let run = RunState {
            started,
            deadline: limits.wall.map(|wall| started + wall.duration()),
            forked: false,
            pidfd: None,
            process: None,
            inside: 0,
            program: Arc::default(),
            terminal: None,
            stop: None,
            stop_sent: None,
            cpu_ms: 0,
            end: None,
        };
        state.runs.insert(id, run);
        id
    };
    let started = start(command, &shared, id, runs);
    match started {
        Ok(Started { pumps, outside, terminal, budget }) => {
            let [stdin, stdout, stderr] = outside;
            let piped = stdout.is_some() || stderr.is_some();
            let receiver = if piped { Receiver::Caller } else { Receiver::Other };
            Ok(Run { id, shared, own, pumps, terminal, budget, receiver, stdin, stdout, stderr })
        }
        Err(error) => {
            shared.state().runs.remove(&id);
            Err(error)
        }
    }
}

struct Started {
    pumps: Pumps,
    outside: [Option<File>; 3],
    terminal: Option<OwnedFd>,
    budget: Option<Arc<Budget>>,
}

fn start(
    command: &mut Command<'_>,
    shared: &Arc<Shared>,
    id: u64,
    runs: &RunDefaults,
) -> Result<Started, SpawnError> {
    let prepare = |what| move |source: io::Error| SpawnError::Prepare { what, source };
    let mut stdio = StdioPlan::owned_by(runs.owner);
    let limits = &runs.limits;
    let budget =
        limits.output.map(|bytes| Arc::new(Budget::new(Arc::clone(shared), id, bytes.count())));
    let on_terminal = command.terminal.is_some();
    for (index, chosen) in
        [&mut command.stdin, &mut command.stdout, &mut command.stderr].into_iter().enumerate()
    {
        stdio
            .add(index, std::mem::take(chosen), on_terminal, budget.as_ref())
            .map_err(prepare("connect input and output"))?;
    }
    let (list, program) = child::list(command, &stdio, id, limits);
    if let Some(run) = shared.state().runs.get_mut(&id) {
        run.program = Arc::new(program);
    }
    let errand = Errand::prepare(list)?;
    shared.sink.event(Event::RunStarting { run: id }).inspect_err(|_| {
        shared.close(false);
        shared.wake();
    })?;
    let inside: Vec<OwnedFd> = stdio.inside.drain(..).map(|(_, fd)| fd).collect();
    let sent = errand.send(shared, id, inside).and_then(|failure| match failure {
        Some(failure) => Err(explain(command, failure)),
        None => forked(shared, id),
    });
    if let Err(error) = sent {
        await_end(shared, id);
        return Err(error);
    }
    let terminal = if on_terminal { await_terminal(shared, id) } else { None };
    Ok(Started { pumps: stdio.pumps, outside: stdio.outside, terminal, budget })
}

/// A list that a child of the box's init is to execute, and the pipe that tells how that went.
struct Errand {
    list: OwnedFd,
    status: File,
    status_write: OwnedFd,
}

impl Errand {
    fn prepare(list: List) -> Result<Self, SpawnError> {
        let failed = |what| move |source: io::Error| SpawnError::Prepare { what, source };
        let list = list.seal().map_err(failed("write the list of calls"))?;
        let (status, status_write) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed("make a pipe")(e.into()))?;
        Ok(Self { list, status: status.into(), status_write })
    }

    /// Sends it; returns when the child has executed its program, ended, or failed, or when the box
    /// has ended. The stage may still be at work: then the errand waits in the socket.
    fn send(
        self,
        shared: &Shared,
        id: u64,
        inside: Vec<OwnedFd>,
    ) -> Result<Option<ExecFailure>, SpawnError> {
        let Self { list, mut status, status_write } = self;
        let mut fds: Vec<BorrowedFd<'_>> = vec![list.as_fd(), status_write.as_fd()];
        fds.extend(inside.iter().map(AsFd::as_fd));
        let message = Message { kind: MSG_START, run: id, ..Message::default() };
        if control::send(&shared.control, &message, &fds).is_err() {
            return Err(await_over(shared));
        }
        drop(status_write);
        drop(inside);
        // The pipe closes at exec; before that it may bring the failure.
        let mut bytes = Vec::new();
        status
            .read_to_end(&mut bytes)
            .map_err(|source| SpawnError::Prepare { what: "hear of the start", source })?;
        let Ok(bytes) = <[u8; size_of::<ExecFailure>()]>::try_from(bytes.as_slice()) else {
            return Ok(None);
        };
        let [a, b, c, d, errno @ ..] = bytes;
        let (step, errno) = (u32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes(errno));
        Ok(Some(ExecFailure { step, errno }))
    }
}

/// Waits until the session knows that the box's init has forked this run: the pipe closes as well
/// when the box ends before it comes to that.
fn forked(shared: &Shared, id: u64) -> Result<(), SpawnError> {
    let mut state = shared.state();
    loop {
        match state.runs.get(&id) {
            Some(run) if run.forked => return Ok(()),
            Some(run) if run.end.is_none() => {}
            _ => return Err(over(&mut state)),
        }
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Waits until the run's end is on record.
fn await_end(shared: &Shared, id: u64) {
    let mut state = shared.state();
    while state.runs.get(&id).is_some_and(|run| run.end.is_none()) {
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Waits until the session knows that the box is over; yields why nothing can be started.
fn await_over(shared: &Shared) -> SpawnError {
    let mut state = shared.state();
    while !state.over {
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    over(&mut state)
}

/// Why nothing can be started in a session that is over. A failed step is told once.
fn over(state: &mut State) -> SpawnError {
    match &mut state.progress {
        Progress::Failed(error) => error.take().map_or(SpawnError::SessionEnded, Into::into),
        _ => SpawnError::SessionEnded,
    }
}

/// Has raw calls made in a session; yields the step and errno of the first that went otherwise than
/// the list says.
pub(crate) fn attempt(session: &Session, list: List) -> Result<Option<(u32, i32)>, SpawnError> {
    session.wait_ready()?;
    let failure = Errand::prepare(list)?.send(session.shared(), 0, Vec::new())?;
    Ok(failure.map(|failure| (failure.step, failure.errno)))
}

fn explain(command: &Command<'_>, failure: ExecFailure) -> SpawnError {
    let source = io::Error::from_raw_os_error(failure.errno);
    let program = PathBuf::from(&command.program);
    match (STEPS.get(failure.step as usize), failure.errno) {
        (Some(&EXECUTE), libc::ENOENT | libc::ENOTDIR) => SpawnError::NotFound { program },
        (Some(&EXECUTE), _) => SpawnError::NotExecutable { program, source },
        (what, _) => SpawnError::Step { what: what.copied().unwrap_or("fork"), source },
    }
}

fn await_terminal(shared: &Shared, id: u64) -> Option<OwnedFd> {
    let mut state = shared.state();
    loop {
        let over = state.over;
        let run = state.runs.get_mut(&id)?;
        if run.terminal.is_some() || over {
            return run.terminal.take();
        }
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn check_strings(command: &Command<'_>) -> Result<(), SpawnError> {
    let free = |text: &OsStr, what| {
        if text.as_bytes().contains(&0) { Err(SpawnError::Nul { what }) } else { Ok(()) }
    };
    free(&command.program, "the program's name")?;
    command.args.iter().try_for_each(|arg| free(arg, "an argument"))?;
    free(command.directory.as_os_str(), "the directory")?;
    command.environment.iter().try_for_each(|(name, value)| {
        free(name, "a variable's name")?;
        free(value, "a variable's value")
    })
}
