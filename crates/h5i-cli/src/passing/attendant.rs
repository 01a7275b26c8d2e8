//! Does for a run what signals ask for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use h5i_confine::RunHandle;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGKILL, SIGSTOP, SIGTSTP, SIGWINCH};

use crate::terminal::{CallerTerminal, Keyboard};

/// How long the programs of a box have to end by themselves once the caller's terminal is gone.
const AFTER_HANG_UP: Duration = Duration::from_secs(2);

/// Attends to a run. Nothing here waits: signals are heard where the session is watched.
#[derive(Debug)]
pub(super) struct Attendant {
    run: RunHandle,
    terminal: Option<(Arc<CallerTerminal>, Keyboard)>,
    hung_up: AtomicBool,
}

impl Attendant {
    /// For a run that has no terminal.
    pub(super) fn of_bytes(run: RunHandle) -> Self {
        Self { run, terminal: None, hung_up: AtomicBool::new(false) }
    }

    /// For a run with a terminal of its own.
    pub(super) fn of_terminal(
        run: RunHandle,
        terminal: Arc<CallerTerminal>,
        keyboard: Keyboard,
    ) -> Self {
        Self { run, terminal: Some((terminal, keyboard)), hung_up: AtomicBool::new(false) }
    }

    /// Does what a signal asks for.
    pub(super) fn signal(self: &Arc<Self>, signal: i32) {
        match (signal, &self.terminal) {
            (SIGWINCH, Some((terminal, _))) => {
                // A run that has just ended needs no size.
                self.run.resize(terminal.size()).ok();
            }
            (SIGWINCH, None) => {}
            (SIGHUP, Some(_)) => self.hang_up(),
            (SIGTSTP, _) => self.suspend(),
            (SIGCONT, _) => self.resume(),
            _ => self.send(signal),
        }
    }

    /// The caller's terminal is gone: so is the box's, and what does not end by itself is ended.
    pub(super) fn hang_up(self: &Arc<Self>) {
        if self.hung_up.swap(true, Ordering::Relaxed) {
            return;
        }
        self.send(SIGHUP);
        self.send(SIGCONT);
        let later = Arc::clone(self);
        let waiting = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            std::thread::sleep(AFTER_HANG_UP);
            later.send(SIGKILL);
        });
        // Without a thread nobody would end them later.
        if waiting.is_err() {
            self.send(SIGKILL);
        }
    }

    /// Why output could not be delivered.
    pub(super) fn output_error(&self) -> Option<io::Error> {
        self.run.output_error()
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
        if let Some((terminal, _)) = &self.terminal {
            terminal.give_back();
        }
        // This process may signal itself.
        kill_process(getpid(), Signal::STOP).ok();
    }

    /// Goes on after a stop, in the foreground or not.
    fn resume(&self) {
        self.send(SIGCONT);
        if let Some((terminal, keyboard)) = &self.terminal {
            self.run.resize(terminal.size()).ok();
            keyboard.look();
        }
    }
}
