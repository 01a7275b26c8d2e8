//! From a box's tree to a reviewed patch.

mod attention;
mod binary;
mod compare;
pub(crate) mod links;
mod machine_code;
pub(crate) mod patch;
mod refusal;
mod reviewed;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use h5i_policy::ExportPolicy;

pub use attention::{Attention, When, attention_of};
pub use machine_code::{MachineCode, machine_code};
pub use patch::{Change, ChangeKind, Renames};
pub use refusal::{Refusal, RefusalRule};
pub use reviewed::{Flag, FlagKind, LeftBehind, Reviewed};

use crate::apply::PatchError;
use crate::secret::PlantedValues;
use crate::store::{Base, Store, StoreError};
use crate::tree::{ReadLimits, TreeError, TreeSource};

/// What is done about secrets of known shapes in changed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Secrets {
    /// The export is refused.
    Refuse,
    /// They are flagged; a person asked for that.
    Flag,
}

/// What is done about what its own mode keeps from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closed {
    /// The export is refused, and names it.
    Refuse,
    /// It is left out and noted as [`LeftBehind::Closed`]: for looking at the rest, where nothing
    /// leaves. What the base has there counts as unchanged.
    LeaveOut,
}

/// One export: the pinned base and what may leave.
///
/// `Export::new(base, policy, scratch)?.read(tree)?.review()?` gives a [`Reviewed`].
pub struct Export<'a> {
    base: Base,
    policy: ExportPolicy,
    scratch: PathBuf,
    hidden: &'a dyn Fn(&[u8]) -> bool,
    binaries: &'a dyn Fn(&[u8]) -> bool,
    secrets: Secrets,
    planted: Option<&'a PlantedValues>,
    closed: Closed,
    limits: ReadLimits,
}

/// A box's tree as it was read: objects in the quarantine and the edits that lead to them. Nothing
/// of the box is read after this.
pub struct Proposal<'a> {
    export: Export<'a>,
    store: Store,
    compared: compare::Compared,
}

/// Why there is no reviewed patch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// The tree can't be read to its end.
    #[error("can't read the box's tree")]
    Tree(#[from] TreeError),
    /// The base's objects can't be used.
    #[error("can't use the objects of the base")]
    Store(#[from] StoreError),
    /// Something in the tree may not leave the box.
    #[error(
        "{} of the box's changes may not leave it, the first: {}",
        number(refusals),
        first(refusals)
    )]
    Refused {
        /// What and why, sorted by path; at most [`Refusal::MAX`].
        refusals: Vec<Refusal>,
    },
    /// There are more changes than the policy allows.
    #[error("{found} changed files, the policy allows {limit}")]
    TooManyFiles {
        /// How many there are, at least.
        found: u64,
        /// How many may be.
        limit: u32,
    },
    /// The changed files are larger together than the policy allows.
    #[error("the changed files have {found} bytes together, the policy allows {limit}")]
    TooManyBytes {
        /// How many there are, at least.
        found: u64,
        /// How many may be.
        limit: u64,
    },
    /// The patch, applied to the base, gives another tree than the reviewed one.
    #[error("the patch gives tree {applied}, not the reviewed tree {reviewed}")]
    PatchDiffers {
        /// The tree that was reviewed.
        reviewed: git2::Oid,
        /// The tree that the patch gives.
        applied: git2::Oid,
    },
    /// The patch does not apply to the base.
    #[error("the patch does not apply to the base")]
    PatchFails(#[source] PatchError),
}

/// How many there are; beyond [`Refusal::MAX`] they are not counted.
fn number(refusals: &[Refusal]) -> String {
    match refusals.len() {
        Refusal::MAX => format!("{} or more", Refusal::MAX),
        count => count.to_string(),
    }
}

fn first(refusals: &[Refusal]) -> String {
    refusals.first().map(ToString::to_string).unwrap_or_default()
}

impl std::fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export")
            .field("base", &self.base)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Proposal<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proposal").field("export", &self.export).finish_non_exhaustive()
    }
}

impl<'a> Export<'a> {
    /// An export against `base`. `scratch` is a directory of the host for a temporary object
    /// directory; the box can't see it. Nothing is hidden, no machine code may leave, secrets are
    /// refused.
    #[must_use]
    pub fn new(base: Base, policy: ExportPolicy, scratch: &Path) -> Self {
        Self {
            base,
            policy,
            scratch: scratch.to_owned(),
            hidden: &|_| false,
            binaries: &|_| false,
            secrets: Secrets::Refuse,
            planted: None,
            closed: Closed::Refuse,
            limits: ReadLimits::default(),
        }
    }

    /// Says which paths are hidden (`fs.hide`). It is asked for every file and directory; what is
    /// below a hidden directory is hidden with it. A hidden path of the base counts as unchanged
    /// when it is absent and is refused when it is there; a hidden path that the base does not have
    /// stays in the box.
    #[must_use]
    pub fn hidden(mut self, hidden: &'a dyn Fn(&[u8]) -> bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Says which paths may hold machine code (`export.binaries`).
    #[must_use]
    pub fn binaries(mut self, binaries: &'a dyn Fn(&[u8]) -> bool) -> Self {
        self.binaries = binaries;
        self
    }

    /// Says what is done about secrets.
    #[must_use]
    pub const fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Says which values were planted in the box: they count as secrets.
    #[must_use]
    pub const fn planted(mut self, planted: &'a PlantedValues) -> Self {
        self.planted = Some(planted);
        self
    }

    /// Says what is done about what can't be read.
    #[must_use]
    pub const fn closed(mut self, closed: Closed) -> Self {
        self.closed = closed;
        self
    }

    /// Bounds the reading.
    #[must_use]
    pub const fn limits(mut self, limits: ReadLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads the box's tree, once, and keeps what differs from the base.
    ///
    /// # Errors
    /// [`ReviewError::Tree`], [`ReviewError::Store`], or a bound of the policy. What may not leave
    /// is collected and refused by [`Proposal::review`], so that it can all be named.
    pub fn read(self, tree: TreeSource) -> Result<Proposal<'a>, ReviewError> {
        let store = Store::open(&self.base, &self.scratch)?;
        let compared = compare::compare(&self, &store, tree)?;
        Ok(Proposal { export: self, store, compared })
    }
}
