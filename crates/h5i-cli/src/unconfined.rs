//! Runs at the tier `workspace`: a tree of its own and no boundary at all.

use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use h5i_confine::{Outcome, Stop, Usage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use rustix::termios::isatty;
use signal_hook::consts::{SIGINT, SIGQUIT};

use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::receipt_log::Recorder;
use crate::running::{Capture, Ended, Errand, tighter};
use crate::workspace::Workspace;

/// Runs a command in the workspace, as the caller, with the caller's files and network in reach.
///
/// # Errors
/// A failure when nothing was run.
pub(crate) fn run(
    caller: &Caller,
    errand: &Errand<'_>,
    (run, recorder): (u64, &Recorder),
) -> Result<Ended, Failure> {
    let [program, args @ ..] = errand.command else {
        return Err(Failure::told(Kind::Usage, "no command was given"));
    };
    let box_dir = errand.stored.box_dir();
    #[expect(clippy::disallowed_methods, reason = "a run without a boundary is an ordinary child")]
    let mut command = std::process::Command::new(program);
    command
        .args(args)
        .current_dir(Workspace::work_dir(&box_dir))
        .env_clear()
        .env("HOME", box_dir.join("home"));
    let standing = Standing::of(errand.output);
    if standing == Standing::Group {
        command.process_group(0);
    }
    for name in ["PATH", "USER", "LOGNAME", "SHELL"] {
        command.envs(caller.surroundings.variable(name).map(|value| (name, value)));
    }
    command.envs(caller.surroundings.locale());
    for name in &errand.policy.env.pass {
        command.envs(caller.surroundings.variable(name).map(|value| (name, value)));
    }
    command.envs(&errand.policy.env.set);
    command.envs(errand.variables.iter().map(|set| (&set.name, &set.value)));
    if errand.output == Capture::Collect {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let keys = standing.leave_keys_to_the_run();
    keys.map_err(|e| Failure::told(Kind::Io, format!("cannot handle signals: {e}")))?;
    recorder.run_starts(run)?;
    let started = Instant::now();
    let mut child = command.spawn().map_err(|e| {
        let name = crate::shown::Shown::bytes(program.as_encoded_bytes());
        let kind = match e.kind() {
            std::io::ErrorKind::NotFound => Kind::NotFound,
            std::io::ErrorKind::PermissionDenied => Kind::Refused,
            _ => Kind::Io,
        };
        Failure::told(kind, format!("cannot run {name}: {e}"))
    })?;
    let readers = [
        child.stdout.take().map(|pipe| std::thread::spawn(move || drain(pipe))),
        child.stderr.take().map(|pipe| std::thread::spawn(move || drain(pipe))),
    ];
    let wall = tighter(errand.policy.limits.wall, errand.timeout).map(|wall| wall.duration());
    let outcome = wait(&mut child, standing, started, wall)
        .map_err(|e| Failure::told(Kind::Io, format!("cannot wait for the run: {e}")))?;
    let [stdout, stderr] =
        readers.map(|reader| reader.and_then(|r| r.join().ok()).unwrap_or_default());
    let mut usage = Usage::default();
    usage.wall = started.elapsed();
    recorder.run_ends(run, outcome, usage)?;
    Ok(Ended { stdout, stderr, ..Ended::new(outcome, usage) })
}

/// Where a run stands among the jobs of the caller's terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// In a process group of its own, which is ended as a whole.
    Group,
    /// In the caller's, because only what is in the foreground may read its terminal.
    Foreground,
}

impl Standing {
    fn of(output: Capture) -> Self {
        let typed_at = output != Capture::Collect && isatty(std::io::stdin());
        if typed_at { Self::Foreground } else { Self::Group }
    }

    /// Keys that send signals are for the run: it may live on, and h5i tells its end.
    fn leave_keys_to_the_run(self) -> std::io::Result<()> {
        if self == Self::Foreground {
            for signal in [SIGINT, SIGQUIT] {
                signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
            }
        }
        Ok(())
    }

    fn end(self, run: Pid) -> std::io::Result<()> {
        // Whoever left the process group is out of reach: there is no boundary here.
        match self {
            Self::Group => kill_process_group(run, Signal::KILL)?,
            Self::Foreground => kill_process(run, Signal::KILL)?,
        }
        Ok(())
    }
}

fn wait(
    child: &mut Child,
    standing: Standing,
    started: Instant,
    wall: Option<Duration>,
) -> std::io::Result<Outcome> {
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        let left = wall.map(|wall| wall.saturating_sub(started.elapsed()));
        let timeout = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut fds = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => {}
            Ok(_) => return Ok(outcome(child.wait()?)),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if let Some(wall) = wall.filter(|wall| started.elapsed() >= *wall) {
            let used = millis(started.elapsed());
            standing.end(pid)?;
            child.wait()?;
            return Ok(Outcome::Stopped(Stop::wall(used, millis(wall))));
        }
    }
}

fn outcome(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Outcome::Signaled(signal),
        (None, None) => Outcome::CutOff,
    }
}

fn drain(mut pipe: impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before an error is what there is.
    pipe.read_to_end(&mut bytes).ok();
    bytes
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
