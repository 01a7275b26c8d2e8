//! `h5i receipt …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;

/// The verbs of receipts.
#[derive(Clone, Debug, Subcommand)]
#[non_exhaustive]
pub enum ReceiptVerb {
    /// Check an exported bundle: digests, the chain of records, and that the patch gives its tree
    ///
    /// The exit code is 1 for the first thing that does not match.
    Verify(VerifyArgs),
}

/// `h5i receipt verify`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct VerifyArgs {
    /// The bundle that `h5i box export` wrote
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}
