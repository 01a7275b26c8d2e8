//! One command in a session: started, watched, waited for.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::command::{Command, Stdio, Target, TerminalSize};
use crate::compile::{AT_FDCWD, TAG_TERMINALS, c_string, limit};
use crate::control;
use crate::error::SpawnError;
use crate::event::Event;
use crate::list::{Arg, List, Slot};
use crate::outcome::{Outcome, Usage};
use crate::pump::{Budget, Pumps};
use crate::session::{RunState, Session, Shared};
use crate::wire::{ExecFailure, MSG_START, Message};

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
    /// The writing end of the input, when it is [`Stdio::Piped`].
    pub stdin: Option<File>,
    /// The reading end of the output, when it is [`Stdio::Piped`].
    pub stdout: Option<File>,
    /// The reading end of the errors, when they are [`Stdio::Piped`].
    pub stderr: Option<File>,
}

impl Run {
    /// Number of the run in its session, from 1.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the end of the run. A session of its own is over when this returns; its output has
    /// reached its receiver, or the receiver was too slow for half a second.
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
        state.runs.remove(&self.id);
        drop(state);
        if let Some(own) = self.own.take() {
            own.end();
        }
        self.pumps.finish(Instant::now() + DRAIN);
        end
    }

    /// Sends a signal to the run's program.
    ///
    /// # Errors
    /// `ESRCH` when it has ended.
    pub fn signal(&self, signal: rustix::process::Signal) -> io::Result<()> {
        let state = self.shared.state();
        match state.runs.get(&self.id).and_then(|run| run.pidfd.as_ref()) {
            Some(pidfd) => Ok(rustix::process::pidfd_send_signal(pidfd, signal)?),
            None => Err(rustix::io::Errno::SRCH.into()),
        }
    }

    /// Carries bytes between the run's terminal and these descriptors until the run ends: `input`
    /// is polled before each read, what the run writes is counted by `limits.output`. The caller
    /// puts its own terminal into raw mode first and restores it afterwards.
    ///
    /// # Errors
    /// When the run has no terminal, or a descriptor or thread can't be made.
    pub fn carry_terminal(&mut self, input: OwnedFd, output: OwnedFd) -> io::Result<()> {
        let terminal = self.terminal()?.try_clone()?;
        let writing = terminal.try_clone()?;
        self.pumps.start(terminal, output, self.budget.clone())?;
        self.pumps.start_shared(input, writing)
    }

    /// Tells the run's terminal its size.
    ///
    /// # Errors
    /// When the run has no terminal.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let (ws_row, ws_col) = (size.rows, size.columns);
        let size = rustix::termios::Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(self.terminal()?, size)?)
    }

    fn terminal(&self) -> io::Result<&OwnedFd> {
        self.terminal.as_ref().ok_or_else(|| io::Error::from(rustix::io::Errno::NOTTY))
    }
}

