//! What the broker observes, as it happens.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use h5i_policy::{HostName, Via};

/// One observation. `grant` is the name in the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A run got its grant: sent before the run has the token.
    Issued {
        /// Name of the grant.
        grant: String,
        /// Number of the run in its session.
        run: u64,
        /// When it ends by itself.
        until: Option<SystemTime>,
    },
    /// A request passed: sent before anything of it is sent on.
    Used(Use),
    /// The end of a request that passed.
    Finished {
        /// Name of the grant.
        grant: String,
        /// The request's number in its session, from 1.
        request: u64,
        /// Status of the service's answer; `None` where there was none.
        status: Option<u16>,
        /// Bytes of the request's body.
        sent: u64,
        /// Bytes of the answer's body.
        received: u64,
        /// From the request to the last byte of its answer.
        duration: Duration,
        /// How it ended.
        end: End,
        /// How often a secret was found in the answer and taken out.
        scrubbed: u64,
    },
    /// A request was refused, or a connection that was none: the first of its kind at once, then
    /// how many more came.
    Refused {
        /// Name of the grant.
        grant: String,
        /// The run that asked, where its program or the flow tells; else that of the token.
        run: Option<u64>,
        /// The run that the token was issued to, where another one asked.
        token_of: Option<u64>,
        /// The program, where it is known.
        program: Option<Program>,
        /// Method, and path as in [`Use::path`], as far as they were understood; at most 300
        /// characters.
        request: Option<String>,
        /// Why.
        denial: Denial,
        /// How many.
        count: u64,
    },
    /// A grant holds no more.
    Withdrawn {
        /// Name of the grant.
        grant: String,
        /// The run; `None` for all runs.
        run: Option<u64>,
        /// Why.
        end: End,
    },
}

/// A request that passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Name of the grant.
    pub grant: String,
    /// The run whose grant is used.
    pub run: u64,
    /// The request's number in its session, from 1.
    pub request: u64,
    /// The program that made it, where it is known.
    pub program: Option<Program>,
    /// The way it came.
    pub way: Way,
    /// Method.
    pub method: String,
    /// Path after normalisation, without the query; by a grant for git then, after blanks, the
    /// service that is asked for, or the references of a push. At most 300 characters.
    pub path: String,
    /// The service.
    pub host: HostName,
    /// Its port.
    pub port: u16,
}

/// The program of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// Its number in the box.
    pub pid: u32,
    /// Its executable in the box.
    pub path: PathBuf,
}

/// The way from the box to the broker.
pub type Way = Via;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Denial {
    /// No token, or none that holds. 401.
    Token,
    /// The message is none, or two parsers could read it in two ways. 400.
    Malformed,
    /// An upgrade or CONNECT. 400.
    Upgrade,
    /// Host, authority, SNI or target name another service. 421.
    OtherHost,
    /// The method is not listed. 403.
    Method,
    /// The path is not listed. 403.
    Path,
    /// The program is not listed, or not known where programs are listed. 403.
    Program,
    /// The grant is for git, and does not let git do this. 403.
    Git,
    /// A budget is spent. 429.
    Budget,
    /// The grant has ended. 401.
    Expired,
    /// The person took it back. 401.
    Revoked,
    /// The box is frozen, or was since. 401.
    Suspended,
    /// The host has no credential to add. 502.
    NoCredential,
    /// The service can't be reached, or its certificate is not trusted. 502.
    Unreachable,
    /// More at once than is carried. 503.
    AtOnce,
    /// The service's answer is none. 502.
    BadAnswer,
    /// The sender was too slow, or headers too large. 408 or 431.
    Limits,
}

/// How a request or a grant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum End {
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
    /// A budget is spent.
    Budget,
    /// The box was frozen.
    Suspended,
    /// The run ended.
    RunEnded,
    /// The session ended.
    Ended,
}

/// Takes observations. It is called from the broker's own threads.
pub trait EventSink: Send + Sync {
    /// Takes one observation.
    ///
    /// # Errors
    /// [`SinkClosed`] when it can't be kept; the broker then lets nothing go on, and ends.
    fn event(&self, event: Event) -> Result<(), SinkClosed>;
}

/// The sink can't keep observations any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record of grants can't be written")]
pub struct SinkClosed;

/// A sink that drops everything, for harnesses without a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl EventSink for NoSink {
    fn event(&self, _: Event) -> Result<(), SinkClosed> {
        Ok(())
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token => "no token, or none that holds",
            Self::Malformed => "a malformed request",
            Self::Upgrade => "an upgrade of the connection",
            Self::OtherHost => "it names another service",
            Self::Method => "the method is not listed",
            Self::Path => "the path is not listed",
            Self::Program => "the program is not listed",
            Self::Git => "git may not do this",
            Self::Budget => "a budget is spent",
            Self::Expired => "the grant has ended",
            Self::Revoked => "the grant was revoked",
            Self::Suspended => "the box was frozen",
            Self::NoCredential => "the host has no credential to add",
            Self::Unreachable => "the service can't be reached",
            Self::AtOnce => "more at once than is carried",
            Self::BadAnswer => "the service's answer is none",
            Self::Limits => "too slow, or its head too large",
        })
    }
}
