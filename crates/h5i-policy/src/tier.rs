//! What stands between a box and the host.

use serde::{Deserialize, Serialize};

use crate::word::words;

/// What stands between a box and the host, weakest first.
///
/// The order is the strength of the boundary: `Tier::Workspace < Tier::Process`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tier {
    /// A tree and a git directory of its own; no confinement at all.
    Workspace,
    /// Namespaces, private root, Landlock, seccomp and limits on the host's kernel.
    Process,
    /// `Process`, and a private network whose doors the host holds and records.
    Supervised,
    /// An OCI container run by a rootless engine.
    Container,
    /// A virtual machine with a kernel of its own.
    Microvm,
}

impl Tier {
    /// Every tier, weakest first.
    pub const ALL: [Self; 5] =
        [Self::Workspace, Self::Process, Self::Supervised, Self::Container, Self::Microvm];
}

words!(Tier {
    Workspace => "workspace",
    Process => "process",
    Supervised => "supervised",
    Container => "container",
    Microvm => "microvm",
});
