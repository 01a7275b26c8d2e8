//! Passes bytes, signals and the terminal between the caller and a run.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use h5i_confine::{Command, Launched, Run, RunHandle, SpawnError, Stdio};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::isatty;
use signal_hook::consts::{
    SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGWINCH,
};
use signal_hook::iterator::Signals;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::failure::Failure;
use crate::running::{Ended, spawn_failure};
use crate::terminal::{Attendance, CallerTerminal, Grip, Keyboard, LineEnds};

/// How long the programs of a box have to end by themselves once the caller's terminal is gone.
const AFTER_HANG_UP: Duration = Duration::from_secs(2);

/// The caller's terminal and signals, held for a run. Dropping it gives the terminal back.
pub(crate) enum Foreground {
    /// The run has a terminal of the box; threads of their own attend to it.
    Terminal {
        /// What comes for it.
        signals: Signals,
        /// The caller's terminal.
        terminal: Closing,
    },
    /// There is no terminal. The session's thread attends to signals, since making another takes as
    /// long as the kernel needs for the box's mounts.
    Plain(Arc<Mutex<Recipient>>),
}

/// What signals are passed on to.
pub(crate) enum Recipient {
    /// Nothing runs yet; these came meanwhile.
    Awaited(Vec<i32>),
    /// The run.
    Run(Attendant),
}

impl Foreground {
    /// Holds them from before the start: a signal that comes with the first output is for the
    /// command.
    ///
    /// # Errors
    /// A failure that says what the terminal or the signals refused.
    pub(crate) fn take(
        attendance: Attendance,
        launched: &mut Launched<'_>,
    ) -> Result<Self, Failure> {
        let mut taken = || {
            let passed_on = passed_on()?;
            if let Some(terminal) = CallerTerminal::find(attendance)? {
                let signals = Signals::new(passed_on)?;
                return Ok(Self::Terminal { signals, terminal: Closing(Arc::new(terminal)) });
            }
            let (read, write) = UnixStream::pair()?;
            let told = read.try_clone()?.into();
            let mut signals = SignalDelivery::with_pipe(read, write, SignalOnly, passed_on)?;
            let to = Arc::new(Mutex::new(Recipient::Awaited(Vec::new())));
            let recipient = Arc::clone(&to);
            launched.also_watch(told, move || {
                let mut to = recipient.lock().unwrap_or_else(PoisonError::into_inner);
                for signal in signals.pending() {
                    match &mut *to {
                        Recipient::Awaited(came) => came.push(signal),
                        Recipient::Run(attendant) => attendant.signal(signal),
                    }
                }
            });
            Ok(Self::Plain(to))
        };
        taken().map_err(terminal_failure)
    }

    /// Passes bytes, signals and the terminal through until the run ends.
    ///
    /// # Errors
    /// A failure when nothing was run.
    pub(crate) fn pass(self, command: &mut Command<'_>) -> Result<Ended, Failure> {
        let (signals, closing) = match self {
            Self::Plain(to) => return pass_plain(command, &to),
            Self::Terminal { signals, terminal } => (signals, terminal),
        };
        let terminal = &closing.0;
        prepare(command, terminal).map_err(terminal_failure)?;
        let mut run = command.spawn().map_err(|e| spawn_failure(&e))?;
        let (events, news) = channel();
        let keyboard = Some(carry(&mut run, terminal, &events).map_err(terminal_failure)?);
        let output = run.handle().map_err(terminal_failure)?;
        let handle = run.handle().map_err(terminal_failure)?;
        let attendant = Attendant { run: handle, terminal: Some(Arc::clone(terminal)), keyboard };
        let waiting = Waiting::start(signals, events, news, attendant).map_err(terminal_failure)?;
        let (outcome, usage) = run.finish();
        waiting.stop();
        // A terminal that was closed is no failure of its own.
        let gone =
            |error: &io::Error| error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
        let undelivered = output.output_error().filter(|error| !gone(error));
        Ok(Ended { undelivered, ..Ended::new(outcome, usage) })
    }
}

fn pass_plain(command: &mut Command<'_>, to: &Mutex<Recipient>) -> Result<Ended, Failure> {
    let run = command.spawn().map_err(|e| spawn_failure(&e))?;
    let output = run.handle().map_err(terminal_failure)?;
    let run_handle = run.handle().map_err(terminal_failure)?;
    let attendant = Attendant { run: run_handle, terminal: None, keyboard: None };
    {
        let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Recipient::Awaited(came) = &*to {
            came.iter().for_each(|signal| attendant.signal(*signal));
        }
        *to = Recipient::Run(attendant);
    }
    let (outcome, usage) = run.finish();
    Ok(Ended { undelivered: output.output_error(), ..Ended::new(outcome, usage) })
}

fn terminal_failure(source: io::Error) -> Failure {
    spawn_failure(&SpawnError::Prepare { what: "use the terminal", source })
}

