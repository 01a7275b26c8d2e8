//! Counts what a directory tree takes, a part at a time.
//!
//! The tree is hostile: as deep and as wide as its owner likes, and changed meanwhile. One directory
//! is open at a time, and the names that are kept are bounded.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom, Stat, fstat, openat, openat2,
    seek, statat,
};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// What each entry counts at least: its inode, its name, and what little is in it.
pub(crate) const ENTRY: u64 = 4096;
/// Bytes of names of directories that are kept for later, over a whole pass.
const NAMES: usize = 1 << 20;
/// Files with several names that are told apart; what is beyond counts for each of its names.
const LINKED: usize = 1 << 16;
/// The longest path that one call takes.
const PATH: usize = 4000;
/// How many entries are looked at between two looks at the clock.
const BETWEEN: u32 = 64;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Bytes, with at least [`ENTRY`] for each entry.
    pub(crate) bytes: u64,
    /// Those of them that were there before the moment that was named, and are as they were: the
    /// kernel notes when a file was changed last, and whoever owns it can't set that.
    pub(crate) before: u64,
    pub(crate) entries: u64,
}

/// A moment by the clock that file systems note changes by.
pub(crate) type Moment = (i64, i64);

/// Now. A change that comes later is noted at this moment or after it, never before.
pub(crate) fn moment() -> Moment {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}

/// One pass through several trees.
#[derive(Debug)]
pub(crate) struct DiskCount {
    roots: Vec<OwnedFd>,
    since: Moment,
    sum: Counted,
    /// Where it stands in the last of the roots: the path, and a frame for each directory on it.
    way: Vec<u8>,
    frames: Vec<Frame>,
    names: usize,
    linked: BTreeSet<(u64, u64)>,
}

/// A directory on the way.
#[derive(Debug)]
struct Frame {
    /// How much of the way names it.
    length: usize,
    /// Directories in it that are still to be counted.
    waiting: Vec<Box<[u8]>>,
    /// Where reading it goes on; `None` when it was read to its end.
    from: Option<u64>,
    /// The mode that it had before it was made readable.
    closed: Option<Mode>,
}

impl DiskCount {
    /// Begins a pass through these directories, to tell what has changed since a moment.
    pub(crate) fn new(roots: Vec<OwnedFd>, since: Moment) -> Self {
        let (sum, way, frames, names, linked) = Default::default();
        Self { roots, since, sum, way, frames, names, linked }
    }

    /// Goes on until the moment has come or all is counted; yields the sum then, or as soon as it is
    /// `enough`.
    pub(crate) fn go_on(&mut self, until: Instant, enough: u64) -> Option<Counted> {
        loop {
            if self.sum.bytes > enough {
                return Some(self.sum);
            }
            if self.frames.is_empty() {
                let Some(root) = self.roots.last() else { return Some(self.sum) };
                // Nothing has a name above a root, so what it takes itself is counted here.
                if let Ok(itself) = fstat(root) {
                    self.sum.add(&itself, self.since);
                }
                self.way.clear();
                self.frames.push(Frame::new(0));
            }
            self.step(until, enough);
            if self.frames.is_empty() {
                self.roots.pop();
            }
            if Instant::now() >= until && !self.roots.is_empty() {
                return None;
            }
        }
    }

    /// Reads on in the directory on top, or goes into one below it, or leaves it.
    fn step(&mut self, until: Instant, enough: u64) {
        let Some(top) = self.frames.last_mut() else { return };
        if let Some(name) = top.waiting.pop() {
            self.names = self.names.saturating_sub(name.len());
            self.way.truncate(top.length);
            if !self.way.is_empty() {
                self.way.push(b'/');
            }
            self.way.extend_from_slice(&name);
            self.frames.push(Frame::new(self.way.len()));
            return;
        }
        let Some(from) = top.from else {
            self.leave();
            return;
        };
        self.way.truncate(top.length);
        if self.read(from, until, enough).is_err()
            && let Some(top) = self.frames.last_mut()
        {
            // It is gone, or no directory any more: so is what was in it.
            top.from = None;
        }
    }

