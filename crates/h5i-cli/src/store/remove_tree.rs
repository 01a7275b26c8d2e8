//! Removal of trees that a box has written.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::unique::random_hex;
use crate::path_error::{Action, PathError};

/// Removes the directory at `path` and all below it. An absent one is fine.
///
/// Nothing is followed: every step is by directory descriptor and `O_NOFOLLOW`. Directories without
/// permissions are given them first. Depth costs neither stack nor descriptors: a directory found
/// deeper down is moved to the top and waits there, so three descriptors are enough for any tree.
///
/// # Errors
/// The first attempt that the kernel refuses, with its path as far as it is known.
pub(crate) fn remove_tree(path: &Path) -> Result<(), PathError> {
    let top = match open_dir(CWD, path.as_os_str().as_bytes()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(e) => return Err(PathError::at(Action::Open, path)(e)),
    };
    let mut removal = Removal {
        shown: path,
        top: top.as_fd(),
        waiting: Vec::new(),
        // Random, so that no name that the box chose is in the way.
        prefix: format!(".h5i-rm.{}", random_hex(8)?),
        moved: 0,
    };
    removal.empty(top.as_fd(), Place::Top)?;
    while let Some(name) = removal.waiting.pop() {
        let dir = open_dir(top.as_fd(), name.to_bytes())
            .map_err(PathError::at(Action::Open, &removal.at(&name)))?;
        removal.empty(dir.as_fd(), Place::Below)?;
        rustix::fs::unlinkat(&top, &name, AtFlags::REMOVEDIR)
            .map_err(PathError::at(Action::Remove, &removal.at(&name)))?;
    }
    rustix::fs::rmdir(path).map_err(PathError::at(Action::Remove, path))
}

struct Removal<'a> {
    shown: &'a Path,
    top: BorrowedFd<'a>,
    waiting: Vec<CString>,
    prefix: String,
    moved: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Below,
}

impl Removal<'_> {
    /// Unlinks the files of a directory; its directories join those that wait in the top one.
    fn empty(&mut self, dir: BorrowedFd<'_>, place: Place) -> Result<(), PathError> {
        for (name, kind) in list(dir).map_err(PathError::at(Action::List, self.shown))? {
            if kind != FileType::Directory {
                match rustix::fs::unlinkat(dir, &name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => continue,
                    // A file system that does not tell types: it was a directory after all.
                    Err(Errno::ISDIR) => {}
                    Err(e) => return Err(PathError::at(Action::Remove, &self.at(&name))(e)),
                }
            }
            let name = if place == Place::Top { name } else { self.lift(dir, &name)? };
            self.waiting.push(name);
        }
        Ok(())
    }

    /// Moves a directory from below to the top, under a name of its own.
    fn lift(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> Result<CString, PathError> {
        self.moved += 1;
        let lifted = CString::new(format!("{}.{}", self.prefix, self.moved))
            .map_err(|e| PathError::at(Action::Rename, &self.at(name))(std::io::Error::from(e)))?;
        // Moving a directory rewrites its `..`, which needs write permission on itself.
        drop(open_dir(dir, name.to_bytes()).map_err(PathError::at(Action::Open, &self.at(name)))?);
        rustix::fs::renameat_with(dir, name, self.top, &lifted, RenameFlags::NOREPLACE)
            .map_err(PathError::at(Action::Rename, &self.at(name)))?;
        Ok(lifted)
    }

    /// The path to show in an error: below which tree, and the last name.
    fn at(&self, name: &CStr) -> PathBuf {
        self.shown.join(OsStr::from_bytes(name.to_bytes()))
    }
}

/// Opens a directory for listing and makes sure that its owner may change it.
fn open_dir(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = match rustix::fs::openat(at, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let by_path = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let handle = rustix::fs::openat(at, name, by_path, Mode::empty())?;
            // chmod by descriptor: fchmod refuses O_PATH, and a name could be exchanged.
            let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
            rustix::fs::chmod(link, Mode::RWXU)?;
            rustix::fs::openat(at, name, flags, Mode::empty())?
        }
        other => other?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&dir)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        rustix::fs::fchmod(&dir, Mode::RWXU)?;
    }
    Ok(dir)
}

/// All names of a directory with their types, read before anything is removed: removing while
/// listing may skip names.
fn list(dir: BorrowedFd<'_>) -> Result<Vec<(CString, FileType)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            found.push((name.to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}
