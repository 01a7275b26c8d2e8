//! What other threads may do to a run while it is waited for.

use crate::command::TerminalSize;
use crate::elsewhere::Holder;
use crate::outcome::Stop;
use crate::pump::OutputHandle;
use crate::sys;
use crate::terminal_modes::TerminalModes;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// What other threads may do to a run.
#[derive(Debug)]
pub struct RunHandle {
    pub(super) holder: Holder,
    pub(super) terminal: Option<OwnedFd>,
    pub(super) output: OutputHandle,
}

impl RunHandle {
    /// Sends a signal, by its number, to the run's program and what it started in its process group
    /// (to the program alone on kernels before 6.9). With a terminal, `SIGINT`, `SIGQUIT` and
    /// `SIGTSTP` go to the terminal's foreground, as if typed.
    ///
    /// # Errors
    /// `ESRCH` when it has ended, `EINVAL` for what is no signal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        match (&self.terminal, signal) {
            (Some(terminal), libc::SIGINT | libc::SIGQUIT | libc::SIGTSTP) => {
                if !self.holder.is_alive() {
                    return Err(rustix::io::Errno::SRCH.into());
                }
                sys::signal_foreground(terminal.as_fd(), signal)
            }
            _ => self.holder.signal(signal),
        }
    }

    /// Stops the run for a budget that its caller keeps; nothing once it has ended.
    pub fn stop(&self, stop: Stop) {
        self.holder.stop(stop);
    }

    /// Types these bytes at the run's terminal; waits while it has no room.
    ///
    /// # Errors
    /// `ENOTTY` when the run has no terminal, `EIO` when nobody has it open any more.
    pub fn type_in(&self, mut bytes: &[u8]) -> io::Result<()> {
        let terminal = self.terminal()?;
        while !bytes.is_empty() {
            let written = rustix::io::retry_on_intr(|| rustix::io::write(terminal, bytes))?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// The modes that the run's programs have given its terminal.
    ///
    /// # Errors
    /// `ENOTTY` when the run has no terminal.
    pub fn terminal_modes(&self) -> io::Result<TerminalModes> {
        TerminalModes::of(self.terminal()?)
    }

    /// Gives up what has not reached its receiver yet, once the run has ended:
    /// [`Run::finish`](crate::Run::finish) returns without it.
    pub fn abandon_output(&self) {
        self.output.abandon();
    }

    /// Why output could not be delivered, if a receiver failed otherwise than by going away: a full
    /// disk, say. Final once [`Run::finish`](crate::Run::finish) has returned.
    #[must_use]
    pub fn output_error(&self) -> Option<io::Error> {
        self.output.error()
    }

    fn terminal(&self) -> io::Result<&OwnedFd> {
        self.terminal.as_ref().ok_or_else(|| io::Error::from(rustix::io::Errno::NOTTY))
    }

    /// Tells the run's terminal its size.
    ///
    /// # Errors
    /// `ENOTTY` when the run has no terminal.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let terminal = self.terminal()?;
        let (ws_row, ws_col) = (size.rows, size.columns);
        let size = rustix::termios::Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(terminal, size)?)
    }
}