    fn read(&mut self, from: u64, until: Instant, enough: u64) -> rustix::io::Result<()> {
        let Some(root) = self.roots.last() else { return Ok(()) };
        let fd = match open_below(root, &self.way, OFlags::RDONLY) {
            Ok(fd) if can_be_searched(&fd) => fd,
            Ok(_) | Err(Errno::ACCESS) => {
                let (fd, closed) = open_closed(root, &self.way)?;
                if let Some(top) = self.frames.last_mut() {
                    top.closed = top.closed.or(Some(closed));
                }
                fd
            }
            Err(error) => return Err(error),
        };
        if from != 0 {
            seek(&fd, SeekFrom::Start(from))?;
        }
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
        let mut entries = RawDir::new(&fd, &mut buffer);
        let mut met: u32 = 0;
        let Some(top) = self.frames.last_mut() else { return Ok(()) };
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            met += 1;
            self.sum.entries += 1;
            // One that went meanwhile takes nothing.
            if let Ok(found) = statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                let directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
                let again = !directory
                    && found.st_nlink > 1
                    && (self.linked.contains(&(found.st_dev, found.st_ino))
                        || self.linked.len() < LINKED
                            && !self.linked.insert((found.st_dev, found.st_ino)));
                if !again {
                    self.sum.add(&found, self.since);
                }
                if directory {
                    self.names += name.to_bytes().len();
                    top.waiting.push(name.to_bytes().into());
                }
            }
            // At least one name is taken along, so that there is always a next step.
            let full = self.names >= NAMES && !top.waiting.is_empty();
            let over = self.sum.bytes > enough;
            if full || over || (met.is_multiple_of(BETWEEN) && Instant::now() >= until) {
                top.from = Some(entry.next_entry_cookie());
                return Ok(());
            }
        }
        top.from = None;
        Ok(())
    }

    /// Leaves the directory on top as it was found.
    fn leave(&mut self) {
        let Some(top) = self.frames.pop() else { return };
        if let (Some(mode), Some(root)) = (top.closed, self.roots.last()) {
            self.way.truncate(top.length);
            // One that is gone needs no mode.
            open_below(root, &self.way, OFlags::PATH).and_then(|fd| set_mode(&fd, mode)).ok();
        }
    }
}

impl Drop for DiskCount {
    fn drop(&mut self) {
        while !self.frames.is_empty() {
            self.leave();
        }
    }
}

impl Counted {
    fn add(&mut self, found: &Stat, since: Moment) {
        let bytes = cost(found);
        self.bytes = self.bytes.saturating_add(bytes);
        let changed = (found.st_ctime, i64::try_from(found.st_ctime_nsec).unwrap_or(0));
        if changed < since {
            self.before = self.before.saturating_add(bytes);
        }
    }
}

impl Frame {
    fn new(length: usize) -> Self {
        Self { length, waiting: Vec::new(), from: Some(0), closed: None }
    }
}

fn cost(found: &Stat) -> u64 {
    u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(512).max(ENTRY)
}

/// Opens the directory that a path below `root` leads to, over no link.
fn open_below(root: &OwnedFd, way: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |from: BorrowedFd<'_>, path: &[u8], flags| {
        let path = if path.is_empty() { b".".as_slice() } else { path };
        openat2(from, path, flags, Mode::empty(), resolve)
    };
    let (mut rest, mut at) = (way, None::<OwnedFd>);
    while rest.len() > PATH {
        let cut = rest[..PATH].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let from = at.as_ref().unwrap_or(root);
        let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        at = Some(open(std::os::fd::AsFd::as_fd(from), &rest[..cut], through)?);
        rest = &rest[cut + 1..];
    }
    open(std::os::fd::AsFd::as_fd(at.as_ref().unwrap_or(root)), rest, flags)
}

/// Whether what is in a directory can be looked at: a name alone tells nothing.
fn can_be_searched(fd: &OwnedFd) -> bool {
    let mode = fstat(fd).map(|found| Mode::from_raw_mode(found.st_mode));
    rustix::process::geteuid().is_root() || mode.is_ok_and(|mode| mode.contains(Mode::XUSR))
}

/// Opens a directory that its owner has closed, after the owner's rights to read and search it are
/// given back; yields the mode that it had. What could not be looked into could hold anything.
fn open_closed(root: &OwnedFd, way: &[u8]) -> rustix::io::Result<(OwnedFd, Mode)> {
    let closed = open_below(root, way, OFlags::PATH)?;
    let found = Mode::from_raw_mode(fstat(&closed)?.st_mode);
    set_mode(&closed, found | Mode::RUSR | Mode::XUSR)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((openat(&closed, ".", flags, Mode::empty())?, found))
}

/// Sets the mode of what a descriptor of a path stands for.
fn set_mode(fd: &OwnedFd, mode: Mode) -> rustix::io::Result<()> {
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)
}

/// Opens the directories that are counted.
pub(crate) fn roots(paths: &[PathBuf]) -> io::Result<Vec<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |path: &PathBuf| rustix::fs::open(path, flags, Mode::empty());
    Ok(paths.iter().map(open).collect::<rustix::io::Result<_>>()?)
}

#[cfg(test)]
mod tests;
