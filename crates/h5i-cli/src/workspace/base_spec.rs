//! What a person asks for as the base of a box.

use std::path::PathBuf;

/// What a person asks for as the base of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BaseSpec {
    /// The commit that `HEAD` names.
    Head,
    /// `--base REV`: a branch, a tag, a commit, or any expression that Git takes.
    Revision(String),
    /// `--dirty`: the working tree as it is, ignored files left out, on top of `HEAD`.
    WorkingTree,
    /// `--clone PATH`: another repository of this host, which the box does not belong to.
    Clone(PathBuf),
    /// `--from-bundle DIR`: the reviewed tree of a bundle.
    Bundle(PathBuf),
    /// `--empty`: nothing.
    Empty,
}
