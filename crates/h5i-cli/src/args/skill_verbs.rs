//! `h5i skill …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Output;

/// The verbs of the skill.
#[derive(Clone, Debug, Subcommand)]
#[non_exhaustive]
pub enum SkillVerb {
    /// Write it where an agent finds it
    ///
    /// For Claude Code .claude/skills/h5i/SKILL.md, for Codex a section of AGENTS.md. What is there
    /// with other content is left as it is, and said.
    Install(SkillInstallArgs),
    /// Print it
    Show(SkillShowArgs),
}

/// An agent, by how it reads what it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Agent {
    /// Claude Code
    #[default]
    Claude,
    /// Codex, and others that read AGENTS.md
    Codex,
}

/// `h5i skill install`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SkillInstallArgs {
    /// For which agent
    #[arg(long, value_name = "AGENT", value_enum, default_value_t)]
    pub agent: Agent,
    /// Below which directory, such as a repository's or your home [default: this one]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Replace a skill with other content; of AGENTS.md only h5i's section changes
    #[arg(long)]
    pub force: bool,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}

/// `h5i skill show`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SkillShowArgs {
    /// For which agent
    #[arg(long, value_name = "AGENT", value_enum, default_value_t)]
    pub agent: Agent,
    /// How to answer.
    #[command(flatten)]
    pub output: Output,
}
