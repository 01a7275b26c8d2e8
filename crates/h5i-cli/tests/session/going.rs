//! A command of h5i that goes on while a test does something else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::stand::Stand;

const WAITS: &[&str] = &["box", "run", "a", "--", "sh", "-c", "echo here; cat; exit 7"];

/// A command of h5i that goes on, with its input and output held.
pub(crate) struct Going {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Gone {
    /// The exit code; 128 and the signal's number where one ended h5i itself.
    pub(crate) code: i32,
    /// What it wrote that was not read before.
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Going {
    pub(crate) fn h5i(stand: &Stand, words: &[&str]) -> Self {
        Self::of(stand.with(words))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    /// A shell script in box `a`.
    pub(crate) fn sh(stand: &Stand, script: &str) -> Self {
        Self::h5i(stand, &["box", "run", "a", "--", "sh", "-c", script])
    }

    /// A program in box `a` that lives until its input is closed; it is there when this returns.
    pub(crate) fn waiting(stand: &Stand) -> Self {
        Self::waits(stand.with(WAITS))
    }

    /// As [`Going::waiting`], with a variable in the environment of h5i.
    pub(crate) fn waiting_with(stand: &Stand, (name, value): (&str, &str)) -> Self {
        let mut command = stand.with(WAITS);
        command.env(name, value);
        Self::waits(command)
    }

    fn waits(command: Command) -> Self {
        let mut going = Self::of(command);
        assert_eq!(going.line(), "here");
        going
    }

    /// The next line of its output; empty at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The next line that it says on standard error; empty at the end.
    pub(crate) fn err_line(&mut self) -> String {
        let mut line = Vec::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        // Byte by byte, because the rest is read at the end.
        let mut byte = [0];
        while stderr.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.extend(byte);
        }
        String::from_utf8(line).unwrap()
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Closes its input and yields what it wrote up to the end of that; it may not have ended yet.
    pub(crate) fn rest(&mut self) -> String {
        self.stdin = None;
        let mut out = String::new();
        self.stdout.read_to_string(&mut out).unwrap();
        out
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes its input and waits for its end.
    pub(crate) fn end(mut self) -> Gone {
        self.stdin = None;
        let mut out = String::new();
        self.stdout.read_to_string(&mut out).unwrap();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap();
        Gone { code, out, err }
    }
}

/// A stand with box `a`.
pub(crate) fn with_box() -> Stand {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand
}

/// The records of box `a`.
pub(crate) fn records(stand: &Stand) -> Vec<serde_json::Value> {
    let log = stand.ok(&["box", "log", "a", "--json"]);
    log.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A stand whose box `a` is kept alive. What a failed test leaves alive ends with it.
pub(crate) struct Started(Stand);

impl Started {
    pub(crate) fn new() -> Self {
        let started = Self(with_box());
        started.ok(&["box", "start", "a"]);
        started
    }
}

impl std::ops::Deref for Started {
    type Target = Stand;

    fn deref(&self) -> &Stand {
        &self.0
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.0.h5i(&["box", "kill", "a"]);
    }
}
