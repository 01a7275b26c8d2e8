//! `h5i policy …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;
use super::making::PolicyArgs;
use super::values::ProfileName;
use crate::store::BoxName;
use crate::workspace::BaseSpec;

/// The verbs of policies.
#[derive(Clone, Debug, Subcommand)]
#[non_exhaustive]
pub enum PolicyVerb {
    /// Show a profile as it resolves here, every default written out
    Show(ProfileArgs),
    /// Check policy documents for mistakes
    Check(CheckArgs),
    /// Print the digest of a profile as it resolves here
    Digest(ProfileArgs),
    /// Show how a box's frozen policy differs from what its profile resolves to now
    Diff(PolicyDiffArgs),
    /// Trust this repository's policy document, exactly as it is, to loosen what you have
    ///
    /// Shows what it would loosen, and asks. A document that changes, by one byte, is untrusted again
    /// and may only tighten; so is the same document in another repository.
    Trust(TrustArgs),
    /// Write what a box asked for on the network into your policy
    ///
    /// Shows what would change in the profile, and asks. Comments and order of the document stay.
    Accept(AcceptArgs),
}

/// `h5i policy show` and `h5i policy digest`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ProfileArgs {
    /// Which policy.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i policy check`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CheckArgs {
    /// The documents [default: the user's, and the repository's as HEAD has it]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i policy diff`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct PolicyDiffArgs {
    /// The box
    pub name: BoxName,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i policy trust`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TrustArgs {
    /// Look at the document of this revision [default: HEAD's]
    #[arg(long, value_name = "REV", conflicts_with = "dirty")]
    base: Option<String>,
    /// Look at the document of the working tree
    #[arg(long)]
    dirty: bool,
    /// Trust no document of this repository any more
    #[arg(long, conflicts_with_all = ["base", "dirty"])]
    pub withdraw: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i policy accept`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AcceptArgs {
    /// The box
    pub name: BoxName,
    /// The profile to write them into; a new one extends the box's [default: the box's]
    #[arg(long, short, value_name = "PROFILE")]
    pub profile: Option<ProfileName>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

impl TrustArgs {
    /// The base whose document is meant.
    #[must_use]
    pub fn spec(&self) -> BaseSpec {
        match self {
            Self { dirty: true, .. } => BaseSpec::WorkingTree,
            Self { base: Some(revision), .. } => BaseSpec::Revision(revision.clone()),
            _ => BaseSpec::Head,
        }
    }
}
