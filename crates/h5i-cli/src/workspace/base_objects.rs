//! What a box receives of a repository's objects.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository};
use h5i_policy::History;
use sha2::{Digest, Sha256};

use super::ancestor::ancestor;
use super::boundary::boundary;
use super::host_git::{HostGit, PackError};
use super::host_repository::{HostRepository, Partial};
use super::pinned_base::{BaseKind, PinnedBase};
use super::staging::{Past, Staging};
use super::tree_writer::{TreeBytes, write_commit};
use super::visible_tree::{HiddenPaths, visible_tree};
use super::working_tree::{WorkingTreeError, working_tree};
use crate::path_error::{Action, PathError};
use crate::store::{BoxDraft, ObjectsKey, ObjectsKeyError, Store};

/// The base of a box as objects: a bare repository of h5i's own, `objects/<key>/`, whose `objects/`
/// the box's git directory borrows.
///
/// It holds packs of exactly what is reachable from its `HEAD` (with [`History::Borrow`] none; it
/// then names the host's objects as alternates). Packs of an ancestor are files that both have. It is complete when it is there, and never
/// written again: boxes of the same base share it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BaseObjects {
    /// Its name below `objects/`.
    pub key: ObjectsKey,
    /// Where it stands.
    pub path: PathBuf,
    /// The commit that the box starts on.
    pub tip: Oid,
    /// That commit's tree.
    pub tree: Oid,
    /// Whether it was made now or was there.
    pub making: Making,
    /// Object directories of the host that are borrowed whole, alternates of alternates too; only
    /// with [`History::Borrow`].
    pub borrowed: Vec<PathBuf>,
}

/// Whether base objects were made now or were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Making {
    /// Made now.
    Made,
    /// An earlier box of the same base had made them.
    Found,
}

/// What is asked of the base objects.
pub struct ObjectsRequest<'a> {
    /// How much of the past goes in.
    pub history: History,
    /// Which paths do not; `None` if the policy hides nothing. Hiding implies no history.
    pub hidden: Option<HiddenPaths<'a>>,
}

