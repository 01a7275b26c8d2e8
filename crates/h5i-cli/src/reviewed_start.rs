//! A box that starts from the reviewed tree of a bundle.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use git2::Repository;
use h5i_export::{Digest, Landing, Verified, verify_bundle};
use h5i_policy::History;

use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::origin::Origin;
use crate::path_error::{Action, PathError};
use crate::store::{BoxName, Manifest, ObjectsLease, ParentBundle, random_hex, remove_tree};
use crate::verbs::{land_failure, mismatch};
use crate::workspace::{BaseSpec, DiscoverError, HostRepository, PinnedBase, write_commit_of};

/// A repository of h5i's own with one commit more than the base of the bundle's box: the reviewed
/// tree. The new box is made from it as from a repository of the host; then it goes.
///
/// Nothing of the old box is read but its log and its manifest, which are the host's.
#[derive(Debug)]
pub(crate) struct ReviewedStart {
    dir: Removed,
    home: Option<HostRepository>,
    parent: ParentBundle,
    bundle: Digest,
    host_commit: Option<String>,
    /// Held against the collection of objects.
    _lease: ObjectsLease,
}

/// A directory that goes with its owner.
#[derive(Debug)]
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // What can't be removed now is collected by gc.
        remove_tree(&self.0).ok();
    }
}

impl ReviewedStart {
    /// Prepares the start from a bundle; none for every other base.
    ///
    /// # Errors
    /// As for applying the bundle: `corrupt` when it is not whole, `refused` when the log of its box
    /// does not know it, `busy` while its box runs.
    pub(crate) fn of(caller: &Caller, spec: &BaseSpec) -> Result<Option<Self>, Failure> {
        let BaseSpec::Bundle(bundle) = spec else { return Ok(None) };
        let directory = caller.directory.join(bundle);
        let verified =
            verify_bundle(&directory, &caller.scratch(), None).map_err(|e| mismatch(&e))?;
        let name = BoxName::new(&verified.index.name)?;
        let origin = Origin::find(caller, &name, &verified)?;
        let home = match caller.repository() {
            Ok(repository) => Some(repository),
            Err(DiscoverError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let lease = caller.store.lease_objects()?;
        let dir = Removed(caller.store.objects_dir().join(format!(".{}.new", random_hex(8)?)));
        fill(caller, &dir.0, &origin, home.as_ref(), &verified)?;
        let manifest = origin.manifest();
        let parent = ParentBundle {
            name: manifest.name.clone(),
            id: manifest.id.clone(),
            bundle: verified.bundle.to_string(),
        };
        let host_commit = manifest.base.host_commit.clone();
        let bundle = verified.bundle;
        Ok(Some(Self { dir, home, parent, bundle, host_commit, _lease: lease }))
    }

    /// The repository to start from.
    ///
    /// # Errors
    /// [`DiscoverError`].
    pub(crate) fn open(&self) -> Result<HostRepository, DiscoverError> {
        HostRepository::open(&self.dir.0)
    }

    /// The repository that the new box belongs to, if it belongs to one.
    pub(crate) fn home(&self) -> Option<&HostRepository> {
        self.home.as_ref()
    }

    /// The digest of the bundle, as it was read for the start.
    pub(crate) fn bundle(&self) -> Digest {
        self.bundle
    }

    /// Says where the base comes from.
    pub(crate) fn describe(&self, base: &mut PinnedBase) {
        let digest = self.parent.bundle.strip_prefix("sha256:").unwrap_or(&self.parent.bundle);
        let short = digest.get(..7).unwrap_or(digest);
        base.described = format!("bundle {short} of box {}", self.parent.name);
    }

    /// Refuses to borrow objects of a repository that is about to go.
    ///
    /// # Errors
    /// `refused`.
    pub(crate) fn check_history(&self, history: History) -> Result<(), Failure> {
        if history != History::Borrow {
            return Ok(());
        }
        let message = "a bundle's tree is in no repository that a box could borrow from";
        Err(Failure::told(Kind::Refused, message).hint("--set history=\"full\""))
    }

    /// Names the parent.
    pub(crate) fn name_parent(self, manifest: &mut Manifest) {
        manifest.base.host_commit.clone_from(&self.host_commit);
        manifest.parent = Some(self.parent.clone());
    }
}

/// Makes the repository: the base's objects as alternates, the reviewed tree, one commit.
fn fill(
    caller: &Caller,
    dir: &Path,
    origin: &Origin,
    home: Option<&HostRepository>,
    verified: &Verified,
) -> Result<(), Failure> {
    let failed = |e: git2::Error| Failure::new(Kind::Io, &e);
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(dir)
        .map_err(PathError::at(Action::CreateDirectory, dir))?;
    let manifest = origin.manifest();
    let own = Repository::init_bare(dir).map_err(failed)?;
    let host =
        home.map(|home| Repository::open_bare(home.git_dir())).transpose().map_err(failed)?;
    let base = origin.base(&caller.store, host.as_ref())?;
    let path = base.objects.to_str().ok_or_else(|| {
        Failure::told(Kind::Unavailable, "the path of the base's objects is not UTF-8")
    })?;
    own.odb().and_then(|odb| odb.add_disk_alternate(path)).map_err(failed)?;
    let alternates = dir.join("objects/info/alternates");
    std::fs::create_dir_all(dir.join("objects/info"))
        .and_then(|()| std::fs::write(&alternates, format!("{path}\n")))
        .map_err(PathError::at(Action::Write, &alternates))?;
    // Where the base's history ends, this one's does too.
    if let Some(shallow) = base.objects.parent().map(|above| above.join("shallow"))
        && shallow.try_exists().map_err(PathError::at(Action::Inspect, &shallow))?
    {
        std::fs::copy(&shallow, dir.join("shallow"))
            .map_err(PathError::at(Action::Read, &shallow))?;
    }
    let landing =
        Landing::new(verified, &base, &own, &caller.store.objects_dir()).map_err(land_failure)?;
    let tree = landing.deposit(&own).map_err(land_failure)?;
    let commit = git2::Oid::from_str(&manifest.base.commit).map_err(failed)?;
    // Without the base's commit the tree stands alone.
    let before = own.find_commit(commit).ok();
    let time = before.as_ref().map_or(0, |commit| commit.time().seconds());
    let odb = own.odb().map_err(failed)?;
    let subject = format!("Box {}, as reviewed", manifest.name);
    let tip = write_commit_of(&odb, tree, before.as_ref().map(git2::Commit::id), time, &subject)
        .map_err(failed)?;
    let branch = format!("refs/heads/{}", manifest.base.branch);
    own.set_head(&branch).map_err(failed)?;
    own.reference(&branch, tip, true, "bundle").map_err(failed)?;
    Ok(())
}
