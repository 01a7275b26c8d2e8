//! What is to be run, with `std::process::Command`'s habits.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5i_policy::Millis;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::elsewhere::{KeptHere, SessionElsewhere};
use crate::error::SpawnError;
use crate::event::EventSink;
use crate::layout::WORKSPACE;
use crate::outcome::{Outcome, Usage};
use crate::plan::{Plan, RunDefaults};
use crate::run::{self, Run};
use crate::session::Shared;
use crate::tap::OutputTap;
use crate::terminal_modes::TerminalModes;

/// Where a run's input comes from or its output goes to.
#[derive(Debug, Default)]
#[non_exhaustive]
pub enum Stdio {
    /// The caller's own. A pipe is handed in for input; everything else, terminals and files above
    /// all, is carried by the supervisor, so that the box never holds it. What is carried is read
    /// ahead: bytes that the run did not read are gone for the caller as well.
    #[default]
    Inherit,
    /// The box's null device.
    Null,
    /// A pipe whose other end [`Run`] has.
    Piped,
    /// This descriptor, treated as `Inherit` treats the caller's.
    Descriptor(OwnedFd),
    /// This end of a pipe, as it is: whoever has the other end carries, and keeps `limits.output`.
    /// What is no pipe is refused.
    Handed(OwnedFd),
}

/// What is to be run in a box.
///
/// The program is looked up in the PATH of the box, and starts in the workspace. Its environment is
/// the policy's; the caller's own is not passed on.
#[derive(Debug)]
pub struct Command<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) number: Option<u64>,
    pub(crate) wall: Option<Millis>,
    pub(crate) kept: bool,
    pub(crate) end_notice: Option<OwnedFd>,
    pub(crate) directory: PathBuf,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    pub(crate) terminal: Option<TerminalSize>,
    pub(crate) terminal_modes: Option<TerminalModes>,
    pub(crate) tap: Option<Arc<dyn OutputTap>>,
}

/// Size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}

pub(crate) enum Target<'a> {
    Alone { plan: &'a Plan, sink: Arc<dyn EventSink> },
    Joined { shared: Arc<Shared>, runs: Arc<RunDefaults> },
    Elsewhere { session: Arc<dyn SessionElsewhere>, kept: KeptHere },
}

impl std::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Alone { .. } => "Alone",
            Self::Joined { .. } => "Joined",
            Self::Elsewhere { .. } => "Elsewhere",
        })
    }
}

