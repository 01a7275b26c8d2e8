//! Waits until a file grows.

use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

use crate::path_error::{Action, PathError};

/// How long a change may go unnoticed that fell between the last read and the watch.
const AT_MOST: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Returns when the file at `path` was written to, or after a second.
///
/// # Errors
/// [`PathError`] when it can't be watched.
pub(crate) fn wait_for_change(path: &Path) -> Result<(), PathError> {
    wait(path).map_err(PathError::at(Action::Read, path))
}

fn wait(path: &Path) -> io::Result<()> {
    let watcher = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&watcher, path, WatchFlags::MODIFY)?;
    let mut fds = [PollFd::new(&watcher, PollFlags::IN)];
    match poll(&mut fds, Some(&AT_MOST)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut buffer = [MaybeUninit::uninit(); 4096];
    match Reader::new(&watcher, &mut buffer).next() {
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
