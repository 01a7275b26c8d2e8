//! `h5i box …`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use h5i_policy::{Millis, Tier};

use super::Output;
use super::apply::ApplyArgs;
use super::approve::ApproveArgs;
use super::making::{ArtifactArgs, BaseArgs, LayoutArgs, LearnArgs, PolicyArgs};
use super::values::{Assignment, Lane, Since, duration, since, tier, variable};
use crate::store::BoxName;

/// The verbs of boxes.
#[derive(Clone, Debug, Subcommand)]
#[non_exhaustive]
pub enum BoxVerb {
    /// Make a box and run nothing in it
    Create(CreateArgs),
    /// Run a command in a box
    ///
    /// A box that is alive is joined: its commands share files, processes and `localhost`. The first
    /// one holds the session and returns with the last. Output and exit code are the command's own; 124 for a spent deadline, 123 for another limit,
    /// 125 if h5i could not start it, 126 and 127 as shells have them, and 128 plus the signal's
    /// number.
    Run(RunInArgs),
    /// Work in a box: a shell with a terminal of the box's own
    ///
    /// A box that is alive is joined, as by `run`. The shell is the one of SHELL if the box has it,
    /// else bash, else sh. Programs that it leaves in the background end with the session, so with it
    /// where it is alone. The exit code is the shell's own, as that of `run`. With a command, that
    /// runs instead and has the keyboard, also in a pipeline.
    Shell(ShellArgs),
    /// Keep a box alive without a terminal, for servers that many runs share
    ///
    /// Returns when the box is ready; `run`, `shell` and `forward` join its session. It lives until
    /// `h5i box stop`. A box that was started already is left as it is.
    Start(SessionArgs),
    /// End what runs in a box: its programs are asked, and killed after two seconds
    Stop(SessionArgs),
    /// Bring a port of a box's loopback to the host's, as long as the command runs
    ///
    /// The address on the host is printed once it listens; nobody but this host reaches it.
    Forward(ForwardArgs),
    /// Let a box that is alive reach one thing more, until its session ends
    Allow(RuleArgs),
    /// Take a rule back from a box that is alive, and close what only it allowed
    Revoke(RuleArgs),
    /// Close the whole network of a box that is alive
    Cut(SessionArgs),
    /// Stop every process of a box where it is; deadlines go on
    Freeze(SessionArgs),
    /// Let the processes of a frozen box go on, and its export pass
    ///
    /// After a violation for which its policy says `freeze-export` (`react`), a box is not exported,
    /// whether it lives or not, until a person has looked at it and lets that pass by this.
    Thaw(SessionArgs),
    /// End what runs in a box at once
    Kill(SessionArgs),
    /// Keep a session: what `start` leaves
    #[command(hide = true)]
    Hold(SessionArgs),
    /// List the boxes of this repository
    Ls(ListArgs),
    /// Show what a box is, what it changed, what was refused and what is enforced
    Status(StatusArgs),
    /// Show what a box changed against its base
    Diff(DiffArgs),
    /// Show the records of a box
    Log(LogArgs),
    /// Answer five questions about a box from what is enforced, then list the steps
    Explain(ExplainArgs),
    /// Write patch, report and receipt of a box
    Export(ExportArgs),
    /// Take a bundle into the repository: as a commit on a new branch, or into the working tree
    Apply(ApplyArgs),
    /// Approve exactly one bundle, for a time and for one box: `create --artifact DIR --grant ID`
    ///
    /// Shows the report, asks, and prints the approval's id. The box that is made by it holds the
    /// bundle's tree, and each grant of its policy for one request.
    Approve(ApproveArgs),
    /// Remove boxes; their receipts stay in the archive
    Rm(RmArgs),
    /// Remove what crashes left, boxes past their expiry and objects that no box uses
    Gc(GcArgs),
    /// Try each mechanism of confinement on this host
    Probe(ProbeArgs),
}

