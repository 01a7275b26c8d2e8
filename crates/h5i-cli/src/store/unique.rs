//! Random names and identities.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::path_error::{Action, PathError};

/// `count` random bytes of the kernel.
pub(crate) fn random_bytes(count: usize) -> Result<Vec<u8>, PathError> {
    let path = Path::new("/dev/urandom");
    let mut random = vec![0; count];
    File::open(path)
        .and_then(|mut source| source.read_exact(&mut random))
        .map_err(PathError::at(Action::Read, path))?;
    Ok(random)
}

/// `bytes` random bytes of the kernel as lower-case hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String, PathError> {
    let mut text = String::with_capacity(bytes * 2);
    for byte in random_bytes(bytes)? {
        // Writing to a String can't fail.
        write!(text, "{byte:02x}").ok();
    }
    Ok(text)
}
