//! What a box is, written once at its creation.

use std::fmt;

use h5i_policy::{History, PolicyDigest, Tier};
use serde::{Deserialize, Serialize};

use super::box_name::BoxName;
use super::host_id::HostId;
use super::objects::ObjectsKey;
use super::trees::LayerName;
use super::unique::random_hex;
use crate::path_error::PathError;
use crate::timestamp::Timestamp;

/// A box's identity: 16 random hexadecimal digits. Two boxes of one name, one after the other, have
/// different ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BoxId(String);

impl BoxId {
    /// A new identity.
    ///
    /// # Errors
    /// [`PathError`] if the kernel's random source can't be read.
    pub fn random() -> Result<Self, PathError> {
        random_hex(8).map(Self)
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `host/manifest.json`: what the box is, frozen at create.
///
/// Unknown fields are refused, so that a manifest of a later h5i is not half understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Format version; [`Manifest::VERSION`].
    pub v: u32,
    /// The box's identity.
    pub id: BoxId,
    /// The box's name at creation.
    pub name: BoxName,
    /// When it was created.
    pub created: Timestamp,
    /// When `gc` may remove it.
    pub expires: Option<Timestamp>,
    /// The pinned base.
    pub base: BaseRecord,
    /// What stands between the box and the host.
    pub tier: Tier,
    /// The profile's name in the policy document.
    pub profile: String,
    /// What the person said the box is for.
    pub purpose: Option<String>,
    /// Digest of the resolved policy.
    pub policy_digest: PolicyDigest,
    /// How the workspace is laid out.
    pub workspace: WorkspaceKind,
    /// Why it is laid out that way.
    pub workspace_reason: String,
    /// The lower layers of an overlay, the one that hides the others first; none otherwise.
    pub layers: Vec<LayerName>,
    /// How much of the past the box received.
    pub history: History,
    /// Keys of the object directories that the box's git directory borrows, in order.
    pub objects: Vec<ObjectsKey>,
    /// The steps of the plan at creation, one line each.
    pub plan: Vec<String>,
    /// The bundle that the box started from, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentBundle>,
    /// The artifact that the box was made for by a person's approval, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ApprovedArtifact>,
    /// The host id that the box's processes have; only where root made the box.
    pub host_id: Option<HostId>,
}

/// The base of a box as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRecord {
    /// The commit that the box starts on; of h5i's own making where the base is a working tree,
    /// has hidden paths, or comes without history.
    pub commit: String,
    /// The tree that the workspace was made from, and that an export is compared with.
    pub tree: String,
    /// The host repository's commit that it stands for; none for an empty box.
    pub host_commit: Option<String>,
    /// The branch in the box.
    pub branch: String,
    /// What the person asked for, in words: `HEAD (main)`, `v1.2`, `working tree on main`.
    pub described: String,
}

/// The bundle whose reviewed tree a box started from, and the box that it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentBundle {
    /// The name of the box it came from.
    pub name: BoxName,
    /// That box's identity.
    pub id: BoxId,
    /// The digest of the bundle, `sha256:…`.
    pub bundle: String,
}

/// What a box holds by a person's approval, and on which terms it has its grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedArtifact {
    /// The digest of the bundle that was approved, `sha256:…`.
    pub bundle: String,
    /// The approval's id; it was spent for this box.
    pub approval: String,
    /// When the box's grants end, whatever they say themselves.
    pub until: Timestamp,
}

/// How a workspace is laid out on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WorkspaceKind {
    /// A real directory, `box/work`.
    Checkout,
    /// Layers that are shared below, and the box's own part, `box/overlay`, above.
    Overlay,
}

impl WorkspaceKind {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checkout => "checkout",
            Self::Overlay => "overlay",
        }
    }
}

/// Why a manifest can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It is not the JSON of a manifest.
    #[error("cannot read the box's manifest")]
    Malformed(#[source] serde_json::Error),
    /// Its version is not one that this h5i reads.
    #[error("the box's manifest has version {found}, this h5i reads {}", Manifest::VERSION)]
    Version {
        /// The version it has.
        found: u32,
    },
}

impl Manifest {
    /// The version that this h5i writes and reads.
    pub const VERSION: u32 = 1;

    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ManifestError::Version`] for one of another version, [`ManifestError::Malformed`] for
    /// anything else that is not a manifest.
    pub fn parse(json: &[u8]) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct VersionOnly {
            v: u32,
        }
        let VersionOnly { v } = serde_json::from_slice(json).map_err(ManifestError::Malformed)?;
        if v != Self::VERSION {
            return Err(ManifestError::Version { found: v });
        }
        serde_json::from_slice(json).map_err(ManifestError::Malformed)
    }

    /// The bytes as they stand on disk; their digest is where the box's log begins.
    ///
    /// # Errors
    /// [`ManifestError::Malformed`] never happens for a value of this type in practice; it carries
    /// what the serializer said.
    pub fn to_json(&self) -> Result<Vec<u8>, ManifestError> {
        let mut json = serde_json::to_vec_pretty(self).map_err(ManifestError::Malformed)?;
        json.push(b'\n');
        Ok(json)
    }
}
