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
use crate::elsewhere::{
    Connection, Holder, KeptHere, RunElsewhere, SessionElsewhere, StartedElsewhere,
};
use crate::error::SpawnError;
use crate::event::Event;
use crate::list::List;
use crate::outcome::{Outcome, Usage};
use crate::plan::RunDefaults;
use crate::pump::{Budget, Pumps};
use crate::session::{Progress, RunState, Session, Shared, State, Untold};
use crate::stdio::StdioPlan;
use crate::tap::TappedStream;
use crate::wire::{ExecFailure, MSG_START, Message, START_KEPT};

pub use handle::RunHandle;

/// How long a run's last output may take to reach a slow receiver after the run has ended.
const DRAIN: Duration = Duration::from_millis(500);

/// A command that was started.
///
/// Dropping it does not stop the command, unless its session is its own: then everything ends.
#[derive(Debug)]
pub struct Run {
    id: u64,
    holder: Holder,
    deadline: Option<Instant>,
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
        let end = match &self.holder {
            Holder::Here { shared, run } => wait(shared, *run),
            Holder::Elsewhere(session) => session.wait(),
        };
        let deadline = self.deadline;
        if let Some(own) = self.own.take() {
            own.end();
        }
        // A program that ended by itself has its output delivered however slow the receiver is, as
        // a pipe would; one that was stopped has had its time.
        let patience = match (end.0, self.receiver) {
            (_, Receiver::Here) => None,
            (Outcome::Exited(_) | Outcome::Signaled(_), Receiver::Other) => {
                deadline.map(|deadline| deadline + DRAIN)
            }
            _ => Some(Instant::now() + DRAIN),
        };
        self.pumps.finish(patience);
        end
    }

    /// Takes the caller's ends of what the run writes for threads of this crate.
    pub(crate) fn take_output(&mut self) -> [Option<File>; 2] {
        self.receiver = Receiver::Here;
        [self.stdout.take(), self.stderr.take()]
    }

    /// What other threads may do to the run while this value is being waited for.
    ///
    /// # Errors
    /// When the terminal's descriptor can't be duplicated.
    pub fn handle(&self) -> io::Result<RunHandle> {
        let terminal = self.terminal.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok(RunHandle { holder: self.holder.clone(), terminal, output: self.pumps.handle() })
    }

    /// Takes the other side of the run's terminal, for another process that carries its bytes.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// When the run will be stopped at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
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
        let told = (self.budget.clone(), notice);
        self.pumps.start_polled(TappedStream::Terminal, terminal, output, told)
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
    /// Threads of this crate, which are never slow for long.
    Here,
}

pub(crate) fn spawn(command: &mut Command<'_>) -> Result<Run, SpawnError> {
    check_strings(command)?;
    let (shared, runs, own) = match &command.target {
        Target::Alone { plan, sink } => {
            let session = plan.start(Arc::clone(sink))?;
            (Arc::clone(session.shared()), Arc::clone(&plan.runs), Some(session))
        }
        Target::Joined { shared, runs } => (Arc::clone(shared), Arc::clone(runs), None),
        Target::Elsewhere { session, kept } => {
            let (session, kept) = (Arc::clone(session), *kept);
            return spawn_elsewhere(command, session, kept);
        }
    };
    let limits = &runs.limits;
    let started = Instant::now();
    let wall = match (limits.wall, command.wall) {
        (Some(policy), Some(asked)) => Some(policy.min(asked)),
        (policy, asked) => policy.or(asked),
    };
    let deadline = wall.map(|wall| started + wall.duration());
    let id = {
        let mut state = shared.state();
        if state.over {
            return Err(over(&mut state));
        }
        let id = command.number.unwrap_or(state.last_run + 1);
        if state.runs.contains_key(&id) {
            let source = io::ErrorKind::AlreadyExists.into();
            return Err(SpawnError::Prepare { what: "choose a number", source });
        }
        state.last_run = state.last_run.max(id);
        let run = RunState {
            started,
            wall,
            deadline,
            forked: false,
            pidfd: None,
            process: None,
            inside: 0,
            program: Arc::default(),
            terminal: None,
            stop: None,
            stop_sent: None,
            untold: Untold::Nothing,
            cpu_ms: 0,
            end: None,
            kept: command.kept,
            keeper_known: false,
            end_notice: command.end_notice.take(),
        };
        state.runs.insert(id, run);
        id
    };
    let started = start(command, &shared, id, &runs);
    match started {
        Ok(Started { pumps, outside, terminal, budget }) => {
            let [stdin, stdout, stderr] = outside;
            let receiver = receiver(&stdout, &stderr);
            let holder = Holder::Here { shared, run: id };
            Ok(Run {
                id,
                holder,
                deadline,
                own,
                pumps,
                terminal,
                budget,
                receiver,
                stdin,
                stdout,
                stderr,
            })
        }
        Err(error) => {
            shared.state().runs.remove(&id);
            Err(error)
        }
    }
}

