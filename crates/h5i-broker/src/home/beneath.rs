//! Files below a directory, and nowhere else.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2, renameat, unlinkat,
};
use rustix::io::Errno;

/// The largest file that is read, in bytes.
pub(super) const MAX_FILE: u64 = 1 << 20;

/// Whether links are followed on the way to a file. None leads out in either case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// A person's own, inside of the directory: dotfiles are often links.
    Followed,
    /// What lies there is somebody else's.
    Refused,
}

impl Links {
    fn flags(self) -> ResolveFlags {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match self {
            Self::Followed => beneath,
            Self::Refused => beneath | ResolveFlags::NO_SYMLINKS,
        }
    }
}

/// What is found at a path.
pub(super) enum Found {
    Bytes(Vec<u8>),
    /// Larger than [`MAX_FILE`].
    TooLarge,
    /// A directory, a pipe, a device, or a link where none is followed.
    Other,
    /// A link that leads out of the directory.
    LeadsOut,
    Nothing,
}

/// Reads a regular file.
pub(super) fn read(directory: impl AsFd, path: &Path, links: Links) -> io::Result<Found> {
    // Without NONBLOCK a pipe without a writer would hold the caller.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = match openat2(directory, path, flags, Mode::empty(), links.flags()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Found::Nothing),
        Err(Errno::XDEV) => return Ok(Found::LeadsOut),
        Err(Errno::LOOP | Errno::NXIO) => return Ok(Found::Other),
        Err(error) => return Err(error.into()),
    };
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Ok(Found::Other);
    }
    let mut bytes = Vec::new();
    File::from(file).take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > MAX_FILE { Found::TooLarge } else { Found::Bytes(bytes) })
}

/// Opens a directory, without following links.
pub(super) fn open_directory(directory: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(directory, path, flags, Mode::empty(), Links::Refused.flags())
}

/// Makes a file of the owner's (0600), and the directories to it (0700). One that is there stays:
/// [`io::ErrorKind::AlreadyExists`].
pub(super) fn create(directory: impl AsFd, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = parent(&directory, path)?;
    write_new(&parent, Path::new(path.file_name().unwrap_or_default()), bytes)
}

/// Puts a file into the place of what is there, a link for instance.
pub(super) fn replace(directory: impl AsFd, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = parent(&directory, path)?;
    let name = path.file_name().unwrap_or_default();
    let new = Path::new(".h5i-new");
    match unlinkat(&parent, new, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    write_new(&parent, new, bytes)?;
    Ok(renameat(&parent, new, &parent, name)?)
}

fn write_new(parent: &OwnedFd, name: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = openat2(parent, name, flags, mode, Links::Refused.flags())?;
    File::from(file).write_all(bytes)
}

/// The directory of a file, made where it is missing.
fn parent(directory: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let mut at = open_directory(directory, Path::new("."))?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        match mkdirat(&at, part.as_os_str(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = open_directory(&at, Path::new(part.as_os_str()))?;
    }
    Ok(at)
}
