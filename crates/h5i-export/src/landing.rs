//! A reviewed bundle on its way into a repository of the host.
//!
//! The patch is applied to the recorded base in a quarantine, merged there with the commit that the
//! host is on, and only then are the objects of the result written to the host. No hook, filter,
//! merge driver or program of anybody's configuration runs.

mod branch;
mod checks;
mod selection;
#[cfg(test)]
mod tests;
mod working_tree;

use std::path::Path;

use git2::{Index, MergeOptions, ObjectType, Oid, Repository};

pub use branch::Message;

use crate::apply::{Keep, PatchError, apply};
use crate::bundle::Verified;
use crate::escape::Escaped;
use crate::store::{Base, Store, StoreError};

/// The tree of a verified bundle in a quarantine: the recorded base with the patch applied, which
/// gave exactly the tree that the bundle names.
///
/// `Landing::new(&verified, &base, &host, scratch)?.merge(tree)?` gives a [`Merged`].
#[derive(Debug)]
pub struct Landing {
    store: Store,
    base: Oid,
    tree: Oid,
}

/// A landing merged with a tree of the host; nothing of the host is written yet.
///
/// With [`Merged::conflicts`] empty it can become a commit; with or without conflicts it can be
/// written into a clean working tree.
pub struct Merged<'a> {
    store: &'a Store,
    index: Index,
}

/// Why a bundle did not land. Unless the variant says otherwise the host has at most objects that
/// nothing refers to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LandError {
    /// The objects can't be used.
    #[error("can't use the objects of the base")]
    Store(#[from] StoreError),
    /// The bundle was made from another base.
    #[error("the bundle was made from tree {bundle}, not from tree {given}")]
    OtherBase {
        /// The base tree that the bundle names.
        bundle: String,
        /// The base tree that was given.
        given: Oid,
    },
    /// The patch does not apply.
    #[error("the patch does not apply to the base")]
    Patch(#[source] PatchError),
    /// The patch gives another tree than the bundle names.
    #[error("the patch gives tree {found}, the bundle names {named}")]
    Tree {
        /// The tree that the bundle names.
        named: String,
        /// The tree that the patch gives.
        found: Oid,
    },
    /// A path was chosen at which the bundle changes nothing.
    #[error("the bundle changes nothing at `{}`", Escaped::new(path))]
    NotChanged {
        /// The path.
        path: Vec<u8>,
    },
    /// A new name is none that may leave a box.
    #[error("the bundle has a name that no box may export")]
    Path(#[source] crate::path::ExportPathError),
    /// A new name is one with another that is there now, where names are folded.
    #[error("a new name can't stand beside one that is here")]
    Clash(#[source] crate::path::NameClash),
    /// A new link leads out of the tree, perhaps because files were left out.
    #[error("the link `{}` leads out of the tree", Escaped::new(path))]
    LinkEscapes {
        /// The link.
        path: Vec<u8>,
    },
    /// The host changed what the bundle changes as well.
    #[error("{} changed here as well, the first: `{}`", files(conflicts.len()), first(conflicts))]
    Conflicts {
        /// Where, sorted.
        conflicts: Vec<Vec<u8>>,
    },
    /// The branch's name is none.
    #[error("`{}` is no name of a branch", Escaped::new(name.as_bytes()))]
    BranchName {
        /// The name.
        name: String,
    },
    /// There is a branch of that name, or one whose name is a directory of it.
    #[error("there is a branch `{}`", Escaped::new(name.as_bytes()))]
    BranchExists {
        /// The branch that is there.
        name: String,
    },
    /// The host's configuration does not say who commits.
    #[error("the git configuration has no user.name and user.email")]
    NoIdentity(git2::Error),
    /// The repository has no working tree.
    #[error("the repository has no working tree")]
    Bare,
    /// A merge, rebase or the like is under way in the working tree.
    #[error("the working tree is in the middle of another operation")]
    Underway,
    /// The working tree or the index has changes of its own.
    #[error(
        "{} of the working tree {} changes, the first: `{}`",
        files(paths.len()),
        if paths.len() == 1 { "has" } else { "have" },
        first(paths)
    )]
    Dirty {
        /// Where, sorted.
        paths: Vec<Vec<u8>>,
    },
    /// Untracked files stand where the bundle has files of its own.
    #[error("{} that git does not track would be overwritten, the first: `{}`", files(paths.len()), first(paths))]
    InTheWay {
        /// Where, sorted.
        paths: Vec<Vec<u8>>,
    },
    /// A file of the working tree can't be looked at.
    #[error("can't look at `{}`", path.display())]
    Io {
        /// Which.
        path: std::path::PathBuf,
        /// The failure.
        source: std::io::Error,
    },
    /// libgit2 failed.
    #[error("can't {operation}")]
    Git {
        /// What was attempted.
        operation: &'static str,
        /// The failure.
        source: git2::Error,
    },
}

fn files(number: usize) -> String {
    format!("{number} {}", if number == 1 { "file" } else { "files" })
}

fn first(paths: &[Vec<u8>]) -> String {
    paths.first().map(|path| Escaped::new(path).to_string()).unwrap_or_default()
}

fn failed(operation: &'static str) -> impl FnOnce(git2::Error) -> LandError {
    move |source| LandError::Git { operation, source }
}

impl Landing {
    /// Applies the bundle's patch to the recorded base, in a quarantine in `scratch` that can read
    /// the host's objects.
    ///
    /// # Errors
    /// [`LandError::OtherBase`], [`LandError::Patch`], [`LandError::Tree`] when the bundle does not
    /// fit the base; [`LandError::Path`], [`LandError::LinkEscapes`] when it has what no export
    /// has; [`LandError::Store`].
    pub fn new(
        verified: &Verified,
        base: &Base,
        host: &Repository,
        scratch: &Path,
    ) -> Result<Self, LandError> {
        if base.tree.to_string() != verified.index.base_tree {
            let bundle = verified.index.base_tree.clone();
            return Err(LandError::OtherBase { bundle, given: base.tree });
        }
        let beside = host.commondir().join("objects");
        let store = Store::open_beside(base, Some(&beside), scratch)?;
        let tree = apply(&store, base.tree, verified.patch.reader(), Keep::Objects)
            .map_err(LandError::Patch)?;
        if tree.to_string() != verified.index.tree {
            return Err(LandError::Tree { named: verified.index.tree.clone(), found: tree });
        }
        checks::check(&store, base.tree, tree)?;
        Ok(Self { store, base: base.tree, tree })
    }

    /// The tree that lands: the reviewed one, or the chosen part of it.
    #[must_use]
    pub const fn tree(&self) -> Oid {
        self.tree
    }

    /// Writes the tree that lands, and what is below it, to a repository that lacks it.
    ///
    /// # Errors
    /// [`LandError::Git`]; nothing refers to what was written.
    pub fn deposit(&self, into: &Repository) -> Result<Oid, LandError> {
        let odb = into.odb().map_err(failed("open the objects of the repository"))?;
        hand_over(&self.store, &odb, self.tree, ObjectType::Tree)?;
        Ok(self.tree)
    }

    /// Merges with a tree of the host, `None` for a branch without a commit. When that tree is the
    /// recorded base the result is exactly [`Landing::tree`].
    ///
    /// # Errors
    /// [`LandError::Clash`] for a new name that a folding file system takes for one of the host's,
    /// also for one that the policy hid from the box; [`LandError::Store`] when the tree can't be
    /// read, [`LandError::Git`]. Conflicts are no error here.
    pub fn merge(&self, ours: Option<Oid>) -> Result<Merged<'_>, LandError> {
        let empty = || self.store.write(ObjectType::Tree, b"");
        let ours = ours.map_or_else(empty, Ok)?;
        let tree = |id| self.store.tree(id);
        let index = if ours == self.base {
            let mut index = Index::new().map_err(failed("make an index"))?;
            index.read_tree(&tree(self.tree)?).map_err(failed("read the reviewed tree"))?;
            index
        } else {
            let mut options = MergeOptions::new();
            // What was reviewed of one file never lands in another: where the host renamed it, that
            // is a conflict, and a person decides.
            options.find_renames(false).fail_on_conflict(false);
            let index = self
                .store
                .repo
                .merge_trees(&tree(self.base)?, &tree(ours)?, &tree(self.tree)?, Some(&options))
                .map_err(failed("merge the trees"))?;
            checks::names(&tree(ours)?, &index)?;
            index
        };
        Ok(Merged { store: &self.store, index })
    }
}