/// Restores the caller's terminal when it is dropped.
pub(crate) struct Closing(Arc<CallerTerminal>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Gives a run a terminal of the size and modes of the caller's; what is no terminal stays what it
/// is.
fn prepare(command: &mut Command<'_>, terminal: &CallerTerminal) -> io::Result<()> {
    command.terminal(terminal.size()).terminal_modes(terminal.modes()?);
    let given = |fd: std::os::fd::BorrowedFd<'_>| -> io::Result<Option<Stdio>> {
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

fn carry(
    run: &mut Run,
    terminal: &Arc<CallerTerminal>,
    events: &Sender<Event>,
) -> io::Result<Keyboard> {
    let counter = Keyboard::counter()?;
    // Before the first byte is shown.
    if terminal.grip() == Grip::Whole {
        terminal.take(LineEnds::Box);
    }
    run.carry_terminal_output(terminal.output()?, Some(counter.try_clone()?))?;
    let events = events.clone();
    Keyboard::start(Arc::clone(terminal), run.handle()?, counter, move || {
        // Nobody waits any more when this fails.
        events.send(Event::HungUp).ok();
    })
}

/// The signals that h5i passes on: all but those that its own caller had ignored, as `nohup` does
/// with SIGHUP and a shell with SIGINT for what it starts in the background.
fn passed_on() -> io::Result<Vec<i32>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT];
    Ok(all.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).collect())
}

/// What happens while a run is waited for.
enum Event {
    Signal(i32),
    HungUp,
    Over,
}

/// The threads that attend to a run while it is waited for. They end by themselves soon after they
/// are told; nothing is gained by waiting for that.
struct Waiting {
    signals: signal_hook::iterator::Handle,
    events: Sender<Event>,
}

impl Waiting {
    fn start(
        mut signals: Signals,
        events: Sender<Event>,
        news: Receiver<Event>,
        attendant: Attendant,
    ) -> io::Result<Self> {
        let stop = signals.handle();
        let thread =
            |name: &str| std::thread::Builder::new().name(name.to_owned()).stack_size(128 * 1024);
        let heard = events.clone();
        thread("h5i-signals").spawn(move || {
            for signal in signals.forever() {
                // Nobody waits any more when this fails.
                heard.send(Event::Signal(signal)).ok();
            }
        })?;
        thread("h5i-attendant").spawn(move || attendant.attend(&news))?;
        Ok(Self { signals: stop, events })
    }

    fn stop(self) {
        self.signals.close();
        // One that has ended needs no word.
        self.events.send(Event::Over).ok();
    }
}

/// Does what signals ask for.
pub(crate) struct Attendant {
    run: RunHandle,
    terminal: Option<Arc<CallerTerminal>>,
    keyboard: Option<Keyboard>,
}

impl Attendant {
    fn attend(&self, news: &Receiver<Event>) {
        let mut hung_up = false;
        loop {
            let event = if hung_up {
                news.recv_timeout(AFTER_HANG_UP)
            } else {
                news.recv().map_err(|_gone| RecvTimeoutError::Disconnected)
            };
            match event {
                Ok(Event::Signal(SIGHUP) | Event::HungUp) if self.terminal.is_some() => {
                    if !hung_up {
                        self.send(SIGHUP);
                        self.send(SIGCONT);
                    }
                    hung_up = true;
                }
                Ok(Event::Signal(signal)) => self.signal(signal),
                Ok(Event::HungUp) => {}
                Ok(Event::Over) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    self.send(SIGKILL);
                    hung_up = false;
                }
            }
        }
    }

    fn signal(&self, signal: i32) {
        match (signal, &self.terminal) {
            (SIGWINCH, Some(terminal)) => {
                // A run that has just ended needs no size.
                self.run.resize(terminal.size()).ok();
            }
            (SIGWINCH, None) => {}
            (SIGTSTP, _) => self.suspend(),
            (SIGCONT, _) => self.resume(),
            _ => self.send(signal),
        }
    }

    /// Passes a signal on. One that finds no program any more is for h5i, which still delivers what
    /// the program wrote.
    fn send(&self, signal: i32) {
        let over = Some(rustix::io::Errno::SRCH.raw_os_error());
        if let Err(error) = self.run.signal(signal)
            && error.raw_os_error() == over
            && signal != SIGCONT
        {
            self.run.abandon_output();
        }
    }

    /// Stops, with what was started, as any job of a shell does.
    fn suspend(&self) {
        self.send(SIGSTOP);
        if let Some(terminal) = &self.terminal {
            terminal.give_back();
        }
        // This process may signal itself.
        kill_process(getpid(), Signal::STOP).ok();
    }

    /// Goes on after a stop, in the foreground or not.
    fn resume(&self) {
        self.send(SIGCONT);
        if let (Some(terminal), Some(keyboard)) = (&self.terminal, &self.keyboard) {
            self.run.resize(terminal.size()).ok();
            keyboard.look();
        }
    }
}