pub(crate) fn spawn(command: &mut Command<'_>) -> Result<Run, SpawnError> {
    check_strings(command)?;
    let own = match &command.target {
        Target::Alone { plan, sink } => Some(plan.start(Arc::clone(sink))?),
        Target::Joined(_) => None,
    };
    let (shared, limits) = match (&command.target, &own) {
        (Target::Joined(session), _) => (Arc::clone(session.shared()), &session.plan().limits),
        (Target::Alone { plan, .. }, Some(session)) => (Arc::clone(session.shared()), &plan.limits),
        (Target::Alone { .. }, None) => return Err(SpawnError::SessionEnded),
    };
    let limits = limits.clone();
    let started = Instant::now();
    let id = {
        let mut state = shared.state();
        if state.over {
            return Err(SpawnError::SessionEnded);
        }
        state.last_run += 1;
        let id = state.last_run;
        let run = RunState {
            started,
            deadline: limits.wall.map(|wall| started + wall.duration()),
            pidfd: None,
            terminal: None,
            stop: None,
            stop_sent: None,
            cpu_ms: 0,
            end: None,
        };
        state.runs.insert(id, run);
        id
    };
    let started = start(command, &shared, id, &limits);
    match started {
        Ok(Started { pumps, outside, terminal, budget }) => {
            let [stdin, stdout, stderr] = outside;
            Ok(Run { id, shared, own, pumps, terminal, budget, stdin, stdout, stderr })
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
    limits: &h5i_policy::Limits,
) -> Result<Started, SpawnError> {
    let prepare = |what| move |source: io::Error| SpawnError::Prepare { what, source };
    let mut stdio = StdioPlan::default();
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
    let list = list(command, &stdio, id, limits);
    shared.sink.event(Event::RunStarting { run: id })?;
    let inside: Vec<OwnedFd> = stdio.inside.drain(..).map(|(_, fd)| fd).collect();
    if let Some(failure) = execute(shared, id, list, inside)? {
        return Err(explain(command, failure));
    }
    let terminal = if on_terminal { await_terminal(shared, id) } else { None };
    Ok(Started { pumps: stdio.pumps, outside: stdio.outside, terminal, budget })
}

/// Has a list executed in a child of the box's init; returns when it has executed its program,
/// ended, or failed.
fn execute(
    shared: &Shared,
    id: u64,
    list: List,
    inside: Vec<OwnedFd>,
) -> Result<Option<ExecFailure>, SpawnError> {
    let prepare = |what| move |source: io::Error| SpawnError::Prepare { what, source };
    let list = list.seal().map_err(prepare("write the list of calls"))?;
    let (status, status_write) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|e| prepare("make a pipe")(e.into()))?;
    let mut fds: Vec<BorrowedFd<'_>> = vec![list.as_fd(), status_write.as_fd()];
    fds.extend(inside.iter().map(AsFd::as_fd));
    let message = Message { kind: MSG_START, run: id, ..Message::default() };
    control::send(&shared.control, &message, &fds).map_err(|_gone| SpawnError::SessionEnded)?;
    drop(status_write);
    drop(inside);
    // The pipe closes at exec; before that it may bring the failure.
    let mut bytes = Vec::new();
    File::from(status).read_to_end(&mut bytes).map_err(prepare("hear of the start"))?;
    let Ok(bytes) = <[u8; size_of::<ExecFailure>()]>::try_from(bytes.as_slice()) else {
        return Ok(None);
    };
    let [a, b, c, d, errno @ ..] = bytes;
    let (step, errno) = (u32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes(errno));
    Ok(Some(ExecFailure { step, errno }))
}

/// Has raw calls made in a session; yields the step and errno of the first that went otherwise than
/// the list says.
pub(crate) fn attempt(session: &Session, list: List) -> Result<Option<(u32, i32)>, SpawnError> {
    let failure = execute(session.shared(), 0, list, Vec::new())?;
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

/// Input and output on their way: what goes into the box, what stays outside.
#[derive(Default)]
struct StdioPlan {
    inside: Vec<(usize, OwnedFd)>,
    null: Vec<usize>,
    on_terminal: Vec<usize>,
    outside: [Option<File>; 3],
    pumps: Pumps,
}

impl StdioPlan {
    fn add(
        &mut self,
        index: usize,
        chosen: Stdio,
        terminal: bool,
        budget: Option<&Arc<Budget>>,
    ) -> io::Result<()> {
        let given = match chosen {
            Stdio::Inherit if terminal => {
                self.on_terminal.push(index);
                return Ok(());
            }
            Stdio::Null => {
                self.null.push(index);
                return Ok(());
            }
            Stdio::Inherit => Some(inherited(index)?),
            Stdio::Descriptor(fd) => Some(fd),
            Stdio::Piped => None,
        };
        match (index, given) {
            (0, None) => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                self.inside.push((0, read));
                self.outside[0] = Some(File::from(write));
            }
            (0, Some(fd)) if may_hand_in(&fd)? => self.inside.push((0, fd)),
            (0, Some(fd)) => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                self.inside.push((0, read));
                self.pumps.start_shared(fd, write)?;
            }
            (_, given) => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                self.inside.push((index, write));
                match (given, budget) {
                    (None, None) => self.outside[index] = Some(File::from(read)),
                    (None, Some(budget)) => {
                        let (last, middle) = pipe_with(PipeFlags::CLOEXEC)?;
                        self.pumps.start(read, middle, Some(Arc::clone(budget)))?;
                        self.outside[index] = Some(File::from(last));
                    }
                    (Some(fd), budget) => self.pumps.start(read, fd, budget.cloned())?,
                }
            }
        }
        Ok(())
    }
}

fn inherited(index: usize) -> io::Result<OwnedFd> {
    match index {
        0 => io::stdin().as_fd().try_clone_to_owned(),
        1 => io::stdout().as_fd().try_clone_to_owned(),
        _ => io::stderr().as_fd().try_clone_to_owned(),
    }
}

/// A pipe or a plain file gives the box nothing but its bytes; a terminal, a device or a socket
/// would be a way out.
fn may_hand_in(fd: &OwnedFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(fd)?.st_mode);
    Ok(matches!(kind, FileType::Fifo | FileType::RegularFile))
}

const EXECUTE: &str = "execute the program";
/// The steps of a run between fork and exec, by their index in the list.
const STEPS: [&str; 6] = [
    "start a terminal session",
    "open the terminal",
    "connect input and output",
    "set limits and signals",
    "change to the directory",
    EXECUTE,
];