impl std::fmt::Debug for Merged<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merged").field("conflicts", &self.conflicts()).finish_non_exhaustive()
    }
}

impl Merged<'_> {
    /// Where the host changed what the bundle changes as well, sorted.
    ///
    /// # Errors
    /// [`LandError::Git`].
    pub fn conflicts(&self) -> Result<Vec<Vec<u8>>, LandError> {
        let mut paths = Vec::new();
        for conflict in self.index.conflicts().map_err(failed("list the conflicts"))? {
            let conflict = conflict.map_err(failed("read a conflict"))?;
            let sides = [conflict.our, conflict.their, conflict.ancestor];
            paths.extend(sides.into_iter().flatten().next().map(|entry| entry.path));
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}

/// Writes an object and all below it to the host, unless it is there: what is below first, so that
/// an object of the host is never without its own.
fn hand_over(
    store: &Store,
    host: &git2::Odb<'_>,
    id: Oid,
    kind: ObjectType,
) -> Result<(), LandError> {
    if host.exists(id) {
        return Ok(());
    }
    if kind == ObjectType::Tree {
        for entry in &store.tree(id)? {
            // A submodule's commit is no object of this repository.
            if let Some(kind @ (ObjectType::Tree | ObjectType::Blob)) = entry.kind() {
                hand_over(store, host, entry.id(), kind)?;
            }
        }
    }
    let own = store.repo.odb().map_err(failed("open the quarantine"))?;
    let object = own.read(id).map_err(failed("read an object of the quarantine"))?;
    host.write(object.kind(), object.data())
        .map_err(failed("write an object to the repository"))?;
    Ok(())
}
