//! The files of a tree, written by several threads where there are many.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use git2::{IndexEntry, IndexTime, Odb, Oid, Repository};
use rustix::fs::{Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid};

use super::backend::Layout;
use super::checkout::CheckoutError;
use super::prepare::Owner;
use crate::path_error::{Action, PathError};

/// Files that are written before other threads help: starting them costs as much as a few files.
const FEW: usize = 256;
/// Files of one directory that a thread takes at a time.
const BATCH: usize = 32;
/// The most threads, since each holds a blob.
const MOST: usize = 8;

/// What the files of a layout have in common.
#[derive(Clone, Copy)]
pub(super) struct Common<'a> {
    git_dir: &'a Path,
    root: &'a Path,
    owner: Owner,
    inside: (u32, u32),
    mtime: i64,
}

/// A file to be.
pub(super) struct Wanted {
    pub(super) name: Vec<u8>,
    pub(super) id: Oid,
    pub(super) executable: bool,
}

/// Files to be, of one directory.
pub(super) struct Batch {
    dir: Arc<OwnedFd>,
    /// The directory's path.
    path: Vec<u8>,
    files: Vec<Wanted>,
}

/// What was made.
pub(super) struct Made {
    pub(super) entry: IndexEntry,
    /// Whether its content is a pointer of Git LFS.
    pub(super) lfs_pointer: bool,
}

impl<'a> Common<'a> {
    pub(super) fn of(layout: &Layout<'a>) -> Self {
        Self {
            git_dir: layout.objects.path(),
            root: layout.root,
            owner: layout.owner,
            inside: layout.inside,
            mtime: layout.mtime,
        }
    }

    /// The user and group to give a file to.
    pub(super) fn ids(&self) -> Option<(Uid, Gid)> {
        match self.owner {
            Owner::Box(id) => Some((Uid::from_raw(id.number()), Gid::from_raw(id.number()))),
            Owner::Caller => None,
        }
    }

    /// Gives a file to the box's own id. Before its `stat`: a change of owner changes the ctime.
    pub(super) fn give_away(&self, file: BorrowedFd<'_>) -> rustix::io::Result<()> {
        self.ids().map_or(Ok(()), |(uid, gid)| rustix::fs::fchown(file, Some(uid), Some(gid)))
    }

    pub(super) fn times(&self) -> Timestamps {
        let time = Timespec { tv_sec: self.mtime, tv_nsec: 0 };
        Timestamps { last_access: time, last_modification: time }
    }

    /// What the index says of what stands at a path.
    pub(super) fn entry(&self, path: Vec<u8>, stat: &Stat, mode: u32, id: Oid) -> IndexEntry {
        let (uid, gid) = self.inside;
        IndexEntry {
            ctime: index_time(stat.st_ctime, stat.st_ctime_nsec),
            mtime: index_time(stat.st_mtime, stat.st_mtime_nsec),
            dev: low32(stat.st_dev),
            ino: low32(stat.st_ino),
            mode,
            uid,
            gid,
            file_size: if mode == 0o160_000 { 0 } else { low32(stat.st_size) },
            id,
            flags: 0,
            flags_extended: 0,
            path,
        }
    }

    pub(super) fn at<E: Into<std::io::Error>>(
        &self,
        path: &[u8],
        action: Action,
    ) -> impl FnOnce(E) -> CheckoutError {
        let path = self.root.join(OsStr::from_bytes(path));
        move |e| PathError::at(action, &path)(e).into()
    }
}

/// The threads that write: the caller's own, and others once there is work for them.
pub(super) struct Crew<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    common: Common<'env>,
    own: Hand<'env>,
    given: usize,
    queue: Option<SyncSender<Batch>>,
    others: Vec<ScopedJoinHandle<'scope, Result<Vec<Made>, CheckoutError>>>,
}

