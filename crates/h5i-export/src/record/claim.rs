//! Words of records about what the box says of itself, and about what is kept of it.

use serde::{Deserialize, Serialize};

/// Why something in the spool was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SpoolFault {
    /// It is a symbolic link, which is not followed.
    Link,
    /// It is no file: a directory, a named pipe, a socket.
    NotFile,
    /// It is larger than is taken in.
    TooLarge,
    /// It can't be read.
    Unreadable,
    /// It has none of the forms that are known.
    Malformed,
    /// There were too many, or too many at once; it was not looked at.
    TooMany,
}

impl SpoolFault {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::NotFile => "not-file",
            Self::TooLarge => "too-large",
            Self::Unreadable => "unreadable",
            Self::Malformed => "malformed",
            Self::TooMany => "too-many",
        }
    }

    /// What it is, in words.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::Link => "a link, which is not followed",
            Self::NotFile => "no file",
            Self::TooLarge => "too large",
            Self::Unreadable => "not readable",
            Self::Malformed => "malformed",
            Self::TooMany => "more than is taken in",
        }
    }
}

/// How what the host saw and what the box reported differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Gap {
    /// A command was reported, and the host saw nothing ask for its program.
    NotSeen,
    /// A shell was to report, and the host saw it run what it did not report.
    NotReported,
    /// A command was reported with another exit code than the host saw.
    OtherEnd,
}

impl Gap {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSeen => "not-seen",
            Self::NotReported => "not-reported",
            Self::OtherEnd => "other-end",
        }
    }

    /// Why it is a gap, in words that follow what it is about.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::NotSeen => "was reported by the box, and the host saw no program of that name",
            Self::NotReported => "was seen by the host, and the box did not report it",
            Self::OtherEnd => "was reported by the box with another exit code than the host saw",
        }
    }
}

/// Which output of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The run's terminal, or output and errors that went the same way.
    Terminal,
}

impl Stream {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Terminal => "terminal",
        }
    }
}
