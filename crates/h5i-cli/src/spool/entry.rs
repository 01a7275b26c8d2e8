//! Reads one entry of a spool, which may be anything.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd;

use h5i_export::SpoolFault;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, unlinkat};
use rustix::io::Errno;

/// The largest file that is taken in, in bytes.
pub(crate) const LARGEST: usize = 32 * 1024;

/// What is in an entry.
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    /// When it was last written, in seconds and nanoseconds of Unix time, as the box would have it.
    pub(super) written: (i64, u64),
}

/// The content of an entry; `Ok(None)` when there is none of that name any more.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(spool: impl AsFd, name: &OsStr) -> Result<Option<Content>, SpoolFault> {
    // Opening never waits, follows nothing and takes no terminal.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match openat(spool, name, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(SpoolFault::Link),
        // A socket.
        Err(Errno::NXIO) => return Err(SpoolFault::NotFile),
        Err(_) => return Err(SpoolFault::Unreadable),
    };
    let found = fstat(&opened).map_err(|_errno| SpoolFault::Unreadable)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(SpoolFault::NotFile);
    }
    // Said before the first byte is read; one that grows meanwhile is cut off by the reading.
    if usize::try_from(found.st_size).map_or(true, |size| size > LARGEST) {
        return Err(SpoolFault::TooLarge);
    }
    let written = time_of(&found);
    let mut bytes = Vec::new();
    File::from(opened)
        .take(LARGEST as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|_error| SpoolFault::Unreadable)?;
    if bytes.len() > LARGEST {
        return Err(SpoolFault::TooLarge);
    }
    Ok(Some(Content { bytes, written }))
}

/// When something was last written.
pub(super) fn time_of(found: &Stat) -> (i64, u64) {
    (found.st_mtime, found.st_mtime_nsec)
}

/// Removes an entry; yields whether it is gone.
pub(super) fn remove(spool: impl AsFd, name: &OsStr) -> bool {
    match unlinkat(&spool, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => true,
        // A directory; one that is not empty stays, and is the box's affair.
        Err(_) => unlinkat(&spool, name, AtFlags::REMOVEDIR).is_ok(),
    }
}
