//! A box that is made for one approved bundle.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use h5i_broker::{Issue, Uses};
use h5i_export::Digest;
use h5i_policy::{History, ResolvedPolicy};

use crate::approvals::{Approvals, sync};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::reviewed_start::ReviewedStart;
use crate::store::{ApprovedArtifact, BoxName, Manifest, StoredBox};
use crate::timestamp::Timestamp;

/// The header in which a service is told for which artifact it is asked.
pub(crate) const HEADER: &str = "x-h5i-artifact";
/// The variable in which the box is.
const VARIABLE: &str = "H5I_ARTIFACT_DIGEST";
/// In a box's host directory, once a run was given its grants.
const GIVEN: &str = "approval-given";

/// What a box is to be made of, and by which approval.
#[derive(Clone, Copy, Debug)]
pub struct Artifact<'a> {
    /// The bundle's directory.
    pub bundle: &'a Path,
    /// The approval's id.
    pub approval: &'a str,
}

/// An approval that holds for the bundle that a box starts from.
#[derive(Debug)]
pub(crate) struct ApprovedStart {
    id: String,
    bundle: Digest,
    until: Timestamp,
}

impl ApprovedStart {
    /// Checks an approval against the bundle as it was read and verified; nothing is spent yet.
    ///
    /// # Errors
    /// `refused` inside a box, or unless the approval is of exactly this bundle, not over and not
    /// used; `not-found` without such an approval, `corrupt` when the list is damaged.
    pub(crate) fn check(
        caller: &Caller,
        id: &str,
        reviewed: &ReviewedStart,
    ) -> Result<Self, Failure> {
        let list = Approvals::read(caller.store.root())?;
        let approval = list.of(id)?;
        approval.check(&reviewed.bundle(), Timestamp::now())?;
        Ok(Self { id: approval.id.clone(), bundle: approval.bundle, until: approval.until })
    }

    /// Refuses a policy by which the box would hold more than the artifact, or have nothing to use
    /// the approval for.
    ///
    /// # Errors
    /// `refused`.
    pub(crate) fn check_policy(&self, policy: &ResolvedPolicy) -> Result<(), Failure> {
        let refused = |message: &str, hint: &str| {
            Err(Failure::told(Kind::Refused, message).hint(hint.to_owned()))
        };
        if policy.grants.is_empty() {
            let message = "the profile has no grant that an approval could hold for";
            return refused(
                message,
                "--profile deploy, with [profile.deploy.grant.NAME] in your policy",
            );
        }
        if policy.history != History::None {
            let message = "a box for an approved artifact holds nothing beside it, so no history";
            return refused(message, "--profile deploy, or --set history=\"none\"");
        }
        Ok(())
    }

    /// Spends the approval for a box that is whole but for its name.
    ///
    /// # Errors
    /// `refused` when somebody else was first, or it ended meanwhile.
    pub(crate) fn spend(&self, caller: &Caller, by: &BoxName) -> Result<(), Failure> {
        Approvals::spend(caller.store.root(), &self.id, &self.bundle, by)
    }

    /// Names the artifact.
    pub(crate) fn name_in(&self, manifest: &mut Manifest) {
        manifest.artifact = Some(ApprovedArtifact {
            bundle: self.bundle.to_string(),
            approval: self.id.clone(),
            until: self.until,
        });
    }
}

/// The terms of a box's grants, where it was made by an approval.
#[derive(Debug)]
pub(crate) struct Terms {
    artifact: ApprovedArtifact,
    host_dir: PathBuf,
}

impl Terms {
    /// None for every other box.
    pub(crate) fn of(stored: &StoredBox, manifest: &Manifest) -> Option<Self> {
        let artifact = manifest.artifact.clone()?;
        Some(Self { artifact, host_dir: stored.host_dir() })
    }

    /// The artifact's digest, `sha256:…`.
    pub(crate) fn bundle(&self) -> &str {
        &self.artifact.bundle
    }

    /// What a run is told.
    pub(crate) fn variable(&self) -> (String, String) {
        (VARIABLE.to_owned(), self.artifact.bundle.clone())
    }

    /// What the first run of the box is issued, which is one use before the approval's end; none for
    /// every later one, in another session too.
    ///
    /// # Errors
    /// An I/O failure; nothing is issued then.
    pub(crate) fn issue(&self, run: u64) -> Result<Option<Issue>, Failure> {
        let path = self.host_dir.join(GIVEN);
        // Before it is issued: a crash between the two costs an approval, and gives no second use.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_mark) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(None),
            Err(e) => return Err(PathError::at(Action::Create, &path)(e).into()),
        }
        sync(&self.host_dir)?;
        let mut issue = Issue::to(run);
        issue.uses = Uses::Once;
        let until = Duration::from_millis(self.artifact.until.millis());
        issue.not_after = UNIX_EPOCH.checked_add(until);
        Ok(Some(issue))
    }
}
