//! Random names and identities.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::path_error::{Action, PathError};

/// `bytes` random bytes of the kernel as lower-case hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String, PathError> {
    let path = Path::new("/dev/urandom");
    let mut random = vec![0; bytes];
    File::open(path)
        .and_then(|mut source| source.read_exact(&mut random))
        .map_err(PathError::at(Action::Read, path))?;
    let mut text = String::with_capacity(bytes * 2);
    for byte in random {
        // Writing to a String can't fail.
        write!(text, "{byte:02x}").ok();
    }
    Ok(text)
}
