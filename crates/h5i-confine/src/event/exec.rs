//! What the supervisor observes of programs: who was about to become what, who did, how it ended.

use std::time::Duration;

/// A process, as the record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ProcessId {
    /// Its number in the session, from 1 and never used again; 0 for the box's init.
    pub proc: u64,
    /// Process id inside the box, which the kernel does use again; 0 where it was not told.
    pub pid: u32,
}

/// Something read of a process, or why it could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seen<T> {
    /// It was read.
    Read(T),
    /// It could not be read: an execute-only program, a bad pointer, a process that was just killed.
    Unread {
        /// Why.
        errno: i32,
    },
}

impl<T> Seen<T> {
    /// What was read, if anything was.
    pub fn read(&self) -> Option<&T> {
        match self {
            Self::Read(value) => Some(value),
            Self::Unread { .. } => None,
        }
    }
}

/// Arguments of a program, bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arguments {
    /// Those that are kept, each to at most 4096 bytes, all together to at most 64 KiB.
    pub argv: Vec<Vec<u8>>,
    /// How many were cut or left out; at most the first 16,384 are kept, and about a million counted.
    pub cut: u32,
}

/// A process asks for another program. It is sent before the kernel is let go on, so what it says
/// is what the call's pointers pointed to then: another thread of the process can change that before
/// the kernel reads it again. That a program was asked for can't be hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecAttempt {
    /// Number of the run that the process belongs to; 0 when its descent is not known.
    pub run: u64,
    /// The process.
    pub process: ProcessId,
    /// The nearest forebear that is on record. Processes that only forked are not, so its `pid`
    /// need not be `ppid`.
    pub parent: ProcessId,
    /// Process id of the parent inside the box at that time, 0 when it was not told.
    pub ppid: u32,
    /// The path as it was passed. For a descriptor (`execveat`), what that descriptor is.
    pub path: Seen<Vec<u8>>,
    /// The arguments as they were passed.
    pub arguments: Seen<Arguments>,
    /// The working directory.
    pub cwd: Seen<Vec<u8>>,
    /// Whether the end of the process will be told by its pidfd. Beyond a bound on descriptors it
    /// is not, and an end that is not a call of the process's own (a signal) goes unheard.
    pub watched: bool,
    /// Time since the session's start.
    pub since_start: Duration,
}

/// A process has become another program: the kernel's own view of it was compared with that at the
/// attempt. It follows the attempt at the process's next call, at its end, or within moments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exec {
    /// Number of the run that the process belongs to; 0 when its descent is not known.
    pub run: u64,
    /// The process.
    pub process: ProcessId,
    /// The executable by `/proc/<pid>/exe`: for a script its interpreter, for a removed file or one
    /// that never had a name what the kernel makes of that (` (deleted)`). No program can change it.
    pub exe: Seen<Vec<u8>>,
    /// The path as it was passed at the attempt that succeeded.
    pub path: Seen<Vec<u8>>,
    /// How many attempts failed before that one, since the process's last program.
    pub failed: u32,
    /// Time since the session's start.
    pub since_start: Duration,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessEnd {
    /// By itself, with this code.
    Exited(u8),
    /// By this signal.
    Signaled(i32),
    /// The kernel did not tell (before Linux 6.15, for one that a signal ended).
    Untold,
}

/// A process that attempted to become a program has ended and was reaped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessEnded {
    /// Number of the run that the process belongs to; 0 when its descent is not known.
    pub run: u64,
    /// The process.
    pub process: ProcessId,
    /// How.
    pub end: ProcessEnd,
    /// From its first attempt to its end, where that was a call of its own, or to when it was heard
    /// of; within 0.1 s.
    pub wall: Duration,
    /// Processor time of its own, in steps of the kernel's clock (10 ms), where its end was a call
    /// of its own and it lived 20 ms.
    pub cpu: Option<Duration>,
    /// Largest resident set in bytes, where its end was a call of its own and it lived 20 ms.
    pub max_rss: Option<u64>,
    /// It ended before it was seen whether its last attempt had succeeded: a signal killed it, or
    /// it ended its only thread without `exit_group`.
    pub unseen: bool,
    /// Time since the session's start.
    pub since_start: Duration,
}
