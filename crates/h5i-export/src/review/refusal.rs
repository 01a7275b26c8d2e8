//! What may not leave a box, and why.

use crate::escape::Escaped;
use crate::path::{NameClash, PathRule};
use crate::tree::Special;

use super::MachineCode;

/// One path that may not leave the box.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {rule}", Escaped::new(path))]
#[non_exhaustive]
pub struct Refusal {
    /// The path, relative to the root.
    pub path: Vec<u8>,
    /// Why.
    pub rule: RefusalRule,
}

impl Refusal {
    /// The most refusals that are collected; further ones are left out.
    pub const MAX: usize = 100;
}

/// The rule that a refused path breaks; its Display says why and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalRule {
    /// The name itself.
    #[error("{0}; rename it")]
    Path(PathRule),
    /// Two names that some file systems take for one.
    #[error("{0}; rename one")]
    Clash(NameClash),
    /// A git directory inside the tree.
    #[error(
        "it is a repository inside the tree; remove its `.git` or add its path to .gitignore of the base"
    )]
    NestedRepository,
    /// It is no file, directory or link.
    #[error("it is {}; remove it", .0.name())]
    Special(Special),
    /// A submodule of the base was replaced or moved to another commit.
    #[error("it is a submodule of the base and was replaced; put an empty directory there")]
    Submodule,
    /// A file has names outside of what is exported, so that its content may be something else's.
    #[error(
        "the file has {links} names, {found} of them in what is exported; replace it by a copy"
    )]
    LinkedElsewhere {
        /// How many names it has.
        links: u64,
        /// How many of them were found.
        found: u64,
    },
    /// It has a set-user-id, set-group-id or sticky bit.
    #[error("it has mode {mode:04o}; take the set-id and sticky bits away")]
    SetId {
        /// The permission bits.
        mode: u32,
    },
    /// It is larger than the policy allows.
    #[error("it has {bytes} bytes, the policy allows {limit}")]
    TooLarge {
        /// How many it has.
        bytes: u64,
        /// How many it may have.
        limit: u64,
    },
    /// It changed while it was read.
    #[error("it changed while it was read; stop what writes to it")]
    Unsteady,
    /// Its mode keeps everybody but a superuser from reading it.
    #[error("its mode keeps even its owner from reading it; give that right back: chmod u+rwx")]
    Closed,
    /// The policy hides it.
    #[error("the policy hides it; what the base has there can't be changed from the box")]
    Hidden,
    /// A link that leads out of the tree, or is absolute.
    #[error("the link leads to `{}`, which is outside of the tree", Escaped::new(target))]
    LinkEscapes {
        /// The link's target.
        target: Vec<u8>,
    },
    /// A link in the place of a file that git reads rules from.
    #[error("git reads rules from a file of that name; a link may not stand there")]
    LinkedRules,
    /// It has machine code, or may have.
    #[error("it is {}; name it in export.binaries if it shall leave", .0.name())]
    MachineCode(MachineCode),
    /// It became executable and the policy refuses that.
    #[error("it became executable, which the policy refuses")]
    Executable,
    /// It holds a secret of a known shape.
    #[error(
        "line {line} holds what looks like a {shape}; remove it, or allow secrets for this export"
    )]
    Secret {
        /// What it looks like.
        shape: &'static str,
        /// The line, from 1.
        line: usize,
    },
}
