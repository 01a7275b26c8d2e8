//! One renewal at a time, among h5i's sessions and with the program itself.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, Timestamps, UTIME_NOW, flock, open, utimensat,
};
use rustix::io::Errno;

/// What was not touched for so long is a leftover.
const STALE: Duration = Duration::from_secs(10);
/// How often one's own is touched.
const TOUCH: Duration = Duration::from_secs(4);
/// How long somebody else's is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Held while a login is renewed.
pub(super) struct LoginLock {
    /// In the order in which they were taken.
    _of_the_program: Vec<DirectoryLock>,
    _directory: OwnedFd,
}

impl LoginLock {
    /// Waits for h5i's other sessions, then for the program; `None` when the program does not let
    /// go within half a minute.
    pub(super) fn take(directory: &Path, programs: &[PathBuf]) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = open(directory, flags, Mode::empty())?;
        loop {
            match flock(&own, FlockOperation::LockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut taken = Vec::new();
        for path in programs {
            match DirectoryLock::take(path, STALE, PATIENCE)? {
                Some(lock) => taken.push(lock),
                None => return Ok(None),
            }
        }
        Ok(Some(Self { _of_the_program: taken, _directory: own }))
    }
}

/// A lock as npm's `proper-lockfile` takes it: a directory that exists, and is touched again and
/// again by who holds it.
pub(super) struct DirectoryLock {
    path: PathBuf,
    /// Ends the thread that touches it.
    end: Option<Sender<()>>,
    toucher: Option<JoinHandle<()>>,
}

impl DirectoryLock {
    pub(super) fn take(
        path: &Path,
        stale: Duration,
        patience: Duration,
    ) -> io::Result<Option<Self>> {
        let deadline = Instant::now() + patience;
        loop {
            let watch = watch_beside(path)?;
            match rustix::fs::mkdir(path, Mode::RWXU) {
                Ok(()) => return Ok(Some(Self::hold(path))),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let fresh = match std::fs::symlink_metadata(path) {
                Ok(found) => {
                    let age = SystemTime::now().duration_since(found.modified()?);
                    stale.saturating_sub(age.unwrap_or_default())
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if fresh.is_zero() {
                match std::fs::remove_dir(path) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let wait = Timespec::try_from(left.min(fresh)).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn hold(path: &Path) -> Self {
        let (end, ended) = channel();
        let touched = path.to_owned();
        let touch = move || {
            while ended.recv_timeout(TOUCH) == Err(RecvTimeoutError::Timeout) {
                let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
                let times = Timestamps { last_access: now, last_modification: now };
                if utimensat(CWD, &touched, &times, AtFlags::SYMLINK_NOFOLLOW).is_err() {
                    return;
                }
            }
        };
        // Without the thread the lock is a leftover after ten seconds; no worse than none.
        let toucher = std::thread::Builder::new().spawn(touch).ok();
        Self { path: path.to_owned(), end: Some(end), toucher }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(toucher) = self.toucher.take() {
            drop(toucher.join());
        }
        // Nobody is left to be told; what stays is a leftover to the program, too.
        drop(std::fs::remove_dir(&self.path));
    }
}

/// Becomes readable when something beside `path` is removed or made.
fn watch_beside(path: &Path) -> io::Result<OwnedFd> {
    let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let beside = path.parent().unwrap_or(Path::new("/"));
    add_watch(&watch, beside, WatchFlags::DELETE | WatchFlags::MOVED_FROM)?;
    Ok(watch)
}
