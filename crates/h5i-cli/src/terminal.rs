//! The caller's terminal while a run of a box uses one of its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use h5i_confine::TerminalSize;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// The caller's terminal in raw mode. Dropping it restores the mode that was found.
#[derive(Debug)]
pub struct RawTerminal {
    terminal: OwnedFd,
    found: Termios,
}

impl RawTerminal {
    /// Puts the terminal of standard input into raw mode; `None` unless standard input and output
    /// are terminals both.
    ///
    /// # Errors
    /// What the terminal says.
    pub fn take() -> io::Result<Option<Self>> {
        if !isatty(io::stdin()) || !isatty(io::stdout()) {
            return Ok(None);
        }
        let terminal = io::stdin().as_fd().try_clone_to_owned()?;
        let found = tcgetattr(&terminal)?;
        let mut raw = found.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        Ok(Some(Self { terminal, found }))
    }

    /// Its size now.
    #[must_use]
    pub fn size(&self) -> TerminalSize {
        let size = tcgetwinsize(&self.terminal);
        let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
        TerminalSize { rows, columns }
    }

    /// A descriptor to read what is typed.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn input(&self) -> io::Result<OwnedFd> {
        self.terminal.try_clone()
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.found).ok();
    }
}

/// The size of the terminal of standard output; 24 by 80 where there is none.
#[must_use]
pub fn size_of_output() -> TerminalSize {
    let size = tcgetwinsize(io::stdout());
    let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
    TerminalSize { rows, columns }
}
