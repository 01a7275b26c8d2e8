//! What makes a box: its base and its policy. And the verb that makes one and runs in it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use h5i_policy::{Millis, Tier};

use super::Output;
use super::values::{Assignment, ProfileName, WorkspaceChoice, duration, tier, variable};
use crate::creation::Artifact;
use crate::workspace::BaseSpec;

/// What the workspace starts from; `HEAD` where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[group(multiple = false)]
pub struct BaseArgs {
    /// Start from this branch, tag or commit [default: HEAD]
    #[arg(long, value_name = "REV", help_heading = "Base")]
    base: Option<String>,
    /// Start from the working tree as it is, ignored files left out
    #[arg(long, help_heading = "Base")]
    dirty: bool,
    /// Start from another repository of this host
    #[arg(long, value_name = "PATH", help_heading = "Base")]
    clone: Option<PathBuf>,
    /// Start from nothing
    #[arg(long, help_heading = "Base")]
    empty: bool,
    /// Start from the reviewed tree of a bundle; nothing else of its box comes along
    #[arg(long, value_name = "DIR", help_heading = "Base")]
    from_bundle: Option<PathBuf>,
}

impl BaseArgs {
    /// What was asked for.
    #[must_use]
    pub fn spec(&self) -> BaseSpec {
        match self {
            Self { empty: true, .. } => BaseSpec::Empty,
            Self { dirty: true, .. } => BaseSpec::WorkingTree,
            Self { from_bundle: Some(path), .. } => BaseSpec::Bundle(path.clone()),
            Self { clone: Some(path), .. } => BaseSpec::Clone(path.clone()),
            Self { base: Some(revision), .. } => BaseSpec::Revision(revision.clone()),
            _ => BaseSpec::Head,
        }
    }
}

/// What a person approved, and what a box is made of by that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ArtifactArgs {
    /// Start from the reviewed tree of a bundle that a person approved, and from nothing else
    #[arg(
        long,
        value_name = "DIR",
        requires = "grant",
        conflicts_with = "BaseArgs",
        help_heading = "Approval"
    )]
    artifact: Option<PathBuf>,
    /// The id that `h5i box approve` printed; it is spent, for one use of each grant of the policy
    #[arg(long, value_name = "ID", requires = "artifact", help_heading = "Approval")]
    grant: Option<String>,
}

impl ArtifactArgs {
    /// What was asked for; none for a box without an approval.
    #[must_use]
    pub fn of(&self) -> Option<Artifact<'_>> {
        match (&self.artifact, &self.grant) {
            (Some(bundle), Some(approval)) => Some(Artifact { bundle, approval }),
            _ => None,
        }
    }
}

/// How the workspace is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct LayoutArgs {
    /// How the workspace is laid out
    #[arg(long, value_name = "KIND", value_enum, default_value_t, help_heading = "Base")]
    pub workspace: WorkspaceChoice,
}

/// What the box may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct PolicyArgs {
    /// The profile of the policy [default: default]
    #[arg(long, short, value_name = "PROFILE", help_heading = "Policy")]
    pub profile: Option<ProfileName>,
    /// What stands between the box and the host
    #[arg(long, value_name = "TIER", value_parser = tier(), help_heading = "Policy")]
    pub tier: Option<Tier>,
    /// What the box may reach, one rule a word; the policy's own grammar checks them.
    #[arg(
        long,
        value_name = "RULE",
        help_heading = "Policy",
        help = "Let the box reach HOST[:PORT], *.DOMAIN, CIDR:PORT or host:PORT; may be repeated"
    )]
    pub allow: Vec<String>,
    /// Set a key of the profile, as limits.wall=15m; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Policy")]
    pub set: Vec<Assignment>,
}

/// Whether what the box asks for on the network is made into rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct LearnArgs {
    /// Say afterwards which rules would have been needed; tier supervised
    #[arg(long, help_heading = "Policy")]
    pub learn: bool,
}

/// `h5i run`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RunArgs {
    /// What the workspace starts from.
    #[command(flatten)]
    pub base: BaseArgs,
    /// How it is laid out.
    #[command(flatten)]
    pub layout: LayoutArgs,
    /// What the box may do.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Whether to learn from it.
    #[command(flatten)]
    pub learn: LearnArgs,
    /// Keep the box, whatever happens
    #[arg(long, conflicts_with = "rm")]
    keep: bool,
    /// Remove the box, whatever happens; its receipt stays in the archive
    #[arg(long)]
    rm: bool,
    /// What the box is for, for the report
    #[arg(long, value_name = "TEXT")]
    pub purpose: Option<String>,
    /// End the run after this time, as 90s or 15m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Millis>,
    /// Set a variable for the run; may be repeated
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<Assignment>,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What becomes of the box of a one-shot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum After {
    /// Removed if the command succeeded and changed nothing, else kept.
    Judge,
    /// Kept.
    Keep,
    /// Removed.
    Remove,
}

impl RunArgs {
    /// What becomes of the box.
    #[must_use]
    pub fn after(&self) -> After {
        match (self.keep, self.rm) {
            (true, _) => After::Keep,
            (_, true) => After::Remove,
            _ => After::Judge,
        }
    }
}
