//! `h5i box apply`

use std::path::PathBuf;

use clap::Args;
use h5i_export::Digest;

use super::Output;
use crate::store::BoxName;

/// `h5i box apply`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ApplyArgs {
    /// The box
    pub name: BoxName,
    /// What `h5i box export` wrote
    #[arg(long, value_name = "DIR")]
    pub bundle: PathBuf,
    /// Name the new branch [default: h5i/NAME]
    #[arg(long, value_name = "BRANCH", conflicts_with = "worktree")]
    branch: Option<String>,
    /// Write into the clean working tree, with conflict markers where both sides changed
    #[arg(long)]
    worktree: bool,
    /// Take only these files, or what is below these directories
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub only: Vec<PathBuf>,
    /// Refuse unless the bundle has this digest
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<Digest>,
    /// Also when a run was stopped or cut off before the export
    #[arg(long)]
    pub incomplete: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// Where a bundle goes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Destination {
    /// A commit on a new branch.
    Branch(String),
    /// The working tree and the index.
    WorkingTree,
}

impl ApplyArgs {
    /// Where the bundle goes.
    #[must_use]
    pub fn destination(&self) -> Destination {
        match &self.branch {
            _ if self.worktree => Destination::WorkingTree,
            Some(branch) => Destination::Branch(branch.clone()),
            None => Destination::Branch(format!("h5i/{}", self.name)),
        }
    }
}
