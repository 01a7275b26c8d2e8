//! Files that are replaced whole.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::unique::random_hex;
use crate::path_error::{Action, PathError};

/// Replaces `name` in `dir` by a file with `bytes`, mode 0600: readers see the old one or the new
/// one. Not synced: disposable state does not wait for the disk. On an error nothing is left.
pub(crate) fn replace_file(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), PathError> {
    let temp = dir.join(format!(".{name}.{}.tmp", random_hex(4)?));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temp)
        .map_err(PathError::at(Action::Create, &temp))
        .and_then(|mut file| file.write_all(bytes).map_err(PathError::at(Action::Write, &temp)))
        .and_then(|()| {
            let target = dir.join(name);
            fs::rename(&temp, &target).map_err(PathError::at(Action::Rename, &target))
        });
    if written.is_err() {
        // The first error is the one to tell; a temp file that can't be removed is gc's.
        fs::remove_file(&temp).ok();
    }
    written
}
