//! What overlayfs writes into an upper layer besides files, as the kernel documents it.
//!
//! The box has no way to write these marks: the kernel keeps the names of the attributes from it.
//! They are believed no further than that something of the base is absent.

use std::os::fd::AsFd;

use rustix::fs::fgetxattr;
use rustix::io::Errno;

use super::TreeError;
use super::walk::failed;

/// What a directory of an upper layer does with the base's entries of the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// It stands for all of them: those that it does not have are gone.
    All,
    /// Those that it does not have are as in the base.
    Own,
}

const OPAQUE: &str = "user.overlay.opaque";
const REDIRECT: &str = "user.overlay.redirect";
const METACOPY: &str = "user.overlay.metacopy";
const WHITEOUT: &str = "user.overlay.whiteout";

/// What the directory `fd` covers.
pub(super) fn cover(fd: impl AsFd + Copy, path: &[u8]) -> Result<Cover, TreeError> {
    if attribute(fd, REDIRECT, path)?.is_some() {
        return Err(TreeError::Indirect { path: path.to_vec(), attribute: REDIRECT });
    }
    // "x" says only that the directory may have whiteouts that are marked by attribute.
    Ok(match attribute(fd, OPAQUE, path)? {
        Some(b'y') => Cover::All,
        _ => Cover::Own,
    })
}

/// Fails when the file `fd` does not hold its own content.
pub(super) fn check_file(fd: impl AsFd + Copy, path: &[u8]) -> Result<(), TreeError> {
    for name in [METACOPY, REDIRECT] {
        if attribute(fd, name, path)?.is_some() {
            return Err(TreeError::Indirect { path: path.to_vec(), attribute: name });
        }
    }
    Ok(())
}

/// Whether the empty file `fd` marks an absence.
pub(super) fn is_whiteout(fd: impl AsFd + Copy, path: &[u8]) -> Result<bool, TreeError> {
    Ok(attribute(fd, WHITEOUT, path)?.is_some())
}

/// The first byte of an attribute, 0 for an empty one; `None` where there is none.
fn attribute(fd: impl AsFd, name: &str, path: &[u8]) -> Result<Option<u8>, TreeError> {
    let mut value = [0_u8; 256];
    match fgetxattr(fd, name, &mut value) {
        Ok(_) => Ok(Some(value[0])),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        // Longer than any that overlayfs writes, except a path to elsewhere.
        Err(Errno::RANGE) => Ok(Some(0)),
        Err(error) => Err(failed("read an attribute of", path)(error)),
    }
}
