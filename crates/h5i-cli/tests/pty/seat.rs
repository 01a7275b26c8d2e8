//! A person's seat: one side of a terminal, with a program on the other.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::stand::{H5I, Stand};

/// Whatever is waited for comes sooner, or never.
const LONGEST: Duration = Duration::from_secs(30);

/// A terminal that a test types at and looks at.
pub(crate) struct Seat {
    near: OwnedFd,
    /// Kept open, so that the terminal's modes can be seen after the program's end.
    far: Option<File>,
    child: Child,
    /// What was shown and not looked at yet.
    shown: Vec<u8>,
    before: Termios,
}

impl Seat {
    /// h5i at a terminal of 24 lines and 80 columns.
    pub(crate) fn h5i(stand: &Stand, words: &[&str]) -> Self {
        Self::with(stand, H5I, words, &[])
    }

    /// A shell of the host at a terminal, with job control, to type commands at.
    pub(crate) fn shell(stand: &Stand) -> Self {
        let environment = [("PS1", "host> "), ("HISTFILE", "/dev/null")];
        let mut seat =
            Self::with(stand, "/bin/bash", &["--norc", "--noprofile", "--noediting"], &environment);
        seat.expect("host> ");
        seat
    }

    pub(crate) fn with(
        stand: &Stand,
        program: &str,
        words: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&near).unwrap();
        unlockpt(&near).unwrap();
        let name = ptsname(&near, Vec::new()).unwrap();
        let far = File::options()
            .read(true)
            .write(true)
            .custom_flags(i32::try_from(OpenptFlags::NOCTTY.bits()).unwrap())
            .open(name.to_str().unwrap())
            .unwrap();
        tcsetwinsize(&near, size(24, 80)).unwrap();
        let before = tcgetattr(&far).unwrap();
        // setsid(1) makes its standard input the controlling terminal, and becomes the program.
        let mut command: Command = stand.program("/usr/bin/setsid");
        command.arg("--ctty").arg(program).args(words);
        command.env("TERM", "xterm-256color").envs(environment.iter().copied());
        let end = || far.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        Self { near, far: Some(far), child, shown: Vec::new(), before }
    }

    /// Waits until this is shown; yields what was shown before it.
    pub(crate) fn expect(&mut self, text: impl AsRef<[u8]>) -> Vec<u8> {
        let text = text.as_ref();
        let until = Instant::now() + LONGEST;
        loop {
            if let Some(at) = self.shown.windows(text.len()).position(|part| part == text) {
                let rest = self.shown.split_off(at + text.len());
                let mut before = std::mem::replace(&mut self.shown, rest);
                before.truncate(at);
                return before;
            }
            assert!(
                self.look(until),
                "not shown: {:?}, but {:?}",
                String::from_utf8_lossy(text),
                String::from_utf8_lossy(&self.shown)
            );
        }
    }

    /// Does something until this is shown, for programs that lose a signal which comes right after
    /// their prompt (less looks at its flags, and reads then).
    pub(crate) fn insist(&mut self, mut does: impl FnMut(&mut Self, u16), text: &str) {
        let until = Instant::now() + LONGEST;
        let mut times = 0;
        while !self.shown.windows(text.len()).any(|part| part == text.as_bytes()) {
            assert!(Instant::now() < until, "not shown: {text:?}");
            does(self, times);
            times += 1;
            let a_while = Instant::now() + Duration::from_millis(500);
            while self.look(a_while) {}
        }
        self.expect(text);
    }

    /// Types; looks at what is shown meanwhile, as a person's terminal does.
    pub(crate) fn type_in(&mut self, bytes: impl AsRef<[u8]>) {
        let mut bytes = bytes.as_ref();
        let until = Instant::now() + LONGEST;
        while !bytes.is_empty() {
            let flags = PollFlags::IN | PollFlags::OUT;
            let mut fds = [PollFd::new(&self.near, flags)];
            poll(&mut fds, Some(&left(until))).unwrap();
            let ready = fds[0].revents();
            if ready.contains(PollFlags::IN) {
                self.look(until);
            } else if ready.contains(PollFlags::OUT) {
                // A terminal has room for a part at least.
                let part = &bytes[..bytes.len().min(256)];
                let written = rustix::io::write(&self.near, part).unwrap();
                bytes = &bytes[written..];
            } else {
                assert!(Instant::now() < until, "nobody reads what is typed");
            }
        }
    }

    /// Types a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.type_in(format!("{line}\r"));
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(&self.near, size(rows, columns)).unwrap();
    }

    /// The program's own process; with [`Seat::h5i`] that is h5i.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The terminal's modes now.
    pub(crate) fn modes(&self) -> Termios {
        tcgetattr(&self.near).unwrap()
    }

    /// Waits until the terminal's modes are so; no event tells of a change.
    pub(crate) fn until(&mut self, are_so: impl Fn(&Termios) -> bool) {
        let until = Instant::now() + LONGEST;
        while !are_so(&self.modes()) {
            assert!(Instant::now() < until, "the modes stay {:?}", self.modes());
            self.look(Instant::now() + Duration::from_millis(5));
        }
    }

    /// Whether the terminal's modes are those that the program found.
    pub(crate) fn is_restored(&self) -> bool {
        let now = self.modes();
        let parts = |modes: &Termios| {
            (modes.input_modes, modes.output_modes, modes.local_modes, modes.control_modes)
        };
        parts(&now) == parts(&self.before)
    }

    /// Waits for the program's end; yields its code (128 and more for a signal) and what was shown
    /// and not looked at.
    pub(crate) fn end(&mut self) -> (i32, Vec<u8>) {
        let status = self.wait();
        // What was written before the end is there.
        while self.look_now() {}
        let code = status.code().unwrap_or_else(|| {
            use std::os::unix::process::ExitStatusExt as _;
            128 + status.signal().unwrap()
        });
        (code, std::mem::take(&mut self.shown))
    }

    /// Closes the terminal, as a window is closed; yields how the program ended.
    pub(crate) fn hang_up(mut self) -> ExitStatus {
        self.far = None;
        self.near = File::open("/dev/null").unwrap().into();
        ended(&self.child);
        self.child.wait().unwrap()
    }

    fn wait(&mut self) -> ExitStatus {
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        let until = Instant::now() + LONGEST;
        loop {
            let mut fds =
                [PollFd::new(&process, PollFlags::IN), PollFd::new(&self.near, PollFlags::IN)];
            poll(&mut fds, Some(&left(until))).unwrap();
            let (over, readable) =
                (!fds[0].revents().is_empty(), fds[1].revents().contains(PollFlags::IN));
            if readable {
                self.look(until);
            }
            if over {
                return self.child.wait().unwrap();
            }
            let shown = String::from_utf8_lossy(&self.shown);
            assert!(Instant::now() < until, "it does not end: {shown:?}");
        }
    }

    fn look_now(&mut self) -> bool {
        let mut fds = [PollFd::new(&self.near, PollFlags::IN)];
        poll(&mut fds, Some(&left(Instant::now()))).unwrap();
        fds[0].revents().contains(PollFlags::IN) && self.look(Instant::now() + LONGEST)
    }

    /// Waits for more; false when the time is up or nobody is there to show anything.
    fn look(&mut self, until: Instant) -> bool {
        let mut fds = [PollFd::new(&self.near, PollFlags::IN)];
        if poll(&mut fds, Some(&left(until))).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0u8; 65536];
        match rustix::io::read(&self.near, &mut buffer) {
            Ok(got) => {
                self.shown.extend_from_slice(&buffer[..got]);
                got > 0
            }
            Err(_) => false,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // A failed test leaves nobody behind.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Waits for a process's end without reaping it.
pub(crate) fn ended(child: &Child) {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    let got = poll(&mut fds, Some(&left(Instant::now() + LONGEST))).unwrap();
    assert_eq!(got, 1, "it does not end");
}

/// A stand with a box `a`.
pub(crate) fn with_box() -> Stand {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand
}

/// Whether some process holds the lock that a program of the box took on `held` in its home.
pub(crate) fn is_held(stand: &Stand) -> bool {
    let file = File::open(stand.box_dir("a").join("box/home/held")).unwrap();
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error, rustix::io::Errno::WOULDBLOCK);
            true
        }
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn left(until: Instant) -> Timespec {
    let left = until.saturating_duration_since(Instant::now());
    Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap(), tv_nsec: left.subsec_nanos().into() }
}
