//! Why a broker can't be had, or a grant not given.

use std::io;

/// Why a broker could not be started. Nothing is served then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Two grants have one name.
    #[error("there are two grants named {name}")]
    Twice {
        /// The name.
        name: String,
    },
    /// A grant by `reverse` has no socket.
    #[error("the grant {name} has no socket to be found at")]
    NoListener {
        /// Name of the grant.
        name: String,
    },
    /// The certificate that the box is to trust can't be made.
    #[error("could not make the box's certificate authority")]
    Authority(#[source] rcgen::Error),
    /// A root is no certificate.
    #[error("a root certificate is none")]
    Root(#[source] rustls::Error),
    /// A step failed.
    #[error("could not {step}")]
    Step {
        /// What was to be done.
        step: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// Why a run does not get its grants. It has none of them then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// There is no such grant.
    #[error("there is no grant named {name}")]
    NoGrant {
        /// The name that was given.
        name: String,
    },
    /// The person took it back.
    #[error("the grant {name} was revoked")]
    Revoked {
        /// Name of the grant.
        name: String,
    },
    /// The broker is suspended.
    #[error("grants are suspended")]
    Suspended,
    /// The kernel gives no random bytes.
    #[error("could not get random bytes")]
    Random(#[source] io::Error),
    /// The broker has ended, or the record can't be written.
    #[error("the broker has ended")]
    Ended,
}

/// Why a grant could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// There is no such grant.
    #[error("there is no grant named {name}")]
    NoGrant {
        /// The name that was given.
        name: String,
    },
    /// No run holds it.
    #[error("no run holds the grant {name}")]
    NotHeld {
        /// Name of the grant.
        name: String,
    },
    /// The broker has ended, or the record can't be written.
    #[error("the broker has ended")]
    Ended,
}
