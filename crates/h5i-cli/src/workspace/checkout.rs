//! A workspace as a real directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use git2::{Index, Oid, Repository, TreeEntry};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};

use super::backend::{Backend, LaidOut, Layout, Note};
use super::files::{Common, Crew, Made, Wanted};
use crate::path_error::{Action, PathError};
use crate::shown::Shown;
use crate::store::WorkspaceKind;

/// A workspace as a real directory: every file of the base is written once.
///
/// The files have the committed bytes: no end-of-line conversion, no filter, no keyword, whatever
/// attributes say. So the gate compares bytes with bytes, nothing of the repository's choosing runs,
/// and an LFS file stands as its pointer. Every name is one that a hostile tree can't escape by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checkout;

/// Why a tree could not be laid out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckoutError {
    /// A name that is no file name, or means the git directory.
    #[error("the base has a path that can't be a file: `{}`", Shown::bytes(path))]
    Name {
        /// The path, bytes.
        path: Vec<u8>,
    },
    /// Directories are nested too deep.
    #[error("the base nests directories deeper than {most}: `{}`", Shown::bytes(path))]
    TooDeep {
        /// The path, bytes.
        path: Vec<u8>,
        /// The most that is laid out.
        most: usize,
    },
    /// An object can't be read.
    #[error("cannot read `{}` of the base", Shown::bytes(path))]
    Git {
        /// The path, bytes.
        path: Vec<u8>,
        /// What libgit2 said.
        #[source]
        source: git2::Error,
    },
    /// What the tree below has at a path can't be hidden there.
    #[error("cannot hide `{}` of the tree below", Shown::bytes(path))]
    Hide {
        /// The path, bytes.
        path: Vec<u8>,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A file can't be written.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// Directories below each other; each holds a descriptor while it is filled.
const DEEPEST: usize = 512;

/// Modes of tree entries.
const TREE: i32 = 0o040_000;
const SUBMODULE: i32 = 0o160_000;

impl Backend for Checkout {
    fn kind(&self) -> WorkspaceKind {
        WorkspaceKind::Checkout
    }

    fn lay_out(&self, layout: &Layout<'_>, index: &mut Index) -> Result<LaidOut, CheckoutError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, layout.root, flags, Mode::empty())
            .map_err(PathError::at(Action::Open, layout.root))?;
        let (common, objects) = (Common::of(layout), layout.objects);
        let (made, mut notes) = thread::scope(|scope| {
            let crew = Crew::new(scope, common, objects)?;
            let (path, notes) = (Vec::new(), Vec::new());
            let mut writer = Writer { common, objects, crew, index: &mut *index, path, notes };
            writer.fill(&Arc::new(root), layout.tree, layout.over, 0)?;
            Ok::<_, CheckoutError>((writer.crew.finish()?, writer.notes))
        })?;
        let mut bytes = 0;
        for Made { entry, lfs_pointer } in made {
            bytes += u64::from(entry.file_size).next_multiple_of(4096);
            let added = index.add(&entry);
            added.map_err(|source| CheckoutError::Git { path: entry.path.clone(), source })?;
            if lfs_pointer {
                notes.push(Note::LfsPointer { path: entry.path });
            }
        }
        notes.sort_by(|one, other| one.path().cmp(other.path()));
        Ok(LaidOut { notes, bytes })
    }
}

/// Walks the tree: makes directories and links, and has the crew write the files.
struct Writer<'scope, 'env, 'a> {
    common: Common<'env>,
    objects: &'env Repository,
    crew: Crew<'scope, 'env>,
    index: &'a mut Index,
    path: Vec<u8>,
    notes: Vec<Note>,
}

