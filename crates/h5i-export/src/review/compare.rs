//! The box's tree against the pinned base.

mod files;

use std::collections::BTreeMap;

use git2::{FileMode, ObjectType, Oid};

use super::refusal::{Refusal, RefusalRule};
use super::reviewed::LeftBehind;
use super::{Closed, Export, ReviewError};
use crate::apply::{Edit, Edits};
use crate::ignore::{Entry, IgnoreStack};
use crate::path::{ExportPath, is_dot_git};
use crate::store::{Store, StoreError};
use crate::tree::{Cover, Kind, Layers, Step, TreeSource, Walk};

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) edits: Edits,
    pub(super) refusals: Vec<Refusal>,
    /// Paths that the base does not have, as far as their names are good.
    pub(super) added: Vec<ExportPath>,
    /// Every symbolic link of the reviewed tree that was met.
    pub(super) links: Vec<Vec<u8>>,
    /// What stays in the box, by path.
    pub(super) left: BTreeMap<Vec<u8>, LeftBehind>,
    files: u64,
    bytes: u64,
}

/// One entry of a base directory.
#[derive(Clone, Copy, Debug)]
struct Pinned {
    id: Oid,
    mode: i32,
}

impl Pinned {
    fn is(self, mode: FileMode) -> bool {
        self.mode == i32::from(mode)
    }
}

/// A directory that the walk is in.
struct Frame {
    /// What the base has in it and the walk has not met yet.
    base: BTreeMap<Vec<u8>, Pinned>,
    /// What becomes of that at the end of the directory.
    cover: Cover,
    untracked: Untracked,
}

/// What happens to entries that the base does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Untracked {
    /// They are proposed unless a rule ignores them.
    Proposed,
    /// The directory is ignored; they stay, each under its own name.
    Ignored,
    /// They stay and are counted under this path.
    Counted(Vec<u8>),
}

/// Files with several names, read when all names are counted: by device and inode.
type Linked = BTreeMap<(u64, u64), Vec<(Vec<u8>, Option<Pinned>)>>;

pub(super) fn compare(
    export: &Export<'_>,
    store: &Store,
    tree: TreeSource,
) -> Result<Compared, ReviewError> {
    let (root, layers) = tree.into_root();
    let mut comparison = Comparison {
        export,
        store,
        walk: Walk::new(root, layers, export.limits)?,
        frames: Vec::new(),
        ignore: IgnoreStack::default(),
        linked: Linked::new(),
        out: Compared::default(),
    };
    comparison.enter(Some(export.base.tree), Untracked::Proposed)?;
    comparison.run()?;
    if layers == Layers::Upper && !comparison.out.links.is_empty() {
        // A new link may change where one of the base leads, and the layer has the new ones only.
        comparison.links_of_base()?;
    }
    Ok(comparison.out)
}

struct Comparison<'e, 'a> {
    export: &'e Export<'a>,
    store: &'e Store,
    walk: Walk,
    frames: Vec<Frame>,
    ignore: IgnoreStack,
    linked: Linked,
    out: Compared,
}

impl Comparison<'_, '_> {
    fn run(&mut self) -> Result<(), ReviewError> {
        loop {
            match self.walk.next()? {
                Step::Entry(kind) => self.entry(kind)?,
                Step::Leave => {
                    let directory = self.walk.path().to_vec();
                    self.leave(&directory)?;
                }
                Step::End => {
                    self.leave(b"")?;
                    return self.read_linked();
                }
            }
        }
    }

    /// Enters the directory at the walk's path with what the base has there.
    fn enter(&mut self, tree: Option<Oid>, untracked: Untracked) -> Result<(), ReviewError> {
        let mut base = BTreeMap::new();
        if let Some(id) = tree {
            for entry in self.store.tree(id)?.iter() {
                let pinned = Pinned { id: entry.id(), mode: entry.filemode() };
                base.insert(entry.name_bytes().to_vec(), pinned);
            }
        }
        let rules = match base.get(&b".gitignore"[..]) {
            Some(pinned) if !pinned.is(FileMode::Link) && !pinned.is(FileMode::Tree) => {
                Some(self.store.blob(pinned.id)?)
            }
            _ => None,
        };
        self.ignore.push(self.walk.path(), rules.as_ref().map(git2::Blob::content));
        let own = self.walk.cover()?;
        // The kernel marks only the directory that stands for all of the base's, not those that are
        // made in it: below a mark nothing of the base shows through.
        let cover = match self.frames.last() {
            Some(Frame { cover: Cover::All, .. }) => Cover::All,
            _ => own,
        };
        self.frames.push(Frame { base, cover, untracked });
        Ok(())
    }

