//! Reads a secret from a file of the host.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use h5i_policy::SecretPart;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use zeroize::Zeroizing;

use crate::json_spans::Node;
use crate::secret::Secret;

/// The largest file that is read, in bytes.
pub(crate) const MAX_FILE: usize = 64 << 10;

/// Why a file gives no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostFileError {
    /// It can't be opened or read.
    #[error("it can't be read")]
    Read(#[source] io::Error),
    /// It is a directory, a pipe, a device.
    #[error("it is no regular file")]
    NotRegular,
    /// It belongs to another user than the caller or root, who could change the secret.
    #[error("it belongs to another user; give it to yourself")]
    OthersOwn,
    /// Others may write it.
    #[error("others may write it; take that from them (chmod go-w)")]
    OthersWrite,
    /// It is larger than 64 KiB.
    #[error("it is larger than 64 KiB")]
    TooLarge,
    /// It has not so many lines.
    #[error("it has no line {0}")]
    NoLine(u32),
    /// It is no JSON, and a JSON Pointer is asked for.
    #[error("it is no JSON document")]
    NotJson,
    /// The JSON Pointer leads to nothing, or to something else than a string.
    #[error("there is no string at the JSON pointer")]
    NoString,
    /// It is empty.
    #[error("it is empty")]
    Empty,
}

/// A file that was read, and what told which one it was.
pub(crate) struct HostFile {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) stat: Stat,
}

impl HostFile {
    /// Reads a regular file of the caller's or of root's that nobody else may write. A link is
    /// followed: who may place one may as well name the file itself.
    pub(crate) fn read(path: &Path) -> Result<Self, HostFileError> {
        // Without NONBLOCK a pipe without a writer would hold the caller.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let opened = openat(CWD, path, flags, Mode::empty());
        let file = opened.map_err(|error| HostFileError::Read(error.into()))?;
        let stat = fstat(&file).map_err(|error| HostFileError::Read(error.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(HostFileError::NotRegular);
        }
        if stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(HostFileError::OthersOwn);
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(HostFileError::OthersWrite);
        }
        // Room for all of it, so that no copy is left behind by growing.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE + 1));
        let limit = MAX_FILE as u64 + 1;
        File::from(file).take(limit).read_to_end(&mut bytes).map_err(HostFileError::Read)?;
        if bytes.len() > MAX_FILE {
            return Err(HostFileError::TooLarge);
        }
        Ok(Self { bytes, stat })
    }
}

/// The secret in a file, without the end of its line.
pub(super) fn read(path: &Path, part: &SecretPart) -> Result<Secret, HostFileError> {
    let file = HostFile::read(path)?;
    let secret = match part {
        SecretPart::Whole => without_line_end(&file.bytes).to_vec(),
        SecretPart::Line(number) => {
            let before = usize::try_from(number.get() - 1).unwrap_or(usize::MAX);
            let line = file.bytes.split_inclusive(|byte| *byte == b'\n').nth(before);
            without_line_end(line.ok_or(HostFileError::NoLine(number.get()))?).to_vec()
        }
        SecretPart::Json(pointer) => {
            let text = std::str::from_utf8(&file.bytes).ok().ok_or(HostFileError::NotJson)?;
            let node = Node::parse(text).ok_or(HostFileError::NotJson)?;
            let found = node.pointed(text, pointer.as_str()).and_then(|node| node.string(text));
            found.ok_or(HostFileError::NoString)?.as_bytes().to_vec()
        }
        _ => return Err(HostFileError::NoString),
    };
    if secret.is_empty() { Err(HostFileError::Empty) } else { Ok(Secret::new(secret)) }
}

/// Without one line feed at the end, or one carriage return and line feed.
pub(super) fn without_line_end(bytes: &[u8]) -> &[u8] {
    let Some(line) = bytes.strip_suffix(b"\n") else { return bytes };
    line.strip_suffix(b"\r").unwrap_or(line)
}
