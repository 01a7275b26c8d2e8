//! A workspace as a real directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry, IndexTime, Odb, Oid, Repository, TreeEntry};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid};

use super::backend::{Backend, LaidOut, Layout, Note};
use super::prepare::Owner;
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
        let odb = layout
            .objects
            .odb()
            .map_err(|source| CheckoutError::Git { path: Vec::new(), source })?;
        let mut writer = Writer {
            layout,
            repo: layout.objects,
            odb,
            index,
            path: Vec::new(),
            out: LaidOut::default(),
        };
        writer.fill(root.as_fd(), layout.tree, layout.over, 0)?;
        Ok(writer.out)
    }
}

struct Writer<'a> {
    layout: &'a Layout<'a>,
    repo: &'a Repository,
    odb: Odb<'a>,
    index: &'a mut Index,
    path: Vec<u8>,
    out: LaidOut,
}

impl Writer<'_> {
    fn fill(
        &mut self,
        dir: BorrowedFd<'_>,
        tree: Oid,
        over: Option<Oid>,
        depth: usize,
    ) -> Result<(), CheckoutError> {
        if depth > DEEPEST {
            return Err(CheckoutError::TooDeep { path: self.path.clone(), most: DEEPEST });
        }
        let tree = self.repo.find_tree(tree).map_err(|e| self.git(e))?;
        let over = over.map(|over| self.repo.find_tree(over)).transpose();
        let over = over.map_err(|e| self.git(e))?;
        for entry in &tree {
            let above = self.push(entry.name_bytes());
            if !is_file_name(entry.name_bytes()) {
                return Err(CheckoutError::Name { path: self.path.clone() });
            }
            let below = over.as_ref().and_then(|over| over.get_name_bytes(entry.name_bytes()));
            if !below.as_ref().is_some_and(|below| is_same(below, &entry)) {
                self.entry(dir, &entry, below.as_ref(), depth)?;
            }
            self.path.truncate(above);
        }
        for gone in over.iter().flatten() {
            if tree.get_name_bytes(gone.name_bytes()).is_none() {
                let above = self.push(gone.name_bytes());
                self.hide(dir, &gone)?;
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

    /// Lays out one entry, over another one that differs or where none was.
    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        entry: &TreeEntry<'_>,
        below: Option<&TreeEntry<'_>>,
        depth: usize,
    ) -> Result<(), CheckoutError> {
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
                let made = self.make_dir(dir, name)?;
                self.fill(made.as_fd(), entry.id(), tree_below.map(TreeEntry::id), depth + 1)
            }
            SUBMODULE => {
                let made = self.make_dir(dir, name)?;
                let stat = rustix::fs::fstat(&made).map_err(self.at(Action::Inspect))?;
                self.enter(&stat, 0o160_000, entry.id())?;
                self.out.notes.push(Note::Submodule { path: self.path.clone() });
                Ok(())
            }
            0o120_000 => self.make_link(dir, name, entry.id()),
            // Old trees have 100664 as well; Git itself reads it as 100644.
            mode => self.make_file(dir, name, entry.id(), mode & 0o111 != 0),
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
        self.give_away(made.as_fd())?;
        Ok(made)
    }

    fn make_link(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        id: Oid,
    ) -> Result<(), CheckoutError> {
        let target = self.odb.read(id).map_err(|e| self.git(e))?;
        rustix::fs::symlinkat(OsStr::from_bytes(target.data()), dir, name)
            .map_err(self.at(Action::Create))?;
        if let Owner::Box(id) = self.layout.owner {
            let (uid, gid) = (Uid::from_raw(id.number()), Gid::from_raw(id.number()));
            rustix::fs::chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(self.at(Action::ChangeOwner))?;
        }
        rustix::fs::utimensat(dir, name, &self.times(), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(self.at(Action::ChangeMode))?;
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(self.at(Action::Inspect))?;
        drop(target);
        self.enter(&stat, 0o120_000, id)
    }

    fn make_file(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        id: Oid,
        executable: bool,
    ) -> Result<(), CheckoutError> {
        let (mode, recorded) = if executable { (0o755, 0o100_755) } else { (0o644, 0o100_644) };
        let object = self.odb.read(id).map_err(|e| self.git(e))?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))
            .map_err(self.at(Action::Create))?;
        let mut file = File::from(made);
        file.write_all(object.data()).map_err(self.at(Action::Write))?;
        self.give_away(file.as_fd())?;
        rustix::fs::futimens(&file, &self.times()).map_err(self.at(Action::ChangeMode))?;
        let stat = rustix::fs::fstat(&file).map_err(self.at(Action::Inspect))?;
        if is_lfs_pointer(object.data()) {
            self.out.notes.push(Note::LfsPointer { path: self.path.clone() });
        }
        drop(object);
        self.enter(&stat, recorded, id)
    }

    /// Gives a file to the box's own id. Before its `stat`: a change of owner changes the ctime.
    fn give_away(&self, file: BorrowedFd<'_>) -> Result<(), CheckoutError> {
        if let Owner::Box(id) = self.layout.owner {
            let (uid, gid) = (Uid::from_raw(id.number()), Gid::from_raw(id.number()));
            rustix::fs::fchown(file, Some(uid), Some(gid)).map_err(self.at(Action::ChangeOwner))?;
        }
        Ok(())
    }

    fn times(&self) -> Timestamps {
        let time = Timespec { tv_sec: self.layout.mtime, tv_nsec: 0 };
        Timestamps { last_access: time, last_modification: time }
    }

    fn enter(&mut self, stat: &Stat, mode: u32, id: Oid) -> Result<(), CheckoutError> {
        let (uid, gid) = self.layout.inside;
        let size = if mode == 0o160_000 { 0 } else { low32(stat.st_size) };
        self.out.bytes += u64::from(size).next_multiple_of(4096);
        let entry = IndexEntry {
            ctime: index_time(stat.st_ctime, stat.st_ctime_nsec),
            mtime: index_time(stat.st_mtime, stat.st_mtime_nsec),
            dev: low32(stat.st_dev),
            ino: low32(stat.st_ino),
            mode,
            uid,
            gid,
            file_size: size,
            id,
            flags: 0,
            flags_extended: 0,
            path: self.path.clone(),
        };
        self.index.add(&entry).map_err(|e| self.git(e))
    }

    fn git(&self, source: git2::Error) -> CheckoutError {
        CheckoutError::Git { path: self.path.clone(), source }
    }

    fn at<E: Into<std::io::Error>>(&self, action: Action) -> impl FnOnce(E) -> PathError {
        let path: PathBuf = self.layout.root.join(OsStr::from_bytes(&self.path));
        move |e| PathError::at(action, &path)(e)
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

/// Whether a blob is a pointer of Git LFS (its specification's first line).
fn is_lfs_pointer(bytes: &[u8]) -> bool {
    bytes.len() < 1024 && bytes.starts_with(b"version https://git-lfs.github.com/spec/")
}

/// The low 32 bits, which is all that an index keeps of sizes, devices and inodes.
fn low32(value: impl TryInto<i128>) -> u32 {
    let wide: i128 = value.try_into().unwrap_or(0);
    u32::try_from(wide & 0xffff_ffff).unwrap_or(0)
}

fn index_time(seconds: i64, nanoseconds: impl TryInto<u32>) -> IndexTime {
    // The index has 32 bits for seconds; beyond 2038 libgit2 takes them as they wrap.
    let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
    IndexTime::new(seconds, nanoseconds.try_into().unwrap_or(0))
}