    /// What the base has in a directory and the box has not is deleted, unless the directory is one
    /// of an upper layer that leaves it as it is.
    fn leave(&mut self, directory: &[u8]) -> Result<(), ReviewError> {
        self.ignore.pop();
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        if frame.cover == Cover::Own {
            return Ok(());
        }
        for (name, pinned) in frame.base {
            let path = join(directory, &name);
            self.remove(&path, pinned)?;
        }
        Ok(())
    }

    /// Removes what the base has at `path`, except what the policy hides and submodules, which are
    /// not in the box in the first place; returns whether everything went.
    fn remove(&mut self, path: &[u8], pinned: Pinned) -> Result<bool, ReviewError> {
        let mut all = true;
        let mut rest = vec![(path.to_vec(), pinned)];
        while let Some((path, pinned)) = rest.pop() {
            if pinned.is(FileMode::Commit) || (self.export.hidden)(&path) {
                all = false;
            } else if pinned.is(FileMode::Tree) {
                for entry in self.store.tree(pinned.id)?.iter() {
                    let below = Pinned { id: entry.id(), mode: entry.filemode() };
                    rest.push((join(&path, entry.name_bytes()), below));
                }
            } else {
                self.count(0)?;
                self.out.edits.add(&path, Edit::Remove);
            }
        }
        Ok(all)
    }

    /// Adds the links of the base to those that were met.
    fn links_of_base(&mut self) -> Result<(), ReviewError> {
        let mut rest = vec![(Vec::new(), self.export.base.tree)];
        while let Some((directory, tree)) = rest.pop() {
            for entry in self.store.tree(tree)?.iter() {
                let path = join(&directory, entry.name_bytes());
                if entry.filemode() == i32::from(FileMode::Tree) {
                    rest.push((path, entry.id()));
                } else if entry.filemode() == i32::from(FileMode::Link) {
                    self.out.links.push(path);
                }
            }
        }
        self.out.links.sort();
        self.out.links.dedup();
        Ok(())
    }

    fn entry(&mut self, kind: Kind) -> Result<(), ReviewError> {
        let path = self.walk.path().to_vec();
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(&path).to_vec();
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if kind == Kind::Whiteout {
            return match frame.base.remove(&name) {
                Some(pinned) => self.remove(&path, pinned).map(|_all| ()),
                None => Ok(()),
            };
        }
        if let Untracked::Counted(root) = &frame.untracked {
            let root = root.clone();
            return self.stay(root, kind, LeftBehind::Ignored { files: 0 });
        }
        // Whatever it is: a directory, a file, a link. It is not looked into.
        if path == b".git" {
            return Ok(());
        }
        let pinned = frame.base.remove(&name);
        let parent_ignored = frame.untracked == Untracked::Ignored;
        let entry = if kind == Kind::Directory { Entry::Directory } else { Entry::Other };
        if (self.export.hidden)(&path) {
            return match pinned {
                Some(pinned) => self.hidden(path, pinned, kind),
                None => self.stay(path, kind, LeftBehind::Hidden { files: 0 }),
            };
        }
        let ignored = parent_ignored || self.ignore.ignores(&path, entry);
        if pinned.is_none() && ignored {
            return self.stay(path, kind, LeftBehind::Ignored { files: 0 });
        }
        if is_dot_git(&name) {
            self.refuse(path, RefusalRule::NestedRepository);
            return Ok(());
        }
        if pinned.is_none() {
            match ExportPath::new(&path) {
                Ok(good) => self.out.added.push(good),
                Err(error) => {
                    self.refuse(path, RefusalRule::Path(error.rule));
                    return Ok(());
                }
            }
        }
        if let Some(pinned) = pinned
            && pinned.is(FileMode::Commit)
        {
            // A submodule's directory, empty or not, stands for the commit of the base.
            return match kind {
                Kind::Directory => self.stay(path, kind, LeftBehind::Submodule { files: 0 }),
                _ => {
                    self.refuse(path, RefusalRule::Submodule);
                    Ok(())
                }
            };
        }
        match kind {
            Kind::Directory => self.directory(&path, pinned, ignored),
            Kind::Whiteout => Ok(()),
            Kind::Special(special) => {
                self.refuse(path, RefusalRule::Special(special));
                Ok(())
            }
            Kind::Symlink => {
                let Some(pinned) = self.replace_tree(&path, pinned)? else { return Ok(()) };
                let target = self.walk.read_link()?;
                self.out.links.push(path.clone());
                let id = Oid::hash_object(ObjectType::Blob, &target)
                    .map_err(StoreError::git("hash a link"))?;
                self.propose(&path, pinned, (id, &target), FileMode::Link)
            }
            Kind::File => {
                let Some(pinned) = self.replace_tree(&path, pinned)? else { return Ok(()) };
                self.file(&path, pinned)
            }
        }
    }