fn receiver(stdout: &Option<File>, stderr: &Option<File>) -> Receiver {
    if stdout.is_some() || stderr.is_some() { Receiver::Caller } else { Receiver::Other }
}

/// Starts a run in a session that another process holds, and carries its bytes here.
fn spawn_elsewhere(
    command: &mut Command<'_>,
    session: Arc<dyn SessionElsewhere>,
    kept: KeptHere,
) -> Result<Run, SpawnError> {
    let holder = Holder::Elsewhere(Arc::clone(&session));
    let budget = kept.output.map(|bytes| Arc::new(Budget::new(holder.clone(), bytes.count())));
    let mut stdio = connect(command, kept.owner, budget.as_ref())?;
    let mut connections = [Connection::Null, Connection::Null, Connection::Null];
    for index in stdio.on_terminal.drain(..) {
        connections[index] = Connection::Terminal;
    }
    for (index, fd) in stdio.inside.drain(..) {
        connections[index] = Connection::Pipe(fd);
    }
    let started = session.start(RunElsewhere {
        program: command.program.clone(),
        args: command.args.clone(),
        environment: command.environment.clone().into_iter().collect(),
        directory: command.directory.clone(),
        terminal: command.terminal.map(|size| (size, command.terminal_modes)),
        stdio: connections,
    })?;
    let StartedElsewhere { run: id, terminal, deadline } = started;
    let (pumps, [stdin, stdout, stderr]) = (stdio.pumps, stdio.outside);
    let receiver = receiver(&stdout, &stderr);
    let own = None;
    Ok(Run { id, holder, deadline, own, pumps, terminal, budget, receiver, stdin, stdout, stderr })
}

/// Connects input, output and errors.
fn connect(
    command: &mut Command<'_>,
    owner: Option<u32>,
    budget: Option<&Arc<Budget>>,
) -> Result<StdioPlan, SpawnError> {
    let mut stdio = StdioPlan::owned_by(owner, command.tap.take());
    let on_terminal = command.terminal.is_some();
    for (index, chosen) in
        [&mut command.stdin, &mut command.stdout, &mut command.stderr].into_iter().enumerate()
    {
        stdio
            .add(index, std::mem::take(chosen), on_terminal, budget)
            .map_err(|source| SpawnError::Prepare { what: "connect input and output", source })?;
    }
    Ok(stdio)
}

/// Waits for the end of a run of this process's session, which is forgotten then.
fn wait(shared: &Shared, id: u64) -> (Outcome, Usage) {
    let mut state = shared.state();
    let end = loop {
        match state.runs.get(&id).map(|run| run.end) {
            Some(Some(end)) => break end,
            Some(None) => {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            None => break (Outcome::CutOff, Usage::default()),
        }
    };
    state.runs.remove(&id);
    end
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
    let limits = &runs.limits;
    let holder = Holder::Here { shared: Arc::clone(shared), run: id };
    let budget = limits.output.map(|bytes| Arc::new(Budget::new(holder, bytes.count())));
    let mut stdio = connect(command, runs.owner, budget.as_ref())?;
    let on_terminal = command.terminal.is_some();
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
    let flags = if command.kept { START_KEPT } else { 0 };
    let sent = errand.send(shared, (id, flags), inside).and_then(|failure| match failure {
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
        (id, flags): (u64, u32),
        inside: Vec<OwnedFd>,
    ) -> Result<Option<ExecFailure>, SpawnError> {
        let Self { list, mut status, status_write } = self;
        let mut fds: Vec<BorrowedFd<'_>> = vec![list.as_fd(), status_write.as_fd()];
        fds.extend(inside.iter().map(AsFd::as_fd));
        let message = Message { kind: MSG_START, run: id, code: flags, ..Message::default() };
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
/// when the box ends before it comes to that. One that was stopped before has that as its outcome.
fn forked(shared: &Shared, id: u64) -> Result<(), SpawnError> {
    let mut state = shared.state();
    loop {
        match state.runs.get(&id) {
            Some(run) if run.forked => return Ok(()),
            Some(run) if run.end.is_none() => {}
            Some(run) if run.stop.is_some() => return Ok(()),
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
    let failure = Errand::prepare(list)?.send(session.shared(), (0, 0), Vec::new())?;
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
        // One that was stopped before it had a process has none.
        let unborn = run.end.is_some() && !run.forked;
        if run.terminal.is_some() || over || unborn {
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
