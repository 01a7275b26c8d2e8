//! Carries what is typed to a run's terminal, as long as the keys are the run's.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use h5i_confine::RunHandle;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::{CallerTerminal, Grip, Keys, LineEnds};

/// What is read at once.
const BUFFER: usize = 64 * 1024;
/// A program that asks for keys may write its prompt first and change the modes after that: the
/// modes are looked at when it has written, and after these times more.
const AFTER_OUTPUT: [Timespec; 2] =
    [Timespec { tv_sec: 0, tv_nsec: 5_000_000 }, Timespec { tv_sec: 0, tv_nsec: 50_000_000 }];
/// How long a line is left alone that is somebody else's.
const LEFT_ALONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Carries what is typed, in a thread that ends with the process, or when the terminal hangs up.
#[derive(Clone, Debug)]
pub struct Keyboard {
    news: Arc<OwnedFd>,
}

/// The caller's terminal is gone.
struct HungUp;

impl Keyboard {
    /// One that looks at whose the keys are when `counter` is raised.
    #[must_use]
    pub fn new(counter: OwnedFd) -> Self {
        Self { news: Arc::new(counter) }
    }

    /// Starts carrying. `hung_up` is called when the terminal is gone.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(
        &self,
        terminal: Arc<CallerTerminal>,
        run: RunHandle,
        hung_up: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let news = Arc::clone(&self.news);
        std::thread::Builder::new().name("h5i-keyboard".to_owned()).stack_size(128 * 1024).spawn(
            move || {
                // Another end is the run's own: it takes no more keys.
                if let Ok(HungUp) = carry(&terminal, &run, &news) {
                    hung_up();
                }
            },
        )?;
        Ok(())
    }

    /// A counter that has the thread look again at whose the keys are.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn counter() -> io::Result<OwnedFd> {
        Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
    }

    /// Has the thread look again at whose the keys are.
    pub fn look(&self) {
        // A full counter has been raised.
        rustix::io::write(&self.news, &1u64.to_ne_bytes()).ok();
    }
}

fn carry(terminal: &CallerTerminal, run: &RunHandle, news: &OwnedFd) -> io::Result<HungUp> {
    let mut buffer = vec![0u8; BUFFER];
    let mut keys = match terminal.grip() {
        Grip::Whole => terminal.take(LineEnds::Box),
        Grip::Shared => Keys::Others,
    };
    let mut looks = [].iter();
    let mut patience: Option<&Timespec> = None;
    let mut alone = false;
    loop {
        let listens = keys == Keys::Ours || (terminal.given && !alone);
        let interest = if listens { PollFlags::IN } else { PollFlags::empty() };
        let mut fds =
            [PollFd::new(news, PollFlags::IN), PollFd::from_borrowed_fd(terminal.keys(), interest)];
        match poll(&mut fds, patience) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (told, typed) = (!fds[0].revents().is_empty(), fds[1].revents());
        if typed.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Ok(HungUp);
        }
        alone = false;
        if told {
            rustix::io::read(news, &mut [0u8; 8]).ok();
            looks = AFTER_OUTPUT.iter();
        }
        patience = if keys == Keys::Others { looks.next() } else { None };
        if keys == Keys::Others || told {
            keys = whose(terminal, run);
        }
        if !typed.contains(PollFlags::IN) {
            continue;
        }
        if keys == Keys::Others && !terminal.line_is_free() {
            alone = true;
            patience = Some(&LEFT_ALONE);
            continue;
        }
        match rustix::io::read(terminal.keys(), &mut buffer) {
            Ok(0) if keys == Keys::Ours => return Ok(HungUp),
            // The end-of-file key, where lines are edited on the caller's side.
            Ok(0) => run.type_in(&[END_OF_FILE])?,
            Ok(got) => run.type_in(&buffer[..got])?,
            Err(rustix::io::Errno::IO) if terminal.in_foreground() => return Ok(HungUp),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        // Who types to the run goes on doing so.
        keys = terminal.take(line_ends(run));
    }
}

/// `^D`.
const END_OF_FILE: u8 = 4;

/// Takes the keys where they are the run's: in a whole grip always, in a shared one when a program in
/// the box asks for them.
fn whose(terminal: &CallerTerminal, run: &RunHandle) -> Keys {
    let asked = || run.terminal_modes().is_ok_and(|modes| !modes.takes_lines());
    if terminal.grip() == Grip::Whole || terminal.is_taken() || asked() {
        terminal.take(line_ends(run))
    } else {
        Keys::Others
    }
}

/// A program that asks for keys may have its own line ends translated.
fn line_ends(run: &RunHandle) -> LineEnds {
    match run.terminal_modes() {
        Ok(modes) if !modes.translates_output() => LineEnds::Caller,
        _ => LineEnds::Box,
    }
}
