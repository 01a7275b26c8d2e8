//! `h5i policy …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;
use super::making::PolicyArgs;
use crate::store::BoxName;

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