impl Writer<'_, '_, '_> {
    fn fill(
        &mut self,
        dir: &Arc<OwnedFd>,
        tree: Oid,
        over: Option<Oid>,
        depth: usize,
    ) -> Result<(), CheckoutError> {
        if depth > DEEPEST {
            return Err(CheckoutError::TooDeep { path: self.path.clone(), most: DEEPEST });
        }
        let tree = self.objects.find_tree(tree).map_err(|e| self.git(e))?;
        let over = over.map(|over| self.objects.find_tree(over)).transpose();
        let over = over.map_err(|e| self.git(e))?;
        let mut files = Vec::new();
        for entry in &tree {
            let above = self.push(entry.name_bytes());
            if !is_file_name(entry.name_bytes()) {
                return Err(CheckoutError::Name { path: self.path.clone() });
            }
            let below = over.as_ref().and_then(|over| over.get_name_bytes(entry.name_bytes()));
            if !below.as_ref().is_some_and(|below| is_same(below, &entry)) {
                files.extend(self.entry(dir.as_fd(), &entry, below.as_ref(), depth)?);
            }
            self.path.truncate(above);
        }
        self.crew.write(dir, &self.path, files)?;
        for gone in over.iter().flatten() {
            if tree.get_name_bytes(gone.name_bytes()).is_none() {
                let above = self.push(gone.name_bytes());
                self.hide(dir.as_fd(), &gone)?;
                self.path.truncate(above);
            }
        }
        Ok(())
    }

    /// Goes to a name below; gives the length of the path that was there.
    fn push(&mut self, name: &[u8]) -> usize {
        let above = self.path.len();
        if above > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        above
    }

    /// Lays out one entry, over another one that differs or where none was; yields it if it is a
    /// file, which is still to be written.
    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        entry: &TreeEntry<'_>,
        below: Option<&TreeEntry<'_>>,
        depth: usize,
    ) -> Result<Option<Wanted>, CheckoutError> {
        let name = OsStr::from_bytes(entry.name_bytes());
        let tree_below = below.filter(|below| below.filemode() == TREE);
        if let Some(below) = below
            && entry.filemode() != below.filemode()
        {
            if entry.filemode() == SUBMODULE {
                // Two directories would be seen as one.
                let source = std::io::ErrorKind::DirectoryNotEmpty.into();
                return Err(CheckoutError::Hide { path: self.path.clone(), source });
            }
            self.leave_out(below)?;
        }
        match entry.filemode() {
            TREE => {
                let made = Arc::new(self.make_dir(dir, name)?);
                self.fill(&made, entry.id(), tree_below.map(TreeEntry::id), depth + 1)?;
                Ok(None)
            }
            SUBMODULE => {
                let made = self.make_dir(dir, name)?;
                let stat = rustix::fs::fstat(&made).map_err(self.at(Action::Inspect))?;
                self.enter(&stat, 0o160_000, entry.id());
                self.notes.push(Note::Submodule { path: self.path.clone() });
                Ok(None)
            }
            0o120_000 => self.make_link(dir, name, entry.id()).map(|()| None),
            // Old trees have 100664 as well; Git itself reads it as 100644.
            mode => {
                let (name, executable) = (entry.name_bytes().to_owned(), mode & 0o111 != 0);
                Ok(Some(Wanted { name, id: entry.id(), executable }))
            }
        }
    }

    /// Takes what the tree below has at the path out of the index.
    fn leave_out(&mut self, below: &TreeEntry<'_>) -> Result<(), CheckoutError> {
        let path = Path::new(OsStr::from_bytes(&self.path));
        let left = match below.filemode() {
            TREE => self.index.remove_dir(path, 0),
            _ => self.index.remove(path, 0),
        };
        left.map_err(|e| self.git(e))
    }

    /// Hides what the tree below has at the path: by a device 0:0, which an overlay takes for
    /// nothing at all (since Linux 5.8 anybody may make one).
    fn hide(&mut self, dir: BorrowedFd<'_>, gone: &TreeEntry<'_>) -> Result<(), CheckoutError> {
        let name = OsStr::from_bytes(gone.name_bytes());
        let (kind, mode) = (FileType::CharacterDevice, Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(dir, name, kind, mode, 0)
            .map_err(|e| CheckoutError::Hide { path: self.path.clone(), source: e.into() })?;
        self.leave_out(gone)
    }

    fn make_dir(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, CheckoutError> {
        rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o755))
            .map_err(self.at(Action::CreateDirectory))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made =
            rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(self.at(Action::Open))?;
        self.common.give_away(made.as_fd()).map_err(self.at(Action::ChangeOwner))?;
        Ok(made)
    }

    fn make_link(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        id: Oid,
    ) -> Result<(), CheckoutError> {
        let target = self.crew.odb().read(id).map_err(|e| self.git(e))?;
        rustix::fs::symlinkat(OsStr::from_bytes(target.data()), dir, name)
            .map_err(self.at(Action::Create))?;
        if let Some((uid, gid)) = self.common.ids() {
            rustix::fs::chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(self.at(Action::ChangeOwner))?;
        }
        rustix::fs::utimensat(dir, name, &self.common.times(), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(self.at(Action::ChangeMode))?;
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(self.at(Action::Inspect))?;
        drop(target);
        self.enter(&stat, 0o120_000, id);
        Ok(())
    }

    fn enter(&mut self, stat: &Stat, mode: u32, id: Oid) {
        let entry = self.common.entry(self.path.clone(), stat, mode, id);
        self.crew.note(entry);
    }

    fn git(&self, source: git2::Error) -> CheckoutError {
        CheckoutError::Git { path: self.path.clone(), source }
    }

    fn at<E: Into<std::io::Error>>(&self, action: Action) -> impl FnOnce(E) -> CheckoutError {
        self.common.at(&self.path, action)
    }
}

/// Whether two entries of one name give the same file or directory.
fn is_same(one: &TreeEntry<'_>, other: &TreeEntry<'_>) -> bool {
    // Of a file's mode, one bit counts.
    let kind = |entry: &TreeEntry<'_>| match entry.filemode() {
        mode if mode & 0o170_000 == 0o100_000 => 0o100_000 | (mode & 0o111),
        mode => mode,
    };
    one.id() == other.id() && kind(one) == kind(other)
}

/// Whether a tree entry's name may become a file: not empty, `.`, `..`, `.git` in any case, and
/// without `/` and NUL.
fn is_file_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && !name.eq_ignore_ascii_case(b".git")
        && !name.iter().any(|b| matches!(b, b'/' | 0))
}
