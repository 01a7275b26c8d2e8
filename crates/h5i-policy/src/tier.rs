//! What stands between a box and the host.

use std::fmt;

use serde::{Deserialize, Serialize};

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

    /// The name as it is written in a policy document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Process => "process",
            Self::Supervised => "supervised",
            Self::Container => "container",
            Self::Microvm => "microvm",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
