//! What is said inside a box: `h5i note`, `report-command`, `hook` and `changed-paths`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::Output;

/// `h5i note`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NoteArgs {
    /// The remark [default: what is on standard input]
    #[arg(value_name = "TEXT")]
    pub text: Vec<OsString>,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i report-command`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ReportArgs {
    /// Its exit code
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub status: i32,
    /// The command as it ran
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i hook`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct HookArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: HookShell,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// Shells that can report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum HookShell {
    /// GNU bash, from 5.0.
    Bash,
    /// zsh.
    Zsh,
}

/// `h5i changed-paths`, as git calls what `core.fsmonitor` names.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ChangedPathsArgs {
    /// The version of the hook's interface
    pub interface: u32,
    /// What the last answer began with
    #[arg(allow_hyphen_values = true)]
    pub token: Option<OsString>,
}
