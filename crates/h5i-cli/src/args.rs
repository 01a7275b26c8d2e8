//! The grammar of the command line. Parsing validates words and does nothing else: it opens no file
//! and asks nothing of the host.

mod apply;
mod approve;
mod box_verbs;
mod grant_verbs;
mod inside_verbs;
mod making;
mod policy_verbs;
mod receipt_verbs;
mod skill_verbs;
mod slips;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::failure::{Failure, Kind};

pub use apply::{ApplyArgs, Destination};
pub use approve::{ApproveArgs, ApproveWish};
pub use box_verbs::{
    BoxVerb, CreateArgs, DiffArgs, DiffForm, ExplainArgs, ExportArgs, ForwardArgs, GcArgs,
    ListArgs, LogArgs, ProbeArgs, RmArgs, RuleArgs, RunInArgs, SessionArgs, ShellArgs, StatusArgs,
};
pub use grant_verbs::{ExtendArgs, GrantArgs, GrantListArgs, GrantVerb};
pub use inside_verbs::{ChangedPathsArgs, HookArgs, HookShell, NoteArgs, ReportArgs};
pub use making::{After, ArtifactArgs, BaseArgs, LayoutArgs, LearnArgs, PolicyArgs, RunArgs};
pub use policy_verbs::{AcceptArgs, CheckArgs, PolicyDiffArgs, PolicyVerb, ProfileArgs, TrustArgs};
pub use receipt_verbs::{PurgeArgs, ReceiptListArgs, ReceiptVerb, ShowArgs, VerifyArgs};
pub use skill_verbs::{Agent, SkillInstallArgs, SkillShowArgs, SkillVerb};
pub use values::{
    Assignment, AssignmentError, Lane, ProfileName, Since, ValueError, WorkspaceChoice,
};

/// A disposable development environment for coding agents, inside one boundary.
///
/// A box has a copy of a repository, a private home and only what its policy grants. What it made
/// comes out as a patch, a report and a receipt, by a person's hand.
#[derive(Clone, Debug, Parser)]
#[command(name = "h5i", version, propagate_version = true, disable_help_subcommand = true)]
#[command(max_term_width = 100)]
pub struct Cli {
    /// Do as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Clone, Debug, Subcommand)]
#[non_exhaustive]
pub enum Verb {
    /// Run one command in a new box, and say what changed, ran and was refused
    ///
    /// The box is removed if the command succeeded and changed nothing; else it is kept for
    /// `h5i box export`. The exit code is the command's own; 124 for a spent deadline, 123 for
    /// another limit, 125 if h5i could not start it, 126 and 127 as shells have them, and 128 plus
    /// the signal's number.
    Run(RunArgs),
    /// Make, use, examine, export and remove boxes
    #[command(subcommand)]
    Box(BoxVerb),
    /// Show, check, compare, trust and extend policies
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// List, show, take back and extend the grants of a box: what it may ask of services
    #[command(subcommand)]
    Grant(GrantVerb),
    /// Check what was exported, and look after the receipts of removed boxes
    #[command(subcommand)]
    Receipt(ReceiptVerb),
    /// Tell agents how to work in a box: a skill for Claude Code, a section for AGENTS.md
    #[command(subcommand)]
    Skill(SkillVerb),
    /// Inside a box: put a remark on the box's record, as a claim of the box
    Note(NoteArgs),
    /// Inside a box: report a command that is over, to be compared with what the host saw
    ///
    /// What the box reported and the host did not see, or saw with another exit code, is a finding
    /// in the log and the report.
    ReportCommand(ReportArgs),
    /// Print the script that has a box's shell report its commands
    ///
    /// A box has them as /etc/h5i/hook.bash and /etc/h5i/hook.zsh, to be read by its ~/.bashrc or
    /// ~/.zshrc; with env.set.BASH_ENV = "/etc/h5i/hook.bash" in the policy every `bash -c` reports.
    Hook(HookArgs),
    /// Inside a box: tell git which files of a large workspace to look at
    #[command(hide = true)]
    ChangedPaths(ChangedPathsArgs),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// How a verb answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Output {
    /// Answer with one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

impl Cli {
    /// Parses a command line, the program's name first.
    ///
    /// # Errors
    /// clap's error, which is also how `--help` and `--version` end.
    pub fn of(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().collect();
        RunAlone::parse(&words).map_or_else(|| Self::try_parse_from(words), Ok)
    }

    /// The script that completes h5i's command line in a shell.
    #[must_use]
    pub fn completions(shell: Shell) -> Vec<u8> {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Self::command(), "h5i", &mut script);
        script
    }
}

/// `h5i box run …` by itself: the verb that is called for every command of an agent. Building the
/// grammar of all verbs takes longer than the kernel needs for a mount namespace.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
struct RunAlone {
    #[command(flatten)]
    args: RunInArgs,
}

impl RunAlone {
    /// `None` for every other verb, and for what is wrong: the whole grammar says what.
    fn parse(words: &[OsString]) -> Option<Cli> {
        let (name, rest) = words.split_first()?;
        let (directory, rest) = match rest {
            [option, directory, rest @ ..] if option == "-C" => (Some(directory.into()), rest),
            rest => (None, rest),
        };
        let rest = match rest {
            [first, second, rest @ ..] if first == "box" && second == "run" => rest,
            _ => return None,
        };
        let Self { args } = Self::try_parse_from([name].into_iter().chain(rest)).ok()?;
        Some(Cli { directory, verb: Verb::Box(BoxVerb::Run(args)) })
    }
}

/// Whether a command line that can't be parsed asked for JSON: `--json` before any `--`.
#[must_use]
pub fn asks_for_json(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// What is told of a slip that is known, instead of the grammar's own words.
#[must_use]
pub fn slip(words: &[OsString], error: &clap::Error) -> Option<Failure> {
    slips::slip(words, error)
}

/// What a command line that can't be parsed is told, as any other failure.
#[must_use]
pub fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("cannot read the command line");
    let message = first.strip_prefix("error: ").unwrap_or(first).trim_end_matches(':');
    let listed: Vec<&str> = lines
        .by_ref()
        .take_while(|line| !line.trim_start().starts_with("Usage:"))
        .map(str::trim)
        // The hint says it.
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    let (tips, listed): (Vec<&str>, Vec<&str>) =
        listed.into_iter().partition(|line| line.starts_with("tip: "));
    let mut message = message.to_owned();
    if !listed.is_empty() {
        message.push_str(": ");
        message.push_str(&listed.join("; "));
    }
    let mut hint = "h5i --help, or --help after any verb".to_owned();
    for tip in tips.iter().filter_map(|line| line.strip_prefix("tip: ")) {
        hint.push_str("; ");
        hint.push_str(tip);
    }
    Failure::told(Kind::Usage, message).hint(hint)
}