    fn directory(
        &mut self,
        path: &[u8],
        pinned: Option<Pinned>,
        ignored: bool,
    ) -> Result<(), ReviewError> {
        let untracked = if ignored { Untracked::Ignored } else { Untracked::Proposed };
        if !self.enters()? {
            self.closed(path);
            return Ok(());
        }
        match pinned {
            Some(tree) if tree.is(FileMode::Tree) => self.enter(Some(tree.id), untracked),
            Some(file) => {
                self.remove(path, file)?;
                self.enter(None, untracked)
            }
            None => self.enter(None, untracked),
        }
    }

    /// Makes way for a file or link where the base has a directory. `None` when something there
    /// must stay; else the entry to compare with.
    fn replace_tree(
        &mut self,
        path: &[u8],
        pinned: Option<Pinned>,
    ) -> Result<Option<Option<Pinned>>, ReviewError> {
        match pinned {
            Some(tree) if tree.is(FileMode::Tree) => {
                if self.remove(path, tree)? {
                    return Ok(Some(None));
                }
                self.refuse(path.to_vec(), RefusalRule::Hidden);
                Ok(None)
            }
            other => Ok(Some(other)),
        }
    }

    /// A hidden path of the base that is there: a directory may be, with anything of its own in
    /// it that the base does not have.
    fn hidden(&mut self, path: Vec<u8>, pinned: Pinned, kind: Kind) -> Result<(), ReviewError> {
        if kind == Kind::Directory && pinned.is(FileMode::Tree) {
            return self.stay(path, kind, LeftBehind::Hidden { files: 0 });
        }
        self.refuse(path, RefusalRule::Hidden);
        Ok(())
    }

    /// Counts an entry under `root`; nothing of it is opened except, to count, directories.
    fn stay(&mut self, root: Vec<u8>, kind: Kind, why: LeftBehind) -> Result<(), ReviewError> {
        let left = self.out.left.entry(root.clone()).or_insert(why);
        if kind == Kind::Directory {
            // What stays may be closed: it is counted as far as it can be.
            if !self.enters()? {
                return Ok(());
            }
            self.frames.push(Frame {
                base: BTreeMap::new(),
                cover: Cover::All,
                untracked: Untracked::Counted(root),
            });
            self.ignore.push(b"", None);
        } else {
            left.count_one();
        }
        Ok(())
    }

    /// Enters the directory that is the last entry; false where its mode keeps its owner from that.
    fn enters(&mut self) -> Result<bool, ReviewError> {
        match self.walk.descend() {
            Err(error) if error.is_closed() => Ok(false),
            entered => Ok(entered.map(|()| true)?),
        }
    }

    fn closed(&mut self, path: &[u8]) {
        match self.export.closed {
            Closed::Refuse => self.refuse(path.to_vec(), RefusalRule::Closed),
            Closed::LeaveOut => drop(self.out.left.insert(path.to_vec(), LeftBehind::Closed)),
        }
    }

    fn refuse(&mut self, path: Vec<u8>, rule: RefusalRule) {
        if self.out.refusals.len() < Refusal::MAX {
            self.out.refusals.push(Refusal { path, rule });
        }
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
