//! A workspace, from base objects to what the box sees.

use std::fs;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use git2::Index;
use h5i_confine::{OVERLAY_WORK, UPPER};

use super::backend::{Backend, Layout, Note};
use super::base_objects::BaseObjects;
use super::checkout::CheckoutError;
use super::git_dir::{GitDir, GitDirError, Identity};
use super::pinned_base::PinnedBase;
use super::pristine::{PristineRequest, PristineTree};
use super::standing::Standing;
use crate::path_error::{Action, PathError};
use crate::store::{
    BoxDraft, HostId, LayerName, LayerNameError, WorkspaceKind, make_private_dir, names,
};

/// What a workspace is made of and for whom.
#[derive(Debug)]
pub struct Workspace<'a> {
    /// The pinned base.
    pub base: &'a PinnedBase,
    /// Its objects.
    pub objects: &'a BaseObjects,
    /// Who commits in the box.
    pub identity: &'a Identity,
    /// Where the object directories are seen from.
    pub objects_at: ObjectsAt,
    /// Whose the box's files are on the host.
    pub owner: Owner,
    /// The user and group that `stat` shows in the box.
    pub inside: (u32, u32),
}

/// Where the box's git finds the object directories it borrows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectsAt {
    /// Where they stand on the host: for a box without a private root.
    Host,
    /// Below this directory of the box, as `0`, `1`, …: for a box with one.
    InBox(PathBuf),
}

/// Whose the box's files are on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owner {
    /// The caller's.
    Caller,
    /// The box's own host id; only root can give files away.
    Box(HostId),
}

/// A workspace that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// How it is laid out.
    pub kind: WorkspaceKind,
    /// The lower layers of an overlay, the one that hides the others first; none otherwise.
    pub layers: Vec<LayerName>,
    /// What must be shown in the box, read-only.
    pub mounts: Vec<ObjectMount>,
    /// What a person should know about it.
    pub notes: Vec<Note>,
}

/// An object directory of the host and where the box sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectMount {
    /// Where it stands on the host.
    pub host: PathBuf,
    /// Where the box's git looks for it.
    pub at: PathBuf,
}