/// The calls of a run's child, up to its exec.
fn list(command: &Command<'_>, stdio: &StdioPlan, id: u64, limits: &h5i_policy::Limits) -> List {
    let count = u16::try_from(stdio.inside.len()).unwrap_or(u16::MAX);
    let mut list = List::receiving(count);
    list.begin_step(0);
    list.call(libc::SYS_setsid, &[]);
    list.begin_step(1);
    let terminal = command.terminal.map(|size| open_terminal(&mut list, size, id));
    list.begin_step(2);
    for (place, (index, _)) in stdio.inside.iter().enumerate() {
        let slot = list.received(u16::try_from(place).unwrap_or(u16::MAX));
        put_at(&mut list, slot, *index);
    }
    if !stdio.null.is_empty() {
        let path = Arg::Data(list.string(b"/dev/null"));
        let flags = Arg::Value((libc::O_RDWR | libc::O_CLOEXEC) as u64);
        let null = list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, Arg::Value(0)]);
        for index in &stdio.null {
            put_at(&mut list, null, *index);
        }
    }
    if let Some(slot) = terminal {
        for index in &stdio.on_terminal {
            put_at(&mut list, slot, *index);
        }
    }
    list.begin_step(3);
    if let Some(cpu) = limits.cpu {
        // The supervisor accounts the whole; this bounds one process should it come too late.
        let seconds = cpu.count().div_ceil(1000) + 1;
        limit(&mut list, libc::RLIMIT_CPU, seconds, seconds + 1);
    }
    default_signals(&mut list);
    list.begin_step(4);
    let directory = Arg::Data(c_string(&mut list, command.directory.as_os_str()));
    list.call(libc::SYS_chdir, &[directory]);
    list.begin_step(5);
    let argv: Vec<&[u8]> =
        std::iter::once(&command.program).chain(&command.args).map(|arg| arg.as_bytes()).collect();
    let argv = list.strings(argv);
    let variables: Vec<Vec<u8>> = command
        .environment
        .iter()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
        .collect();
    let envp = list.strings(variables.iter().map(Vec::as_slice));
    for candidate in command.candidates() {
        let path = c_string(&mut list, candidate.as_os_str());
        list.exec(path, argv, envp);
    }
    list.fail();
    list
}

fn put_at(list: &mut List, slot: Slot, index: usize) {
    list.call(libc::SYS_dup3, &[Arg::Slot(slot), Arg::Value(index as u64), Arg::Value(0)]);
}

/// Opens a terminal of the box, makes it the controlling one, and hands its other side out.
fn open_terminal(list: &mut List, size: TerminalSize, id: u64) -> Slot {
    let flags = Arg::Value((libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) as u64);
    let path = Arg::Data(list.string(b"/dev/pts/ptmx"));
    let master = list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, Arg::Value(0)]);
    let unlock = Arg::Data(list.words(&[0]));
    list.call(libc::SYS_ioctl, &[Arg::Slot(master), Arg::Value(libc::TIOCSPTLCK), unlock]);
    let peer = Arg::Value(libc::TIOCGPTPEER);
    let terminal = list.open(libc::SYS_ioctl, &[Arg::Slot(master), peer, flags]);
    let [r0, r1] = size.rows.to_ne_bytes();
    let [c0, c1] = size.columns.to_ne_bytes();
    let winsize = Arg::Data(list.bytes(&[r0, r1, c0, c1, 0, 0, 0, 0]));
    let set_size = Arg::Value(libc::TIOCSWINSZ);
    list.call(libc::SYS_ioctl, &[Arg::Slot(master), set_size, winsize]);
    let controlling = Arg::Value(libc::TIOCSCTTY);
    list.call(libc::SYS_ioctl, &[Arg::Slot(terminal), controlling, Arg::Value(0)]);
    list.hand_out(master, TAG_TERMINALS + u32::try_from(id).unwrap_or(0));
    terminal
}

/// What the supervisor ignores (SIGPIPE, always, in a Rust program) is not ignored in the box.
fn default_signals(list: &mut List) {
    // struct sigaction of the kernel, all zero: SIG_DFL, no flags, an empty mask of eight bytes.
    let default = Arg::Data(list.words(&[0, 0, 0, 0]));
    for signal in 1..=31u64 {
        if signal != libc::SIGKILL as u64 && signal != libc::SIGSTOP as u64 {
            let args = [Arg::Value(signal), default, Arg::Value(0), Arg::Value(8)];
            list.call(libc::SYS_rt_sigaction, &args);
        }
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
