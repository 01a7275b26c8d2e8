//! `h5i box approve`

use std::path::{Path, PathBuf};

use clap::Args;
use h5i_export::Digest;
use h5i_policy::Millis;

use super::Output;
use super::values::duration;
use crate::store::BoxName;

/// `h5i box approve`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ApproveArgs {
    /// The box that the bundle was exported from
    #[arg(required_unless_present_any = ["list", "revoke"])]
    name: Option<BoxName>,
    /// What `h5i box export` wrote
    #[arg(long, value_name = "DIR", required_unless_present_any = ["list", "revoke"])]
    bundle: Option<PathBuf>,
    /// How long the approval holds, as 10m
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = duration,
        required_unless_present_any = ["list", "revoke"]
    )]
    span: Option<Millis>,
    /// Refuse unless the bundle has this digest
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<Digest>,
    /// Also when a run was stopped or cut off before the export
    #[arg(long)]
    pub incomplete: bool,
    /// List what is approved
    #[arg(long, conflicts_with_all = ["name", "bundle", "span", "digest", "incomplete", "revoke"])]
    list: bool,
    /// Take an approval back that was not used yet
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["name", "bundle", "span", "digest", "incomplete"]
    )]
    revoke: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// What is asked of the approvals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApproveWish<'a> {
    /// To add one.
    Approve {
        /// The box that the bundle comes from.
        name: &'a BoxName,
        /// The bundle's directory.
        bundle: &'a Path,
        /// How long it holds.
        span: Millis,
    },
    /// To list them.
    List,
    /// To take one back.
    Revoke(&'a str),
}

impl ApproveArgs {
    /// What is asked for. The grammar lets nothing else through.
    #[must_use]
    pub fn wish(&self) -> ApproveWish<'_> {
        match (&self.revoke, &self.name, &self.bundle, self.span) {
            (Some(id), ..) => ApproveWish::Revoke(id),
            (None, Some(name), Some(bundle), Some(span)) => {
                ApproveWish::Approve { name, bundle, span }
            }
            _ => ApproveWish::List,
        }
    }
}
