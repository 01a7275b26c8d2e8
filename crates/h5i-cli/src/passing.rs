//! Passes bytes, signals and the terminal between the caller and a run.

mod attendant;
mod forwarding;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use h5i_confine::{Command, Run, SessionHandle, SpawnError, Stdio};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::isatty;

use crate::failure::Failure;
use crate::running::{Ended, spawn_failure};
use crate::terminal::{Attendance, CallerTerminal, Grip, Keyboard, LineEnds};
use attendant::Attendant;
use forwarding::{Forwarding, Recipient};

/// Hears what there is to read.
type Hear = Box<dyn FnMut() + Send>;

/// The caller's terminal and signals, held for a run from before its start: a signal that comes with
/// the first output is for the command. Dropping it gives the terminal back.
pub(crate) struct Foreground {
    to: Arc<Mutex<Recipient>>,
    terminal: Mutex<Option<Closing>>,
}

impl Foreground {
    /// Takes them.
    ///
    /// # Errors
    /// A failure that says what the terminal or the signals refused.
    pub(crate) fn take(
        attendance: Attendance,
        watch: impl FnOnce(OwnedFd, Hear),
    ) -> Result<Self, Failure> {
        let (mut forwarding, told) = Forwarding::start().map_err(terminal_failure)?;
        let to = forwarding.recipient();
        watch(told, Box::new(move || forwarding.forward()));
        let terminal = CallerTerminal::find(attendance).map_err(terminal_failure)?;
        let terminal = terminal.map(|terminal| Closing(Arc::new(terminal)));
        Ok(Self { to, terminal: Mutex::new(terminal) })
    }

    /// Takes them in a process without a session: signals are heard by a thread of their own.
    ///
    /// # Errors
    /// As [`Foreground::take`].
    pub(crate) fn take_alone(attendance: Attendance) -> Result<Self, Failure> {
        let mut started = Ok(());
        let taken = Self::take(attendance, |told, mut hear| {
            let listen = move || {
                let wait = || poll(&mut [PollFd::new(&told, PollFlags::IN)], None);
                while rustix::io::retry_on_intr(wait).is_ok() {
                    hear();
                }
            };
            let thread = std::thread::Builder::new().name("h5i-signals".to_owned());
            started = thread.stack_size(128 * 1024).spawn(listen).map(drop);
        })?;
        started.map_err(terminal_failure)?;
        Ok(taken)
    }

    /// The run has ended and others of its session have not: signals that end a program end the
    /// session from here on, and others leave it alone.
    pub(crate) fn wait_for_others(&self, session: SessionHandle) {
        Recipient::others_go_on(&self.to, session);
    }

    /// Passes bytes, signals and the terminal through until the run ends.
    ///
    /// # Errors
    /// A failure when nothing was run.
    pub(crate) fn pass(&self, command: &mut Command<'_>) -> Result<Ended, Failure> {
        let taken = self.terminal.lock().unwrap_or_else(PoisonError::into_inner).take();
        let terminal = taken.as_ref().map(|closing| &closing.0);
        if let Some(terminal) = terminal {
            prepare(command, terminal).map_err(terminal_failure)?;
        }
        let mut run = command.spawn().map_err(|e| spawn_failure(&e))?;
        let attendant = match terminal {
            Some(terminal) => carry(&mut run, terminal),
            None => run.handle().map(|handle| Arc::new(Attendant::of_bytes(handle))),
        };
        let attendant = attendant.map_err(terminal_failure)?;
        Recipient::set(&self.to, Arc::clone(&attendant));
        let (outcome, usage) = run.finish();
        // A terminal that was closed is no failure of its own.
        let gone = |error: &io::Error| {
            terminal.is_some() && error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
        };
        let undelivered = attendant.output_error().filter(|error| !gone(error));
        Ok(Ended { undelivered, ..Ended::new(outcome, usage) })
    }
}

fn terminal_failure(source: io::Error) -> Failure {
    spawn_failure(&SpawnError::Prepare { what: "use the terminal", source })
}

/// Restores the caller's terminal when it is dropped.
struct Closing(Arc<CallerTerminal>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Gives a run a terminal of the size and modes of the caller's; what is no terminal stays what it
/// is.
fn prepare(command: &mut Command<'_>, terminal: &CallerTerminal) -> io::Result<()> {
    command.terminal(terminal.size()).terminal_modes(terminal.modes()?);
    let given = |fd: BorrowedFd<'_>| -> io::Result<Option<Stdio>> {
        if isatty(fd) { Ok(None) } else { Ok(Some(Stdio::Descriptor(fd.try_clone_to_owned()?))) }
    };
    if let Some(stdin) = given(io::stdin().as_fd())? {
        command.stdin(stdin);
    }
    if let Some(stdout) = given(io::stdout().as_fd())? {
        command.stdout(stdout);
    }
    if let Some(stderr) = given(io::stderr().as_fd())? {
        command.stderr(stderr);
    }
    Ok(())
}

/// Has the run's terminal carried.
fn carry(run: &mut Run, terminal: &Arc<CallerTerminal>) -> io::Result<Arc<Attendant>> {
    let counter = Keyboard::counter()?;
    // Before the first byte is shown.
    if terminal.grip() == Grip::Whole {
        terminal.take(LineEnds::Box);
    }
    run.carry_terminal_output(terminal.output()?, Some(counter.try_clone()?))?;
    let keyboard = Keyboard::new(counter);
    let attendant =
        Arc::new(Attendant::of_terminal(run.handle()?, Arc::clone(terminal), keyboard.clone()));
    let told = Arc::clone(&attendant);
    keyboard.start(Arc::clone(terminal), run.handle()?, move || told.hang_up())?;
    Ok(attendant)
}
