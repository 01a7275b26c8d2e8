//! Words that records say what happened with.

use serde::{Deserialize, Serialize};

/// What of an attempt could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Unread {
    /// The path.
    Path,
    /// The arguments.
    Argv,
    /// The working directory.
    Cwd,
}

/// Why a planted credential is not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CanaryLoss {
    /// It was written to.
    Changed,
    /// It is gone.
    Removed,
    /// Something else stands at its path, or on the way to it.
    Replaced,
    /// The box has closed it, or a directory on the way to it.
    Closed,
    /// It could not be written.
    NotPlanted,
}

impl CanaryLoss {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Replaced => "replaced",
            Self::Closed => "closed",
            Self::NotPlanted => "not-planted",
        }
    }

    /// What happened to it, in words that follow its path.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::Changed => "was written to by the box",
            Self::Removed => "was removed by the box",
            Self::Replaced => "has something of the box in its place",
            Self::Closed => "was closed by the box",
            Self::NotPlanted => "could not be planted",
        }
    }
}

/// How the network of a session is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetworkChange {
    /// A rule more.
    Allow,
    /// A rule less.
    Revoke,
    /// Everything is closed.
    Cut,
}

impl NetworkChange {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Revoke => "revoke",
            Self::Cut => "cut",
        }
    }
}

/// How a person changes a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GrantChange {
    /// It is taken back.
    Revoke,
    /// It holds longer.
    Extend,
}

impl GrantChange {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Revoke => "revoke",
            Self::Extend => "extend",
        }
    }
}

/// How a request by a grant, or a grant, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GrantEnd {
    /// By itself.
    Done,
    /// The program went away.
    Client,
    /// The service went away, or took too long.
    Service,
    /// Its time was over.
    Expired,
    /// The person took it back.
    Revoked,
    /// A budget was spent.
    Budget,
    /// The box was frozen.
    Suspended,
    /// The run ended.
    RunEnded,
    /// The session ended.
    Ended,
}

impl GrantEnd {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Client => "client",
            Self::Service => "service",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Budget => "budget",
            Self::Suspended => "suspended",
            Self::RunEnded => "run-ended",
            Self::Ended => "ended",
        }
    }
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FlowVerdict {
    /// Both sides were done.
    Done,
    /// One side reset it or vanished.
    Reset,
    /// The host could not connect.
    Unreachable,
    /// The relay closed it.
    Refused,
    /// It was open when the session ended.
    Ended,
}

impl FlowVerdict {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Reset => "reset",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Ended => "ended",
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// By itself, with a code.
    Exited,
    /// By a signal that h5i did not send.
    Signaled,
    /// By a limit.
    Stopped,
    /// It was refused before it began.
    Refused,
    /// Its supervisor died.
    CutOff,
}

impl Outcome {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::Stopped => "stopped",
            Self::Refused => "refused",
            Self::CutOff => "cut-off",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
pub(super) fn is_false(value: &bool) -> bool {
    !*value
}
