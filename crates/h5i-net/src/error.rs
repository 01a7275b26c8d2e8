//! Why a network can't be had or changed.

use std::io;

use h5i_policy::NetMode;

/// Why a policy's network can't be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The mode is not one with a gate of its own.
    #[error("a network of mode {mode:?} has no gate")]
    Mode {
        /// The mode.
        mode: NetMode,
    },
}

/// Why a network could not be started. Nothing is carried then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The policy can't be served.
    #[error("the network can't be served")]
    Plan(#[from] PlanError),
    /// Not as many sockets as were asked for.
    #[error("{given} sockets were given where {asked} were asked for")]
    Sockets {
        /// How many came.
        given: usize,
        /// How many [`requests`](crate::requests) says.
        asked: usize,
    },
    /// A step failed.
    #[error("could not {step}")]
    Step {
        /// What was to be done.
        step: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// Why the rules could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The new policy can't be served; the old one holds.
    #[error("the new rules can't be served")]
    Plan(#[from] PlanError),
    /// The gate took no change; everything was cut.
    #[error("could not change the gate; everything is cut")]
    Gate(#[source] io::Error),
    /// The network has ended.
    #[error("the network has ended")]
    Ended,
}
