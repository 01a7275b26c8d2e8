//! Whose configuration a box gets from the person's home.

use serde::{Deserialize, Serialize};

/// A tool whose configuration is copied into a box's home when it is made, without what looks like a
/// credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Seed {
    /// Cargo.
    Cargo,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Git.
    Git,
    /// npm.
    Npm,
    /// pip.
    Pip,
}
crate::word::words!(Seed {
    Cargo => "cargo",
    Claude => "claude",
    Codex => "codex",
    Git => "git",
    Npm => "npm",
    Pip => "pip",
});
