//! What can go wrong, by operation.

use std::io;
use std::path::PathBuf;

use h5i_policy::{NetMode, Tier};

/// Why a policy can't be enforced here as it stands. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The host's facts can't be read.
    #[error("could not read the host's facts below /proc")]
    Facts(#[source] io::Error),
    /// This crate confines at the tiers process and supervised.
    #[error("the tier {tier} is not served by this confinement")]
    Tier {
        /// What the policy asks for.
        tier: Tier,
    },
    /// The network mode needs another tier.
    #[error("network mode {} can't be had at tier {tier}", mode_name(*mode))]
    Network {
        /// What the policy asks for.
        mode: NetMode,
        /// The tier that it asks for.
        tier: Tier,
    },
    /// The policy asks to do without namespaces, which is not served yet.
    #[error("namespaces = \"off\" is not served by this version")]
    NamespacesOff,
    /// A setting of the host forbids user namespaces.
    #[error("this host forbids user namespaces to ordinary users ({setting} = {value})")]
    NoUserNamespaces {
        /// The setting, as `sysctl` names it.
        setting: &'static str,
        /// Its value.
        value: String,
    },
    /// The kernel lacks something every box needs.
    #[error("this host's kernel is {}.{}, and {what} needs {}.{}", have.0, have.1, need.0, need.1)]
    Kernel {
        /// What needs it.
        what: &'static str,
        /// The host's version.
        have: (u32, u32),
        /// The version needed.
        need: (u32, u32),
    },
    /// The host's Landlock is too old.
    #[error("this host has Landlock ABI {have}, and {what} needs {need}")]
    Landlock {
        /// What needs it.
        what: &'static str,
        /// The host's ABI, 0 for none.
        have: u32,
        /// The ABI needed.
        need: u32,
    },
    /// A root caller did not say under which host id the box runs.
    #[error("a box started by root needs a non-zero host id of its own")]
    RootNeedsHostId,
    /// A granted path can't be looked at.
    #[error("could not look at the granted path {}", path.display())]
    Grant {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A granted path is neither file nor directory.
    #[error("the granted path {} is neither a file nor a directory", path.display())]
    NotFileOrDirectory {
        /// Which.
        path: PathBuf,
    },
    /// A granted path is one of the box's own, of the kernel's, or above one of them.
    #[error("the path {} can't be granted: the box has its own there", path.display())]
    Reserved {
        /// Which.
        path: PathBuf,
    },
    /// Hide patterns in host grants are not enforced yet.
    #[error("fs.hide can't be enforced inside the host grant {} by this version", path.display())]
    HideInGrant {
        /// Which grant.
        path: PathBuf,
    },
}

fn mode_name(mode: NetMode) -> &'static str {
    match mode {
        NetMode::None => "none",
        NetMode::Allow => "allow",
        NetMode::Open => "open",
        NetMode::Host => "host",
        _ => "unknown",
    }
}

/// Why a session did not start. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The parent could not prepare something.
    #[error("could not {what} for the box")]
    Prepare {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The host forbids executing a program from memory.
    #[error("the host forbids executing the stage from memory (vm.memfd_noexec)")]
    StageForbidden(#[source] io::Error),
    /// A part of the host could not be taken hold of for a root caller's box.
    #[error("could not take hold of {}", path.display())]
    Source {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A step failed in the stage.
    #[error("could not {step}")]
    Step {
        /// The step in words.
        step: String,
        /// Its place in the plan, from 0.
        index: usize,
        /// Why.
        source: io::Error,
    },
    /// The stage ended without a word.
    #[error("the stage of the box ended without saying why")]
    StageDied,
}

/// Why a run did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The session of its own did not start.
    #[error("could not start a session for the run")]
    Session(#[from] StartError),
    /// The session has ended.
    #[error("the session has ended")]
    SessionEnded,
    /// The process that holds the session said why.
    #[error(transparent)]
    Elsewhere(Box<dyn std::error::Error + Send + Sync>),
    /// The observations can't be kept, so nothing is started.
    #[error("the run was not started")]
    Record(#[from] crate::event::SinkClosed),
    /// An argument, variable or path has a NUL byte.
    #[error("{what} has a NUL byte")]
    Nul {
        /// What has it.
        what: &'static str,
    },
    /// The parent could not prepare something.
    #[error("could not {what} for the run")]
    Prepare {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A step between fork and exec failed.
    #[error("could not {what} in the box")]
    Step {
        /// The step in words.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The program is not there.
    #[error("{} was not found in the box", program.display())]
    NotFound {
        /// What was to be run.
        program: PathBuf,
    },
    /// The program is there and can't be executed.
    #[error("{} can't be executed in the box", program.display())]
    NotExecutable {
        /// What was to be run.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
}