/// Why base objects could not be made; nothing is left of them then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectsError {
    /// A base that is not empty needs the host's repository.
    #[error("this base needs a repository")]
    NoRepository,
    /// A partial clone lacks objects that the base needs.
    #[error("the repository is a partial clone and lacks objects of the base")]
    PartialClone(#[source] PackError),
    /// With hidden paths the host's objects can't be borrowed: they hold what is hidden.
    #[error("history \"borrow\" would bring in the paths that the policy hides")]
    BorrowHidden,
    /// The host's `git` did not make the pack.
    #[error("cannot pack the base")]
    Pack(#[source] PackError),
    /// The working tree could not be taken.
    #[error(transparent)]
    WorkingTree(#[from] WorkingTreeError),
    /// An object can't be read or written.
    #[error("cannot prepare the objects of the base")]
    Git(#[from] git2::Error),
    /// The name made for the objects is none; never for SHA-1 names.
    #[error(transparent)]
    Key(#[from] ObjectsKeyError),
    /// A file can't be written.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// 2000-01-01 00:00:00 UTC: the date of commits that h5i makes of a tree alone.
pub(super) const FIXED_TIME: i64 = 946_684_800;

impl BaseObjects {
    /// Makes the base's objects, or finds those of an earlier box.
    ///
    /// The draft's lease keeps them from being collected meanwhile; if the draft is dropped, what
    /// was made for it goes with it. The host's repository is only read.
    ///
    /// # Errors
    /// [`ObjectsError`]; nothing is left behind.
    pub fn make(
        draft: &mut BoxDraft,
        host: Option<&HostRepository>,
        base: &PinnedBase,
        request: &ObjectsRequest<'_>,
        git: &HostGit,
    ) -> Result<Self, ObjectsError> {
        let store = draft.store().clone();
        if request.hidden.is_some() && request.history == History::Borrow {
            return Err(ObjectsError::BorrowHidden);
        }
        if let Some(found) = Self::find(&store, host, base, request)? {
            return Ok(found);
        }
        let staging = Staging::begin(&store)?;
        let (tip, tree) = tip_of(&staging, host, base, request)?;
        staging.borrow_from(host)?;
        let past = past_of(&staging.open()?, tip, host, request)?;
        let key = key(tip, &past)?;
        let path = store.objects_path(&key);
        let borrowed = match (&past, host) {
            (Past::Borrowed, Some(host)) => host_object_dirs(&host.objects_dir())?,
            _ => Vec::new(),
        };
        let borrowed_dirs = borrowed.clone();
        let found = |making| Self { key, path: path.clone(), tip, tree, making, borrowed };
        if path.try_exists().map_err(PathError::at(Action::Inspect, &path))? {
            return Ok(found(Making::Found));
        }
        if !borrowed_dirs.is_empty() {
            staging.borrow_all(&borrowed_dirs)?;
        }
        let ancestor = match &past {
            Past::Reachable(ends) if ends.is_empty() => ancestor(&store, &staging.open()?, tip)?,
            _ => None,
        };
        let packed = staging.finish((tip, &past), ancestor.as_ref(), git);
        packed.map_err(|e| match e {
            ObjectsError::Pack(e @ PackError::Failed { .. })
                if host.is_some_and(|host| host.partial() == Partial::Promised) =>
            {
                ObjectsError::PartialClone(e)
            }
            other => other,
        })?;
        match fs::rename(staging.dir(), &path) {
            Ok(()) => {
                let made = found(Making::Made);
                draft.made_objects(made.key.clone());
                Ok(made)
            }
            // Another box of the same base was quicker; its objects are the same.
            Err(e) if is_taken(&e) => Ok(found(Making::Found)),
            Err(e) => Err(PathError::at(Action::Rename, &path)(e).into()),
        }
    }

    /// The objects of an earlier box, where what was asked for names them: a commit with all of its
    /// past, and nothing of it hidden.
    fn find(
        store: &Store,
        host: Option<&HostRepository>,
        base: &PinnedBase,
        request: &ObjectsRequest<'_>,
    ) -> Result<Option<Self>, ObjectsError> {
        let whole = host.is_some_and(|host| host.shallow().is_empty())
            && request.history == History::Full
            && request.hidden.is_none();
        let (BaseKind::Commit, Some(tip), Some(tree), true) =
            (base.kind, base.commit, base.tree, whole)
        else {
            return Ok(None);
        };
        let key = key(tip, &Past::Reachable(Vec::new()))?;
        let path = store.objects_path(&key);
        let there = path.try_exists().map_err(PathError::at(Action::Inspect, &path))?;
        let found = Self { key, path, tip, tree, making: Making::Found, borrowed: Vec::new() };
        Ok(there.then_some(found))
    }

    /// The object directories that the box's git directory borrows, first the one that holds the
    /// base. A list, because objects may one day be chained along ancestry.
    #[must_use]
    pub fn object_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = vec![self.path.join("objects")];
        dirs.extend(self.borrowed.iter().cloned());
        dirs
    }

    /// Opens the bare repository for reading; its configuration is h5i's own.
    ///
    /// # Errors
    /// What libgit2 says.
    pub fn open(&self) -> Result<Repository, git2::Error> {
        Repository::open_bare(&self.path)
    }
}

impl std::fmt::Debug for ObjectsRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectsRequest").field("history", &self.history).finish_non_exhaustive()
    }
}

fn past_of(
    repo: &Repository,
    tip: Oid,
    host: Option<&HostRepository>,
    request: &ObjectsRequest<'_>,
) -> Result<Past, ObjectsError> {
    let depth = match request.history {
        History::Borrow if host.is_some() => return Ok(Past::Borrowed),
        History::Depth(depth) => Some(depth),
        _ => None,
    };
    let nothing = BTreeSet::new();
    let shallow = host.map_or(&nothing, HostRepository::shallow);
    Ok(Past::Reachable(boundary(repo, tip, depth, shallow)?))
}

/// The name of the objects: the commit alone decides, unless the past is cut short.
fn key(tip: Oid, past: &Past) -> Result<ObjectsKey, ObjectsKeyError> {
    let text = match past {
        Past::Borrowed => format!("{tip}.borrow"),
        Past::Reachable(ends) if ends.is_empty() => tip.to_string(),
        Past::Reachable(ends) => {
            let mut digest = Sha256::new();
            for end in ends {
                digest.update(end.as_bytes());
            }
            let hex: String = digest.finalize()[..8].iter().map(|b| format!("{b:02x}")).collect();
            format!("{tip}.{hex}")
        }
    };
    ObjectsKey::try_from(text)
}

/// The commit the box starts on and its tree, written to the staging repository where they are not
/// the host's own.
fn tip_of(
    staging: &Staging,
    host: Option<&HostRepository>,
    base: &PinnedBase,
    request: &ObjectsRequest<'_>,
) -> Result<(Oid, Oid), ObjectsError> {
    let own = staging.open()?;
    let odb = own.odb()?;
    let (commit, mut tree) = match (base.kind, base.commit, base.tree) {
        (BaseKind::Empty, ..) => (None, TreeBytes::default().write(&odb)?),
        (_, Some(commit), Some(tree)) => (Some(commit), tree),
        _ => return Err(ObjectsError::NoRepository),
    };
    if base.kind == BaseKind::WorkingTree {
        let host = host.ok_or(ObjectsError::NoRepository)?;
        let workdir = host.workdir().ok_or(ObjectsError::NoRepository)?;
        tree = working_tree(host, workdir, staging.dir())?;
    }
    if let Some(hidden) = request.hidden {
        // Read where both the host's and the new objects are seen, written where only h5i's are.
        staging.borrow_from(host)?;
        let all = staging.open()?;
        let seen = visible_tree(&all, &odb, tree, hidden)?;
        return Ok((write_commit(&odb, seen, None, FIXED_TIME)?, seen));
    }
    match (request.history, base.kind, commit) {
        (History::None, ..) | (_, BaseKind::Empty, _) | (_, _, None) => {
            Ok((write_commit(&odb, tree, None, FIXED_TIME)?, tree))
        }
        // On top of a commit it is as old as that one: the same tree gives the same commit.
        (_, BaseKind::WorkingTree, parent) => {
            Ok((write_commit(&odb, tree, parent, base.committed_at)?, tree))
        }
        (_, BaseKind::Commit, Some(commit)) => Ok((commit, tree)),
    }
}

/// A host's object directory and all that it borrows from, each once.
fn host_object_dirs(first: &Path) -> Result<Vec<PathBuf>, PathError> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut waiting = vec![first.to_owned()];
    while let Some(dir) = waiting.pop() {
        if found.contains(&dir) {
            continue;
        }
        let list = dir.join("info/alternates");
        match fs::read(&list) {
            Ok(text) => {
                let lines = text.split(|&b| b == b'\n').filter(|l| !l.is_empty() && l[0] != b'#');
                waiting.extend(lines.map(|l| dir.join(std::ffi::OsStr::from_bytes(l))));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(PathError::at(Action::Read, &list)(e)),
        }
        found.push(dir);
    }
    Ok(found)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}
