//! The caller's terminal while a run of a box uses one of its own.
//!
//! Nothing of the box gets hold of the caller's terminal: bytes are carried. Those of standard input,
//! output and errors that are terminals are one in the box as well. How much the caller's terminal
//! is taken over depends on who else may be using it:
//!
//! - [`Grip::Whole`]: it is the run's. Every key goes to the box's terminal, which edits, echoes and
//!   sends signals as the caller's would.
//! - [`Grip::Shared`]: the command stands in a pipeline (`make | h5i … | less`), whose other members
//!   may read keys too. The caller's terminal is left as it is, and keys are taken when a program in
//!   the box asks for them (a pager, a password) or a line is typed that nobody else reads.

mod keyboard;

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use h5i_confine::{TerminalModes, TerminalSize};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, isatty,
    tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

pub use keyboard::Keyboard;

/// What a run is for, as far as its terminal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Attendance {
    /// A command, which may be a member of a pipeline.
    Command,
    /// A conversation: what is typed is for it.
    Conversation,
}

/// How much of the caller's terminal a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grip {
    /// All of it.
    Whole,
    /// What nobody else uses.
    Shared,
}

/// The caller's terminal. Dropping it restores the modes that were found, if they were changed.
#[derive(Debug)]
pub struct CallerTerminal {
    terminal: OwnedFd,
    /// An open file of its own for reading keys, which does not block: another program may be
    /// quicker, and what is shared with others keeps its flags.
    keys: Option<OwnedFd>,
    grip: Grip,
    /// Whether it is standard input, which may be another terminal than the controlling one.
    given: bool,
    hold: Mutex<Hold>,
}

/// What has become of the terminal's modes.
#[derive(Debug)]
enum Hold {
    /// They are as they were.
    Free,
    /// They were changed; these were found.
    Taken(Box<Termios>),
    /// They are as they were, and stay so.
    Closed,
}

/// Whether the terminal's keys are the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keys {
    /// They are, one by one.
    Ours,
    /// They are not, for now.
    Others,
}

/// Which terminal translates the line ends of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineEnds {
    /// The box's.
    Box,
    /// The caller's.
    Caller,
}

impl CallerTerminal {
    /// The caller's terminal; `None` when none of standard input, output and errors is one.
    ///
    /// # Errors
    /// What the descriptors say.
    pub fn find(attendance: Attendance) -> io::Result<Option<Self>> {
        let [stdin, stdout, stderr] =
            [isatty(io::stdin()), isatty(io::stdout()), isatty(io::stderr())];
        let terminal = match (stdin, stdout, stderr) {
            (true, _, _) => io::stdin().as_fd().try_clone_to_owned()?,
            (_, true, _) => io::stdout().as_fd().try_clone_to_owned()?,
            (_, _, true) => io::stderr().as_fd().try_clone_to_owned()?,
            _ => return Ok(None),
        };
        let alone = stdout || attendance == Attendance::Conversation || is_no_pipe(io::stdout())?;
        let grip = if stdin && alone { Grip::Whole } else { Grip::Shared };
        let keys = own_file(&terminal);
        Ok(Some(Self { terminal, keys, grip, given: stdin, hold: Mutex::new(Hold::Free) }))
    }

    /// How much of it the run takes.
    #[must_use]
    pub fn grip(&self) -> Grip {
        self.grip
    }

    /// The modes in which the box's terminal starts: the caller's own. In a shared grip line ends
    /// are left to the caller's terminal, and lines are taken, whatever others have made of it.
    ///
    /// # Errors
    /// What the terminal says.
    pub fn modes(&self) -> io::Result<TerminalModes> {
        let modes = TerminalModes::of(&self.terminal)?;
        Ok(match self.grip {
            Grip::Whole => modes,
            // A pager of the pipeline may have come first.
            Grip::Shared => modes.taking_lines().writing_as_is(),
        })
    }

    /// Its size now; 24 by 80 where it can't tell.
    #[must_use]
    pub fn size(&self) -> TerminalSize {
        let size = tcgetwinsize(&self.terminal);
        let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
        TerminalSize { rows, columns }
    }

