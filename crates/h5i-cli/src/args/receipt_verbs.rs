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
    /// List the receipts of removed boxes
    Ls(ReceiptListArgs),
    /// Show the receipt of a removed box: what it was, and its records
    Show(ShowArgs),
    /// Remove receipts for good
    Purge(PurgeArgs),
}

/// `h5i receipt verify`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct VerifyArgs {
    /// The bundle that `h5i box export` wrote, or a receipt.json alone
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i receipt ls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct ReceiptListArgs {
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i receipt show`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShowArgs {
    /// The receipt: a box's name, or NAME-ID where more than one box had it
    #[arg(value_name = "RECEIPT")]
    pub receipt: String,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i receipt purge`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct PurgeArgs {
    /// The receipts: names of boxes, or NAME-ID where more than one box had a name
    #[arg(value_name = "RECEIPT", required_unless_present = "all")]
    pub receipts: Vec<String>,
    /// Every receipt
    #[arg(long, conflicts_with = "receipts")]
    pub all: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}
