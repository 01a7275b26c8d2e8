//! How a run ended.

use std::fmt;
use std::time::Duration;

use h5i_policy::Violation;

/// How a run ended. A stop is a value of its own, never a bare signal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The program ended by itself with this code.
    Exited(u8),
    /// A signal that h5i did not send ended the program.
    Signaled(i32),
    /// A budget ended the run.
    Stopped(Stop),
    /// A violation ended the session, as the policy's `react` says.
    Reacted(Violation),
    /// The session was ended by its owner while the run was alive.
    Ended,
    /// The session broke off (its init or the stage died): what the run did last is not known.
    CutOff,
}

impl Outcome {
    /// Whether the program ended by itself with code 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }

    /// The exit code that a shell would show: the program's own, 128+n for a signal, 124 for a
    /// wall clock, 123 for another budget or a violation, 125 when h5i can't tell.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
            Self::Stopped(Stop { limit: Limit::Wall | Limit::Session, .. }) => 124,
            Self::Stopped(_) | Self::Reacted(_) => 123,
            Self::Ended | Self::CutOff => 125,
        }
    }
}

/// A budget that ended a run, with both figures in the limit's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stop {
    /// Which budget.
    pub limit: Limit,
    /// What was used when the run was stopped: milliseconds or bytes.
    pub used: u64,
    /// What the policy allows: milliseconds or bytes.
    pub allowed: u64,
}

impl Stop {
    /// A stop by the wall clock, in milliseconds, for callers that keep the clock themselves.
    #[must_use]
    pub const fn wall(used: u64, allowed: u64) -> Self {
        Self { limit: Limit::Wall, used, allowed }
    }

    /// A stop for what was written, in bytes, for callers that carry it themselves.
    #[must_use]
    pub const fn output(used: u64, allowed: u64) -> Self {
        Self { limit: Limit::Output, used, allowed }
    }

    /// A stop that another process tells of.
    #[must_use]
    pub const fn told(limit: Limit, used: u64, allowed: u64) -> Self {
        Self { limit, used, allowed }
    }
}

/// A budget that can end a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Limit {
    /// Wall clock, milliseconds.
    Wall,
    /// Wall clock of the session, milliseconds.
    Session,
    /// Processor time of all processes of the session, milliseconds.
    Cpu,
    /// Bytes written to standard output and error.
    Output,
    /// Size of one file, bytes.
    FileSize,
    /// Memory of all processes and memory files of the session, bytes.
    Memory,
    /// What the box takes on disk and in its memory file systems, bytes.
    Disk,
    /// What the file systems that the box writes to keep free, bytes: `used` is what is free, and
    /// `allowed` what was to be.
    KeepFree,
}

impl Limit {
    /// Every budget that can end a run.
    pub const ALL: [Self; 8] = [
        Self::Wall,
        Self::Session,
        Self::Cpu,
        Self::Output,
        Self::FileSize,
        Self::Memory,
        Self::Disk,
        Self::KeepFree,
    ];

    /// The name of the policy's field.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Session => "session",
            Self::Cpu => "cpu",
            Self::Output => "output",
            Self::FileSize => "file_size",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::KeepFree => "keep_free",
        }
    }

    /// The limit of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.name() == name)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Signaled(signal) => write!(f, "ended by signal {signal}"),
            Self::Stopped(stop) => write!(f, "{stop}"),
            Self::Reacted(violation) => {
                write!(f, "ended with its session by react.{violation} = \"kill\"")
            }
            Self::Ended => f.write_str("ended with its session"),
            Self::CutOff => f.write_str("cut off: the session broke"),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, used, allowed) = (self.limit.name(), self.used, self.allowed);
        let unit = match self.limit {
            Limit::Wall | Limit::Session | Limit::Cpu => "ms",
            Limit::Output | Limit::FileSize | Limit::Memory | Limit::Disk => "bytes",
            Limit::KeepFree => {
                return write!(
                    f,
                    "stopped by limits.{name}: {used} bytes are free, {allowed} are to be"
                );
            }
        };
        write!(f, "stopped by limits.{name}: used {used} {unit} of {allowed} {unit}")
    }
}

/// What a run cost, as the box's init accounts it: the program and the children it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// From start to end.
    pub wall: Duration,
    /// Processor time in user and kernel mode.
    pub cpu: Duration,
    /// Largest resident set of one process, bytes.
    pub max_rss: u64,
}