impl<'scope, 'env> Crew<'scope, 'env> {
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        common: Common<'env>,
        objects: &'env Repository,
    ) -> Result<Self, CheckoutError> {
        let own = Hand { common, odb: objects.odb().map_err(unread)?, made: Vec::new() };
        Ok(Self { scope, common, own, given: 0, queue: None, others: Vec::new() })
    }

    /// Reads an object.
    pub(super) fn odb(&self) -> &Odb<'env> {
        &self.own.odb
    }

    /// Takes down what was made and is no file.
    pub(super) fn note(&mut self, entry: IndexEntry) {
        self.own.made.push(Made { entry, lfs_pointer: false });
    }

    /// Has the files written: soon, by another thread, or now.
    pub(super) fn write(
        &mut self,
        dir: &Arc<OwnedFd>,
        path: &[u8],
        files: Vec<Wanted>,
    ) -> Result<(), CheckoutError> {
        self.given += files.len();
        if self.given > FEW && self.queue.is_none() {
            self.hire();
        }
        let mut files = files.into_iter().peekable();
        while files.peek().is_some() {
            let files = files.by_ref().take(BATCH).collect();
            let batch = Batch { dir: Arc::clone(dir), path: path.to_owned(), files };
            let left = match &self.queue {
                None => Some(batch),
                Some(queue) => match queue.try_send(batch) {
                    Ok(()) => None,
                    // All have enough to do, or have failed, which is told in the end.
                    Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                        Some(batch)
                    }
                },
            };
            left.map_or(Ok(()), |batch| self.own.write(&batch))?;
        }
        Ok(())
    }

    /// Waits for what is being written; yields all that was made, sorted by path.
    pub(super) fn finish(self) -> Result<Vec<Made>, CheckoutError> {
        drop(self.queue);
        let mut made = self.own.made;
        for other in self.others {
            made.extend(other.join().unwrap_or_else(|e| std::panic::resume_unwind(e))?);
        }
        made.sort_unstable_by(|one, other| one.entry.path.cmp(&other.entry.path));
        Ok(made)
    }

    /// Starts the other threads. Where none can be started, one is enough.
    fn hire(&mut self) {
        let others = std::thread::available_parallelism().map_or(1, usize::from).min(MOST) - 1;
        let (queue, batches) = sync_channel(2 * others);
        let batches = Arc::new(Mutex::new(batches));
        for _ in 0..others {
            let (common, batches) = (self.common, Arc::clone(&batches));
            let named = std::thread::Builder::new().name("checkout".to_owned());
            let started = named.spawn_scoped(self.scope, move || help(common, &batches));
            self.others.extend(started);
        }
        self.queue = Some(queue);
    }
}

/// Writes what comes. libgit2's handles are for one thread each; packs are mapped once.
fn help(common: Common<'_>, batches: &Mutex<Receiver<Batch>>) -> Result<Vec<Made>, CheckoutError> {
    let objects = Repository::open_bare(common.git_dir).map_err(unread)?;
    let odb = objects.odb().map_err(unread)?;
    let mut hand = Hand { common, odb, made: Vec::new() };
    let next = || batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(batch) = next() {
        hand.write(&batch)?;
    }
    Ok(hand.made)
}

fn unread(source: git2::Error) -> CheckoutError {
    CheckoutError::Git { path: Vec::new(), source }
}

/// What one thread writes with, and has written.
struct Hand<'a> {
    common: Common<'a>,
    odb: Odb<'a>,
    made: Vec<Made>,
}

impl Hand<'_> {
    fn write(&mut self, batch: &Batch) -> Result<(), CheckoutError> {
        for wanted in &batch.files {
            let slash: &[u8] = if batch.path.is_empty() { b"" } else { b"/" };
            let path = [&batch.path, slash, &wanted.name].concat();
            let made = self.write_one(batch.dir.as_fd(), wanted, path)?;
            self.made.push(made);
        }
        Ok(())
    }

    fn write_one(
        &self,
        dir: BorrowedFd<'_>,
        wanted: &Wanted,
        path: Vec<u8>,
    ) -> Result<Made, CheckoutError> {
        let common = self.common;
        let (mode, recorded) =
            if wanted.executable { (0o755, 0o100_755) } else { (0o644, 0o100_644) };
        let object = self
            .odb
            .read(wanted.id)
            .map_err(|source| CheckoutError::Git { path: path.clone(), source })?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = OsStr::from_bytes(&wanted.name);
        let opened = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))
            .map_err(common.at(&path, Action::Create))?;
        let mut file = File::from(opened);
        file.write_all(object.data()).map_err(common.at(&path, Action::Write))?;
        common.give_away(file.as_fd()).map_err(common.at(&path, Action::ChangeOwner))?;
        rustix::fs::futimens(&file, &common.times())
            .map_err(common.at(&path, Action::ChangeMode))?;
        let stat = rustix::fs::fstat(&file).map_err(common.at(&path, Action::Inspect))?;
        let lfs_pointer = is_lfs_pointer(object.data());
        Ok(Made { entry: common.entry(path, &stat, recorded, wanted.id), lfs_pointer })
    }
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