/// Why no workspace was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The base tree can't be laid out.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// The name made for a layer is none; never for SHA-1 names.
    #[error(transparent)]
    Layer(#[from] LayerNameError),
    /// The git directory can't be made.
    #[error(transparent)]
    GitDir(#[from] GitDirError),
    /// The base's objects can't be read, or the index can't be written.
    #[error("cannot prepare the box's index")]
    Git(#[from] git2::Error),
    /// A directory can't be made or given away.
    #[error(transparent)]
    Io(#[from] PathError),
}

impl Workspace<'_> {
    /// Where the box of that `box/` directory has its workspace.
    #[must_use]
    pub fn work_dir(box_dir: &Path) -> PathBuf {
        box_dir.join("work")
    }

    /// What the box of these objects must see, and where.
    #[must_use]
    pub fn mounts(objects: &BaseObjects, at: &ObjectsAt) -> Vec<ObjectMount> {
        let place = |(number, host): (usize, PathBuf)| match at {
            ObjectsAt::Host => ObjectMount { at: host.clone(), host },
            ObjectsAt::InBox(dir) => ObjectMount { at: dir.join(number.to_string()), host },
        };
        objects.object_dirs().into_iter().enumerate().map(place).collect()
    }

    /// Makes `work/`, `home/` and `spool/` in the box's directory.
    ///
    /// # Errors
    /// [`WorkspaceError`]; what was written stays for the owner of the directory to remove.
    pub fn create(
        &self,
        box_dir: &Path,
        backend: &dyn Backend,
    ) -> Result<Prepared, WorkspaceError> {
        let work = Self::work_dir(box_dir);
        for dir in ["work", "home", "spool"] {
            make_private_dir(&box_dir.join(dir))?;
        }
        let mounts = Self::mounts(self.objects, &self.objects_at);
        let alternates: Vec<PathBuf> = mounts.iter().map(|mount| mount.at.clone()).collect();
        let git_dir = work.join(".git");
        GitDir {
            path: &git_dir,
            branch: &self.base.branch,
            tip: self.objects.tip,
            alternates: &alternates,
            objects: &self.objects.path,
            identity: self.identity,
            asks: false,
        }
        .write()?;
        let repo = self.objects.open()?;
        let mut index = Index::open(&git_dir.join("index"))?;
        let laid_out = backend.lay_out(
            &Layout {
                objects: &repo,
                tree: self.objects.tree,
                over: None,
                root: &work,
                owner: self.owner,
                inside: self.inside,
                mtime: self.file_time(),
            },
            &mut index,
        )?;
        // Fills the cache of trees that `git status` compares HEAD by; entries keep their data.
        index.read_tree(&repo.find_tree(self.objects.tree)?)?;
        index.write()?;
        if let Owner::Box(id) = self.owner {
            give_away(&git_dir, id)?;
            for dir in [box_dir, &work, &box_dir.join("home"), &box_dir.join("spool")] {
                lchown(dir, Some(id.number()), Some(id.number()))
                    .map_err(PathError::at(Action::ChangeOwner, dir))?;
            }
        }
        let (kind, notes) = (backend.kind(), laid_out.notes);
        Ok(Prepared { kind, layers: Vec::new(), mounts, notes })
    }

    /// Makes `overlay/`, `home/` and `spool/` in the draft's box directory, and what boxes of the
    /// same base share where it is not there yet. Nothing of the tree is written for the box.
    ///
    /// # Errors
    /// [`WorkspaceError`]; what was written stays for the owner of the directory to remove.
    pub fn create_overlay(&self, draft: &mut BoxDraft) -> Result<Prepared, WorkspaceError> {
        let box_dir = draft.box_dir();
        let (inside, mtime) = (self.inside, self.file_time());
        let request = PristineRequest { objects: self.objects, inside, mtime };
        let tree = PristineTree::make(draft, &request)?;
        let mounts = Self::mounts(self.objects, &self.objects_at);
        let alternates: Vec<PathBuf> = mounts.iter().map(|mount| mount.at.clone()).collect();
        let layers = tree.layers(&GitDir {
            path: Path::new(".git"),
            branch: &self.base.branch,
            tip: self.objects.tip,
            alternates: &alternates,
            objects: &self.objects.path,
            identity: self.identity,
            asks: tree.is_large(),
        })?;
        let area = Standing::area(&box_dir);
        let (upper, work) = (area.join(UPPER), area.join(OVERLAY_WORK));
        let (home, spool) = (box_dir.join("home"), box_dir.join("spool"));
        for dir in [&area, &upper, &work, &home, &spool] {
            make_private_dir(dir)?;
        }
        if let Owner::Box(id) = self.owner {
            for dir in [&box_dir, &area, &upper, &work, &home, &spool] {
                lchown(dir, Some(id.number()), Some(id.number()))
                    .map_err(PathError::at(Action::ChangeOwner, dir))?;
            }
        }
        Ok(Prepared { kind: WorkspaceKind::Overlay, layers, mounts, notes: tree.notes() })
    }

    /// The time of the base's files: the commit's, but some seconds ago at least. Git takes a file
    /// that is as young as the index for possibly changed and reads it again.
    fn file_time(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        self.base.committed_at.clamp(0, now.saturating_sub(10).max(0))
    }
}

/// Gives a tree that h5i itself has just made, the git directory, to the box's id.
fn give_away(dir: &Path, id: HostId) -> Result<(), PathError> {
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        lchown(&path, Some(id.number()), Some(id.number()))
            .map_err(PathError::at(Action::ChangeOwner, &path))?;
        let meta = fs::symlink_metadata(&path).map_err(PathError::at(Action::Inspect, &path))?;
        if meta.is_dir() {
            waiting.extend(names(&path)?.into_iter().map(|name| path.join(name)));
        }
    }
    Ok(())
}
