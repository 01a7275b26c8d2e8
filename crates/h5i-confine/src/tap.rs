//! Hears the output of a run on its way to its receiver.

use std::fmt;

/// Which output of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TappedStream {
    /// Standard output; also errors that go the same way, to one file.
    Stdout,
    /// Standard error.
    Stderr,
    /// What goes to the run's terminal.
    Terminal,
}

/// Hears what a run writes, before its receiver gets it.
pub trait OutputTap: Send + Sync + fmt::Debug {
    /// The run wrote these bytes, which `limits.output` lets pass. It is called by the thread that
    /// carries them, which waits for it.
    fn wrote(&self, stream: TappedStream, bytes: &[u8]);
}
