//! Removal of trees that a box has written.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::unique::random_hex;
use crate::path_error::{Action, PathError};

/// How many directories are open at most, each in the one before it.
const DEEPEST: usize = 16;
/// How many names of a directory are known at a time.
const NAMES: usize = 4096;

/// Removes the directory at `path` and all below it. An absent one is fine.
///
/// Nothing is followed: every step is by directory descriptor and `O_NOFOLLOW`. Directories without
/// permissions are given them first. Neither depth nor width costs more than a bounded number of
/// descriptors and names: a directory found deeper down than that is moved to the top and waits
/// there, and a directory is listed again when the names that were read are gone.
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
        open: vec![Open { dir: top, name: CString::default(), inside: Vec::new() }],
        // Random, so that no name that the box chose is in the way.
        prefix: format!(".h5i-rm.{}", random_hex(8)?),
        moved: 0,
    };
    removal.all()?;
    rustix::fs::rmdir(path).map_err(PathError::at(Action::Remove, path))
}

struct Removal<'a> {
    shown: &'a Path,
    /// The way from the top to the directory that is being emptied.
    open: Vec<Open>,
    prefix: String,
    moved: u64,
}

/// A directory that is being emptied.
struct Open {
    dir: OwnedFd,
    /// Its name in the one before it.
    name: CString,
    /// Directories in it that are known and still there.
    inside: Vec<CString>,
}

impl Removal<'_> {
    /// Empties the top.
    fn all(&mut self) -> Result<(), PathError> {
        while let Some(here) = self.open.last_mut() {
            if let Some(name) = here.inside.pop() {
                self.enter(name)?;
                continue;
            }
            let names = list(here.dir.as_fd()).map_err(PathError::at(Action::List, self.shown))?;
            if !names.is_empty() {
                self.unlink(names)?;
                continue;
            }
            let Some(Open { name, dir, .. }) = self.open.pop() else { break };
            drop(dir);
            if let Some(above) = self.open.last() {
                rustix::fs::unlinkat(&above.dir, &name, AtFlags::REMOVEDIR)
                    .map_err(PathError::at(Action::Remove, &self.at(&name)))?;
            }
        }
        Ok(())
    }

    /// Unlinks the files of the last open directory, and notes its directories.
    fn unlink(&mut self, names: Vec<(CString, FileType)>) -> Result<(), PathError> {
        let shown = self.shown;
        let Some(here) = self.open.last_mut() else { return Ok(()) };
        for (name, kind) in names {
            if kind != FileType::Directory {
                match rustix::fs::unlinkat(&here.dir, &name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => continue,
                    // A file system that does not tell types: it was a directory after all.
                    Err(Errno::ISDIR) => {}
                    Err(e) => return Err(PathError::at(Action::Remove, &at(shown, &name))(e)),
                }
            }
            here.inside.push(name);
        }
        Ok(())
    }

    /// Opens a directory of the last open one or, too deep down, moves it to the top.
    fn enter(&mut self, name: CString) -> Result<(), PathError> {
        let deep = self.open.len() >= DEEPEST;
        let (Some(above), Some(top)) = (self.open.last(), self.open.first()) else {
            return Ok(());
        };
        // Moving a directory rewrites its `..`, which needs write permission on itself.
        let dir = open_dir(above.dir.as_fd(), name.to_bytes())
            .map_err(PathError::at(Action::Open, &self.at(&name)))?;
        if deep {
            self.moved += 1;
            let lifted = format!("{}.{}", self.prefix, self.moved);
            rustix::fs::renameat_with(&above.dir, &name, &top.dir, lifted, RenameFlags::NOREPLACE)
                .map_err(PathError::at(Action::Rename, &self.at(&name)))?;
        } else {
            self.open.push(Open { dir, name, inside: Vec::new() });
        }
        Ok(())
    }

    /// The path to show in an error: below which tree, and the last name.
    fn at(&self, name: &CStr) -> PathBuf {
        at(self.shown, name)
    }
}

fn at(shown: &Path, name: &CStr) -> PathBuf {
    shown.join(OsStr::from_bytes(name.to_bytes()))
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

/// Names of a directory with their types, read before anything is removed: removing while listing
/// may skip names. None is left when it says none.
fn list(dir: BorrowedFd<'_>) -> Result<Vec<(CString, FileType)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            found.push((name.to_owned(), entry.file_type()));
        }
        if found.len() == NAMES {
            break;
        }
    }
    Ok(found)
}
