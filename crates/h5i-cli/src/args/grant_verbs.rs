//! `h5i grant …`

use clap::{Args, Subcommand};
use h5i_policy::Millis;

use super::Output;
use super::values::duration;
use crate::store::BoxName;

/// The verbs of grants.
#[derive(Clone, Debug, Subcommand)]
#[non_exhaustive]
pub enum GrantVerb {
    /// List the grants of a box, and what was used of them by the runs that hold them
    Ls(GrantListArgs),
    /// Show what a grant lets pass
    Show(GrantArgs),
    /// Take a grant back for the rest of the box's session; open requests are cut within a second
    Revoke(GrantArgs),
    /// Have a grant hold longer; its budgets stay as they are
    Extend(ExtendArgs),
}

/// `h5i grant ls`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct GrantListArgs {
    /// The box
    #[arg(value_name = "BOX")]
    pub name: BoxName,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i grant show` and `revoke`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct GrantArgs {
    /// The box
    #[arg(value_name = "BOX")]
    pub name: BoxName,
    /// The grant's name in its policy
    #[arg(value_name = "GRANT")]
    pub grant: String,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i grant extend`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ExtendArgs {
    /// The box
    #[arg(value_name = "BOX")]
    pub name: BoxName,
    /// The grant's name in its policy
    #[arg(value_name = "GRANT")]
    pub grant: String,
    /// How much longer it holds, such as 30m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub by: Millis,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}
