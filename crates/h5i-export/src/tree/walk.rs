//! Walking a tree without recursion, links, or trust.

use std::ffi::CString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::layer::{self, Cover};
use super::{Layers, ReadLimits, Special, TreeError};
use crate::path::{MAX_DEPTH, MAX_PATH};

/// What the walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An entry; [`Walk::path`] is its path.
    Entry(Kind),
    /// The end of a directory; [`Walk::path`] is the directory's path.
    Leave,
    /// The end of the root.
    End,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    Symlink,
    Special(Special),
    /// In an upper layer: what the base has there is gone.
    Whiteout,
}

/// A walk in the order of the directories. It holds one descriptor a level and one path.
pub(crate) struct Walk {
    root: OwnedFd,
    layers: Layers,
    levels: Vec<Level>,
    path: Vec<u8>,
    name: CString,
    entries: u64,
    limits: ReadLimits,
    started: Instant,
}

struct Level {
    directory: Dir,
    /// The length of the directory's path.
    path: usize,
}

/// No component is a link of any kind, none leaves the root, none is on another mount.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

impl Walk {
    pub(crate) fn new(
        root: OwnedFd,
        layers: Layers,
        limits: ReadLimits,
    ) -> Result<Self, TreeError> {
        let directory = Dir::read_from(&root).map_err(failed("list", b""))?;
        Ok(Self {
            root,
            layers,
            levels: vec![Level { directory, path: 0 }],
            path: Vec::new(),
            name: CString::default(),
            entries: 0,
            limits,
            started: Instant::now(),
        })
    }

    /// Goes to the next entry of the directory that was entered last.
    pub(crate) fn next(&mut self) -> Result<Step, TreeError> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(Step::End) };
            self.path.truncate(level.path);
            let Some(entry) = level.directory.read() else {
                self.levels.pop();
                return Ok(if self.levels.is_empty() { Step::End } else { Step::Leave });
            };
            let entry = entry.map_err(failed("list", &self.path))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(TreeError::TooManyEntries { limit: self.limits.entries });
            }
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name.to_bytes());
            self.name = name.to_owned();
            let kind = entry.file_type();
            self.check_time()?;
            return Ok(Step::Entry(self.kind(kind)?));
        }
    }

    /// The path of the last step, relative to the root.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Enters the directory that is the last entry.
    pub(crate) fn descend(&mut self) -> Result<(), TreeError> {
        // The limit on the path is the walk's own: a path of the box may be longer than any.
        if self.levels.len() >= MAX_DEPTH || self.path.len() > MAX_PATH {
            return Err(TreeError::TooDeep { path: self.path.clone(), limit: MAX_DEPTH });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat2(self.here()?, &self.name, flags, Mode::empty(), RESOLVE);
        let opened = opened.map_err(failed("open", &self.path))?;
        // Names alone are of no use: without the right to search, each would fail by itself.
        rustix::fs::statat(&opened, ".", AtFlags::empty()).map_err(failed("search", &self.path))?;
        let directory = Dir::new(opened).map_err(failed("list", &self.path))?;
        self.levels.push(Level { directory, path: self.path.len() });
        Ok(())
    }

    /// What the directory that was entered last does with the base's entries that it does not have.
    pub(crate) fn cover(&self) -> Result<Cover, TreeError> {
        match self.layers {
            Layers::Whole => Ok(Cover::All),
            Layers::Upper => layer::cover(self.here()?, &self.path),
        }
    }

    /// Opens the file that is the last entry; it never waits, whatever the entry has become.
    pub(crate) fn open(&self) -> Result<OwnedFd, TreeError> {
        let opened = open_file(self.here()?, &self.name).map_err(failed("open", &self.path))?;
        self.check_file(opened, &self.path)
    }

    /// Opens a file that was seen before, by its path from the root.
    pub(crate) fn open_again(&self, path: &[u8]) -> Result<OwnedFd, TreeError> {
        let opened = open_file(self.root.as_fd(), path).map_err(failed("open", path))?;
        self.check_file(opened, path)
    }

    fn check_file(&self, opened: OwnedFd, path: &[u8]) -> Result<OwnedFd, TreeError> {
        if self.layers == Layers::Upper {
            layer::check_file(&opened, path)?;
        }
        Ok(opened)
    }

    /// The target of the symbolic link that is the last entry, at most `PATH_MAX` bytes.
    pub(crate) fn read_link(&self) -> Result<Vec<u8>, TreeError> {
        rustix::fs::readlinkat(self.here()?, &self.name, Vec::new())
            .map(CString::into_bytes)
            .map_err(failed("read the link", &self.path))
    }

    /// Fails when the time is up.
    pub(crate) fn check_time(&self) -> Result<(), TreeError> {
        if self.started.elapsed() > self.limits.time {
            return Err(TreeError::TooLong { path: self.path.clone(), limit: self.limits.time });
        }
        Ok(())
    }

    /// The type from the directory, or, where the file system keeps none there, from `fstatat`.
    fn kind(&self, listed: FileType) -> Result<Kind, TreeError> {
        let kind = match listed {
            FileType::Unknown => FileType::from_raw_mode(self.stat()?.st_mode),
            known => known,
        };
        Ok(match kind {
            FileType::Directory => Kind::Directory,
            FileType::RegularFile if self.is_marked_file()? => Kind::Whiteout,
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Special(Special::Fifo),
            FileType::Socket => Kind::Special(Special::Socket),
            FileType::CharacterDevice if self.is_whiteout_device()? => Kind::Whiteout,
            FileType::CharacterDevice | FileType::BlockDevice => Kind::Special(Special::Device),
            FileType::Unknown => Kind::Special(Special::Unknown),
        })
    }

    /// Whether the character device that is the last entry is number 0:0 of an upper layer.
    fn is_whiteout_device(&self) -> Result<bool, TreeError> {
        Ok(self.layers == Layers::Upper && self.stat()?.st_rdev == 0)
    }

    /// Whether the file that is the last entry is an empty one of an upper layer and marked.
    fn is_marked_file(&self) -> Result<bool, TreeError> {
        if self.layers == Layers::Whole || self.stat()?.st_size != 0 {
            return Ok(false);
        }
        match open_file(self.here()?, &self.name) {
            Ok(opened) => layer::is_whiteout(&opened, &self.path),
            // The kernel makes none that its owner can't open.
            Err(Errno::ACCESS) => Ok(false),
            Err(error) => Err(failed("open", &self.path)(error)),
        }
    }

    fn stat(&self) -> Result<Stat, TreeError> {
        rustix::fs::statat(self.here()?, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(failed("stat", &self.path))
    }

    fn here(&self) -> Result<BorrowedFd<'_>, TreeError> {
        match self.levels.last() {
            Some(level) => level.directory.fd().map_err(failed("use", &self.path)),
            None => Ok(self.root.as_fd()),
        }
    }
}

fn open_file<P: rustix::path::Arg>(at: BorrowedFd<'_>, path: P) -> rustix::io::Result<OwnedFd> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat2(at, path, flags, Mode::empty(), RESOLVE)
}

/// An [`TreeError::Io`] for `operation` on `path`.
pub(super) fn failed<E: Into<std::io::Error>>(
    operation: &'static str,
    path: &[u8],
) -> impl FnOnce(E) -> TreeError {
    move |error| TreeError::Io { operation, path: path.to_vec(), source: error.into() }
}
