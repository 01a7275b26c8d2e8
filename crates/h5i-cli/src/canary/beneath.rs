//! Files below a box's home, where everything may be a trap: by descriptors, through no link.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, fchown, fstat, mkdirat, openat,
    openat2, unlinkat,
};
use rustix::io::Errno;

use crate::store::HostId;

/// What stands at a path.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    File(File),
    /// No regular file, or something that is no directory on the way.
    Other,
    /// It, or a directory on the way, can't be opened.
    Closed,
}

const RESOLVE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Opens a box's home.
pub(super) fn open_home(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Opens what stands at a path, if that is a file.
pub(super) fn look(home: impl AsFd, path: &Path) -> io::Result<Found> {
    // Without NONBLOCK a pipe without a writer would hold the caller.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = match openat2(home, path, flags, Mode::empty(), RESOLVE) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => return Ok(Found::Other),
        Err(Errno::ACCESS | Errno::PERM) => return Ok(Found::Closed),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(Found::File(file.into())),
        _ => Ok(Found::Other),
    }
}

/// Makes a file of the owner's (0600), and the directories to it (0700), and gives what it made to
/// `owner`. What is there stays: [`Errno::EXIST`]. On an error no file is left.
pub(super) fn create(
    home: impl AsFd,
    path: &Path,
    bytes: &[u8],
    owner: Option<HostId>,
) -> Result<(), Errno> {
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat2(&home, ".", directory, Mode::empty(), RESOLVE)?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let made = match mkdirat(&at, part.as_os_str(), Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error),
        };
        at = openat2(&at, part.as_os_str(), directory, Mode::empty(), RESOLVE)?;
        if made {
            give(&at, owner)?;
        }
    }
    let name = path.file_name().unwrap_or_default();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = File::from(openat2(&at, name, flags, Mode::RUSR | Mode::WUSR, RESOLVE)?);
    let written = give(&file, owner).and_then(|()| {
        (&file).write_all(bytes).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
    });
    if written.is_err() {
        // The first error is the one to tell.
        unlinkat(&at, name, AtFlags::empty()).ok();
    }
    written
}

fn give(file: impl AsFd, owner: Option<HostId>) -> Result<(), Errno> {
    match owner {
        Some(id) => {
            fchown(file, Some(Uid::from_raw(id.number())), Some(Gid::from_raw(id.number())))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_is_made_is_the_owners_alone_and_nothing_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let home = open_home(dir.path()).unwrap();
        create(&home, Path::new("a/b/c"), b"x", None).unwrap();
        let mode =
            |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("a"), mode("a/b"), mode("a/b/c")), (0o700, 0o700, 0o600));
        let again = create(&home, Path::new("a/b/c"), b"y", None);
        assert_eq!(again, Err(Errno::EXIST));
        assert_eq!(fs::read(dir.path().join("a/b/c")).unwrap(), b"x");
        assert!(matches!(look(&home, Path::new("a/b/c")).unwrap(), Found::File(_)));
        assert!(matches!(look(&home, Path::new("a/b/d")).unwrap(), Found::Nothing));
    }

    #[test]
    fn no_link_is_followed_and_no_pipe_waited_for() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let home = open_home(dir.path()).unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(outside.path().join("secret"), "of the host").unwrap();
        symlink(outside.path(), at("out")).unwrap();
        symlink(outside.path().join("secret"), at("leaf")).unwrap();
        fs::create_dir(at("real")).unwrap();
        fs::write(at("real/file"), "").unwrap();
        symlink("real", at("in")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in ["out/secret", "leaf", "in/file", "pipe", "real", "real/file/x"] {
            let found = look(&home, Path::new(path)).unwrap();
            assert!(matches!(found, Found::Other), "{path}: {found:?}");
        }
        for path in ["out/new", "in/new", "leaf", "real/file/x"] {
            create(&home, Path::new(path), b"x", None).expect_err(path);
        }
        let left: Vec<_> =
            fs::read_dir(outside.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["secret"]);
        create(&home, Path::new("real/new"), b"x", None).unwrap();
    }
}
