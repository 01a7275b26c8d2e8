//! The directories of a box's own whose modes the box may change under the host's feet.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use h5i_confine::UPPER;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::stored_box::StoredBox;
use crate::path_error::{Action, PathError};
use crate::workspace::{Standing, Workspace};

impl StoredBox {
    /// Gives the owner of the box's own directories (workspace, home, spool) all rights on these
    /// themselves, where a program of the box has taken some away. The host makes them, mounts them
    /// and reads them, an ordinary user's host with no more rights than their owner has; a session
    /// can't begin in them without.
    ///
    /// No link is followed: what is no directory is left for whoever uses it to tell.
    ///
    /// # Errors
    /// [`PathError`] when one can't be looked at or changed.
    pub(crate) fn open_own_roots(&self) -> Result<(), PathError> {
        let box_dir = self.box_dir();
        let roots: [PathBuf; 4] = [
            Workspace::work_dir(&box_dir),
            Standing::area(&box_dir).join(UPPER),
            box_dir.join("home"),
            box_dir.join("spool"),
        ];
        roots.iter().try_for_each(|root| give_rights_back(root))
    }
}

/// Gives the owner of a directory all rights on it.
fn give_rights_back(path: &Path) -> Result<(), PathError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found: OwnedFd = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        // A box has one of the two workspaces.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        opened => opened.map_err(PathError::at(Action::Open, path))?,
    };
    let stat = rustix::fs::fstat(&found).map_err(PathError::at(Action::Inspect, path))?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.contains(Mode::RWXU) {
        return Ok(());
    }
    // fchmod refuses O_PATH, and a name could be exchanged.
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    rustix::fs::chmod(link, mode | Mode::RWXU).map_err(PathError::at(Action::ChangeMode, path))
}