    /// A descriptor for what the box's terminal shows.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn output(&self) -> io::Result<OwnedFd> {
        if isatty(io::stdout()) {
            io::stdout().as_fd().try_clone_to_owned()
        } else if isatty(io::stderr()) {
            io::stderr().as_fd().try_clone_to_owned()
        } else {
            self.terminal.try_clone()
        }
    }

    /// Takes the keys: from here on each goes to the box as it is typed. Does nothing while another
    /// process group is in the foreground, and, in a shared grip, while another program has changed
    /// the modes.
    pub fn take(&self, lines: LineEnds) -> Keys {
        let mut hold = self.hold();
        match *hold {
            Hold::Taken(_) => return Keys::Ours,
            Hold::Closed => return Keys::Others,
            Hold::Free => {}
        }
        if !self.has_keys() || !self.in_foreground() {
            return Keys::Others;
        }
        // A terminal that is gone has no keys.
        let Ok(now) = tcgetattr(&self.terminal) else { return Keys::Others };
        if self.grip == Grip::Shared && !takes_lines(&now) {
            return Keys::Others;
        }
        let wanted = match self.grip {
            Grip::Whole => {
                let mut raw = now.clone();
                raw.make_raw();
                raw
            }
            Grip::Shared => by_key(now.clone(), lines),
        };
        if tcsetattr(&self.terminal, OptionalActions::Now, &wanted).is_err() {
            return Keys::Others;
        }
        *hold = Hold::Taken(Box::new(now));
        Keys::Ours
    }

    /// Gives the keys back: the modes that were found hold again.
    pub fn give_back(&self) {
        self.release(Hold::Free);
    }

    /// Gives the keys back for good.
    pub fn close(&self) {
        self.release(Hold::Closed);
    }

    fn release(&self, after: Hold) {
        let mut hold = self.hold();
        // In the background this would stop h5i, and the shell in front has set its own modes.
        if let Hold::Taken(modes) = &*hold
            && self.in_foreground()
        {
            // A terminal that is gone needs no mode.
            tcsetattr(&self.terminal, OptionalActions::Now, modes).ok();
        }
        *hold = after;
    }

    fn is_taken(&self) -> bool {
        matches!(*self.hold(), Hold::Taken(_))
    }

    /// Whether a line that was typed may be read for the run: nobody else has taken the keys or
    /// hidden what is typed.
    fn line_is_free(&self) -> bool {
        self.given
            && self.in_foreground()
            && tcgetattr(&self.terminal).is_ok_and(|m| takes_lines(&m))
    }

    /// Whether keys can be read: from standard input always, whoever owns it.
    fn has_keys(&self) -> bool {
        self.given || self.keys.is_some()
    }

    /// What keys are read from.
    fn keys(&self) -> BorrowedFd<'_> {
        self.keys.as_ref().unwrap_or(&self.terminal).as_fd()
    }

    /// A terminal that was given and is not the controlling one knows no foreground.
    fn in_foreground(&self) -> bool {
        match tcgetpgrp(&self.terminal) {
            Ok(group) => group == getpgrp(),
            Err(_) => self.given,
        }
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallerTerminal {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens a terminal anew; `None` where its file can't be opened by this user (after `su`, say).
fn own_file(terminal: &OwnedFd) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", terminal.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).ok()
}

fn takes_lines(modes: &Termios) -> bool {
    modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
}

/// Keys one by one, while what is written is treated as before if it can be: others of the pipeline
/// write too.
fn by_key(mut modes: Termios, lines: LineEnds) -> Termios {
    if lines == LineEnds::Box {
        modes.output_modes -= OutputModes::OPOST;
    }
    modes.local_modes -= LocalModes::ICANON
        | LocalModes::ECHO
        | LocalModes::ECHONL
        | LocalModes::ISIG
        | LocalModes::IEXTEN;
    modes.input_modes -= InputModes::BRKINT
        | InputModes::PARMRK
        | InputModes::ISTRIP
        | InputModes::INLCR
        | InputModes::IGNCR
        | InputModes::ICRNL
        | InputModes::IXON;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes
}

/// Whether nobody reads this at the same time: a file or a device, where a pipe or a socket may lead
/// to a program that uses the same terminal.
fn is_no_pipe(output: impl AsFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(output)?.st_mode);
    Ok(matches!(kind, FileType::RegularFile | FileType::CharacterDevice))
}
