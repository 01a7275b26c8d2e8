//! Asks a program of the host for a secret.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use zeroize::Zeroizing;

use super::host_file::without_line_end;
use crate::redact::Redactor;
use crate::secret::Secret;

/// How long a program may take.
pub(super) const AT_MOST: Duration = Duration::from_secs(10);
/// The most that it may print, in bytes.
const MAX_OUTPUT: usize = 64 << 10;
/// As much of its complaints is kept, in bytes; the rest is read and dropped.
const MAX_COMPLAINT: usize = 4 << 10;

/// Why a program gives no secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// It can't be started, or not be waited for.
    #[error("it can't be run")]
    Run(#[source] io::Error),
    /// It took longer than ten seconds, and was ended.
    #[error("it did not answer within ten seconds")]
    TooSlow,
    /// It printed more than 64 KiB.
    #[error("it printed more than 64 KiB")]
    TooMuch,
    /// It failed.
    #[error("it failed ({status}){}{complaint}", if complaint.is_empty() { "" } else { ": " })]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The first line of its complaints: printable, at most 200 characters, without what it
        /// gave as the secret.
        complaint: String,
    },
    /// It printed nothing.
    #[error("it printed nothing")]
    Empty,
}

/// Runs a program and takes what it prints, without the end of its last line.
///
/// It gets no input and the caller's environment, and is a process group of its own, which is ended
/// with it: what it leaves running is gone.
pub(super) fn ask(words: &[String], at_most: Duration) -> Result<Secret, CommandError> {
    let Some((program, arguments)) = words.split_first() else { return Err(CommandError::Empty) };
    #[expect(
        clippy::disallowed_methods,
        reason = "the person's policy names a program to be asked"
    )]
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.process_group(0).spawn().map_err(CommandError::Run)?;
    let mut asked = Asked { child, ended: None };
    let (output, complaint) = asked.listen(at_most)?;
    let status = asked.end().map_err(CommandError::Run)?;
    if !status.success() {
        return Err(CommandError::Failed { status, complaint: first_line(&complaint, &output) });
    }
    match without_line_end(&output) {
        [] => Err(CommandError::Empty),
        secret => Ok(Secret::new(secret.to_vec())),
    }
}

/// A program that runs. It and its group are killed when this is let go.
struct Asked {
    child: Child,
    ended: Option<ExitStatus>,
}

type Bytes = Zeroizing<Vec<u8>>;

impl Asked {
    /// Reads until the program has ended and what it wrote by then was read.
    fn listen(&mut self, at_most: Duration) -> Result<(Bytes, Bytes), CommandError> {
        let run = |error: Errno| CommandError::Run(error.into());
        let deadline = Instant::now() + at_most;
        let process = pidfd_open(pid(&self.child)?, PidfdFlags::empty()).map_err(run)?;
        let mut output = Pipe::of(self.child.stdout.take().map(OwnedFd::from), MAX_OUTPUT)?;
        let mut complaint = Pipe::of(self.child.stderr.take().map(OwnedFd::from), MAX_COMPLAINT)?;
        loop {
            let ended = {
                let mut fds = vec![PollFd::new(&process, PollFlags::IN)];
                for pipe in [&output, &complaint] {
                    fds.extend(pipe.end.as_ref().map(|end| PollFd::new(end, PollFlags::IN)));
                }
                let left = deadline.saturating_duration_since(Instant::now());
                let left = Timespec::try_from(left);
                let left = left.map_err(|error| CommandError::Run(io::Error::other(error)))?;
                match poll(&mut fds, Some(&left)) {
                    Ok(0) => return Err(CommandError::TooSlow),
                    Ok(_) => !fds[0].revents().is_empty(),
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(run(error)),
                }
            };
            output.read().map_err(run)?;
            complaint.read().map_err(run)?;
            if output.dropped {
                return Err(CommandError::TooMuch);
            }
            if ended {
                return Ok((output.bytes, complaint.bytes));
            }
        }
    }

    /// Kills what is left of the group, and asks how the program ended.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        // The process is not reaped yet, so the group's number is nobody else's.
        if let Ok(group) = pid(&self.child) {
            match kill_process_group(group, Signal::KILL) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let status = self.child.wait()?;
        self.ended = Some(status);
        Ok(status)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Nobody is left to be told.
        drop(self.end());
    }
}

fn pid(child: &Child) -> Result<Pid, CommandError> {
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    number.ok_or_else(|| CommandError::Run(io::Error::from(Errno::SRCH)))
}

/// The reading end of a pipe, and what came out of it.
struct Pipe {
    end: Option<OwnedFd>,
    bytes: Bytes,
    most: usize,
    /// Whether there was more.
    dropped: bool,
}

impl Pipe {
    fn of(end: Option<OwnedFd>, most: usize) -> Result<Self, CommandError> {
        if let Some(end) = &end {
            rustix::io::ioctl_fionbio(end, true)
                .map_err(|error| CommandError::Run(error.into()))?;
        }
        // Room for all of it, so that no copy is left behind by growing.
        Ok(Self { end, bytes: Zeroizing::new(Vec::with_capacity(most)), most, dropped: false })
    }

    /// Takes what is there.
    fn read(&mut self) -> Result<(), Errno> {
        let mut part = Zeroizing::new([0; 4096]);
        // A pipe's whole content; a program that goes on writing must not keep the deadline away.
        for _ in 0..32 {
            let Some(end) = &self.end else { break };
            match rustix::io::read(end.as_fd(), &mut part[..]) {
                Ok(0) => self.end = None,
                Ok(length) => {
                    let kept = length.min(self.most - self.bytes.len());
                    self.bytes.extend_from_slice(&part[..kept]);
                    self.dropped |= kept < length;
                    if self.dropped && self.most == MAX_OUTPUT {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The first line of what a program complained of, without what it printed.
fn first_line(complaint: &[u8], output: &[u8]) -> String {
    let printed = Secret::new(without_line_end(output).to_vec());
    let Ok(redactor) = Redactor::new([&printed]) else { return String::new() };
    let clean = redactor.redact(complaint);
    let line =
        clean.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
    h5i_policy::Escaped(&String::from_utf8_lossy(line.unwrap_or_default())).to_string()
}