/// `h5i box create`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CreateArgs {
    /// The box's name: a-z, 0-9, `.`, `_`, `-`, up to 63
    pub name: BoxName,
    /// What the workspace starts from.
    #[command(flatten)]
    pub base: BaseArgs,
    /// What it starts from by a person's approval.
    #[command(flatten)]
    pub artifact: ArtifactArgs,
    /// How it is laid out.
    #[command(flatten)]
    pub layout: LayoutArgs,
    /// What the box may do.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Whether to learn from it.
    #[command(flatten)]
    pub learn: LearnArgs,
    /// What the box is for, for the report
    #[arg(long, value_name = "TEXT")]
    pub purpose: Option<String>,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box run`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RunInArgs {
    /// The box
    pub name: BoxName,
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

/// `h5i box shell`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShellArgs {
    /// The box
    pub name: BoxName,
    /// End the shell after this time, as 90s or 15m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Millis>,
    /// Set a variable for the shell; may be repeated
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<Assignment>,
    /// A command to run instead of a shell, and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The verbs of a live box that take nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SessionArgs {
    /// The box
    pub name: BoxName,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box forward`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ForwardArgs {
    /// The box
    pub name: BoxName,
    /// The port inside the box
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// The port on the host's 127.0.0.1 [default: the same; 0 for any]
    #[arg(long = "as", value_name = "PORT")]
    pub host_port: Option<u16>,
    /// How to answer: with `--json`, once it listens.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box ls`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ListArgs {
    /// List the boxes of every repository
    #[arg(long, short)]
    pub all: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box status`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct StatusArgs {
    /// The box
    pub name: BoxName,
    /// Show the processes of a live box as a tree
    #[arg(long)]
    pub tree: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box diff`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct DiffArgs {
    /// The box
    pub name: BoxName,
    /// Only count lines for each file
    #[arg(long, conflicts_with = "name_only")]
    stat: bool,
    /// Only name the files
    #[arg(long)]
    name_only: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// How a difference is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiffForm {
    /// As a patch.
    Patch,
    /// Lines counted for each file.
    Stat,
    /// Names of files.
    Names,
}

impl DiffArgs {
    /// How the difference is shown.
    #[must_use]
    pub fn form(&self) -> DiffForm {
        match (self.stat, self.name_only) {
            (true, _) => DiffForm::Stat,
            (_, true) => DiffForm::Names,
            _ => DiffForm::Patch,
        }
    }
}

/// `h5i box allow` and `revoke`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RuleArgs {
    /// The box
    pub name: BoxName,
    /// HOST, HOST:PORT, *.DOMAIN, CIDR:PORT or host:PORT
    pub rule: String,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box log`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct LogArgs {
    /// The box
    pub name: BoxName,
    /// Only records of this observer
    #[arg(long, value_enum)]
    pub lane: Option<Lane>,
    /// Only what was refused
    #[arg(long)]
    pub denied: bool,
    /// Only what is not older than this: 15m, or a moment as the log writes it
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Since>,
    /// Begin with the last N records [default with --follow, without --since: 100]
    #[arg(long, value_name = "N")]
    pub tail: Option<u64>,
    /// Go on with new records until the session ends
    #[arg(long, short)]
    pub follow: bool,
    /// How to answer: with `--json`, one JSON object a line.
    #[command(flatten)]
    pub output: Output,
}

impl LogArgs {
    /// How many records to begin with; all where there is no number.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        const FOLLOWED: u64 = 100;
        self.tail.or_else(|| (self.follow && self.since.is_none()).then_some(FOLLOWED))
    }
}

/// `h5i box explain`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ExplainArgs {
    /// The box
    pub name: BoxName,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box export`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ExportArgs {
    /// The box
    pub name: BoxName,
    /// Where to write [default: NAME.export in the working directory]
    #[arg(long = "output", short = 'o', value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Replace what an earlier export wrote there
    #[arg(long)]
    pub force: bool,
    /// Also a patch that holds what looks like secrets; they are in the patch as they are
    #[arg(long)]
    pub allow_secrets: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box rm`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RmArgs {
    /// The boxes
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<BoxName>,
    /// Also a box with changes that were not exported
    #[arg(long)]
    pub force: bool,
    /// Remove the receipts too
    #[arg(long)]
    pub purge: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box gc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct GcArgs {
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i box probe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct ProbeArgs {
    /// What this tier needs: process or supervised [default: process]
    #[arg(long, value_name = "TIER", value_parser = tier())]
    pub tier: Option<Tier>,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}