/// What a run left behind when its output was collected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// How it ended.
    pub outcome: Outcome,
    /// What it cost.
    pub usage: Usage,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl<'a> Command<'a> {
    pub(crate) fn alone(plan: &'a Plan, sink: Arc<dyn EventSink>, program: OsString) -> Self {
        let runs = Arc::clone(&plan.runs);
        Self::new(Target::Alone { plan, sink }, &runs.environment, program)
    }

    pub(crate) fn joined(shared: Arc<Shared>, runs: Arc<RunDefaults>, program: OsString) -> Self {
        let defaults = Arc::clone(&runs);
        Self::new(Target::Joined { shared, runs }, &defaults.environment, program)
    }

    /// A run in a session that another process holds. Its bytes are carried by this process, which
    /// keeps what `kept` says; the environment of the policy is added there.
    pub fn elsewhere(
        session: Arc<dyn SessionElsewhere>,
        kept: KeptHere,
        program: impl Into<OsString>,
    ) -> Self {
        Self::new(Target::Elsewhere { session, kept }, &[], program.into())
    }

    fn new(target: Target<'a>, environment: &[(String, String)], program: OsString) -> Self {
        let environment = environment.iter().map(|(n, v)| (n.into(), v.into())).collect();
        Self {
            target,
            program,
            args: Vec::new(),
            environment,
            number: None,
            wall: None,
            kept: false,
            end_notice: None,
            directory: PathBuf::from(WORKSPACE),
            stdin: Stdio::Inherit,
            stdout: Stdio::Inherit,
            stderr: Stdio::Inherit,
            terminal: None,
            terminal_modes: None,
            tap: None,
        }
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the environment.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.environment.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Numbers the run, in its session and in the events that tell of it; the number of a run that
    /// is alive is refused by the start. Without this the session counts on from the largest.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.number = Some(number);
        self
    }

    /// Gives the run a deadline, where the policy's `limits.wall` is not shorter.
    pub fn wall(&mut self, wall: Millis) -> &mut Self {
        self.wall = Some(wall);
        self
    }

    /// Gives the run a keeper: whatever it starts stays known as its own, and is ended with it when
    /// it is stopped, while others of the session go on. Without one a run that is stopped takes
    /// everything with it that no keeper has.
    pub fn keeper(&mut self) -> &mut Self {
        self.kept = true;
        self
    }

    /// Has this event counter raised once the run has ended and [`Run::finish`] would not wait.
    pub fn end_notice(&mut self, counter: OwnedFd) -> &mut Self {
        self.end_notice = Some(counter);
        self
    }

    /// Sets the directory to start in, a path of the box.
    pub fn current_dir(&mut self, path: impl AsRef<Path>) -> &mut Self {
        path.as_ref().clone_into(&mut self.directory);
        self
    }

    /// Sets where the input comes from.
    pub fn stdin(&mut self, stdio: Stdio) -> &mut Self {
        self.stdin = stdio;
        self
    }

    /// Sets where the output goes to.
    pub fn stdout(&mut self, stdio: Stdio) -> &mut Self {
        self.stdout = stdio;
        self
    }

    /// Sets where the errors go to.
    pub fn stderr(&mut self, stdio: Stdio) -> &mut Self {
        self.stderr = stdio;
        self
    }

    /// Gives the run a terminal of the box as its controlling one. Those of input, output and
    /// errors that are `Inherit` go there; [`Run::carry_terminal`] carries its bytes.
    pub fn terminal(&mut self, size: TerminalSize) -> &mut Self {
        self.terminal = Some(size);
        self
    }

    /// Whether the run gets a terminal.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Sets the modes in which the run's terminal starts; the kernel's defaults otherwise.
    pub fn terminal_modes(&mut self, modes: TerminalModes) -> &mut Self {
        self.terminal_modes = Some(modes);
        self
    }

    /// Has the run's output heard on its way. Output that would need no carrying is carried for it.
    pub fn output_tap(&mut self, tap: Arc<dyn OutputTap>) -> &mut Self {
        self.tap = Some(tap);
        self
    }

    /// Starts the run; returns when its program has been executed or could not be.
    ///
    /// # Errors
    /// [`SpawnError`]: `NotFound` and `NotExecutable` as a shell's 127 and 126; the others say what
    /// was attempted.
    pub fn spawn(&mut self) -> Result<Run, SpawnError> {
        run::spawn(self)
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn status(&mut self) -> Result<Outcome, SpawnError> {
        Ok(self.spawn()?.wait())
    }

    /// Runs to the end and collects what the run writes. Bound the amount by the policy's
    /// `limits.output`.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn output(&mut self) -> Result<Output, SpawnError> {
        self.stdin(Stdio::Null).stdout(Stdio::Piped).stderr(Stdio::Piped);
        let over = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|source| {
            SpawnError::Prepare { what: "make an event counter", source: source.into() }
        })?);
        let mut run = self.spawn()?;
        let [stdout, stderr] = run.take_output().map(|file| {
            let over = Arc::clone(&over);
            file.map(|file| std::thread::spawn(move || drain(file, &over)))
        });
        let (outcome, usage) = run.finish();
        // What others of the session still hold open is not waited for.
        rustix::io::write(&over, &1u64.to_ne_bytes()).ok();
        let collect = |reader: Option<std::thread::JoinHandle<Vec<u8>>>| {
            reader.and_then(|r| r.join().ok()).unwrap_or_default()
        };
        Ok(Output { outcome, usage, stdout: collect(stdout), stderr: collect(stderr) })
    }

    /// The candidates for the program, as `execvp(3)` would try them.
    pub(crate) fn candidates(&self) -> Vec<PathBuf> {
        if self.program.as_bytes().contains(&b'/') {
            return vec![PathBuf::from(&self.program)];
        }
        let path =
            self.environment.get(OsStr::new("PATH")).map_or(OsStr::new(""), |p| p.as_os_str());
        std::env::split_paths(path)
            .filter(|directory| !directory.as_os_str().is_empty())
            .map(|directory| directory.join(&self.program))
            .collect()
    }
}

/// Reads to the end, or, once `over` is set, what is waiting then.
fn drain(mut file: File, over: &OwnedFd) -> Vec<u8> {
    /// The most that a pipe holds, unless root made it larger (`/proc/sys/fs/pipe-max-size`).
    const WAITING: usize = 1024 * 1024;
    let mut bytes = Vec::new();
    let mut buffer = vec![0u8; 64 * 1024];
    let mut bound = None;
    while bound.is_none_or(|bound| bytes.len() < bound) {
        let mut fds = [PollFd::new(&file, PollFlags::IN), PollFd::new(over, PollFlags::IN)];
        // An error leaves the read to say what is the matter.
        rustix::io::retry_on_intr(|| poll(&mut fds, None)).ok();
        let (readable, ended) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if ended && !readable {
            break;
        }
        if ended && bound.is_none() {
            bound = Some(bytes.len() + WAITING);
        }
        if !readable {
            continue;
        }
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => bytes.extend_from_slice(&buffer[..got]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // What was read before an error is what there is.
            Err(_) => break,
        }
    }
    bytes
}
