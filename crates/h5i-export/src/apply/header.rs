//! The header of one file's patch.

use git2::{FileMode, Oid};

use super::PatchFault;
use super::lines::Lines;

/// What the header says.
#[derive(Debug)]
pub(super) struct Header {
    /// The path before; the same as `new_path` unless the file was renamed.
    pub(super) old_path: Vec<u8>,
    pub(super) new_path: Vec<u8>,
    pub(super) old_mode: Option<FileMode>,
    pub(super) new_mode: Option<FileMode>,
    pub(super) old_id: Option<Oid>,
    pub(super) new_id: Option<Oid>,
    action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Add,
    Delete,
    Rename,
    Change,
}

impl Header {
    pub(super) fn is_addition(&self) -> bool {
        self.action == Action::Add
    }
    pub(super) fn is_deletion(&self) -> bool {
        self.action == Action::Delete
    }
    pub(super) fn is_rename(&self) -> bool {
        self.action == Action::Rename
    }

    /// Reads from `diff --git` to the line before the first hunk or the binary part.
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Self, PatchFault> {
        let names = lines.after(b"diff --git ").ok_or(PatchFault::NoHeader)?;
        let mut header = Self {
            old_path: Vec::new(),
            new_path: Vec::new(),
            old_mode: None,
            new_mode: None,
            old_id: None,
            new_id: None,
            action: Action::Change,
        };
        let mut renamed = (None, None);
        loop {
            if let Some(mode) = lines.after(b"old mode ") {
                header.old_mode = Some(parse_mode(mode)?);
            } else if let Some(mode) = lines.after(b"new mode ") {
                header.new_mode = Some(parse_mode(mode)?);
            } else if let Some(mode) = lines.after(b"new file mode ") {
                (header.action, header.new_mode) = (Action::Add, Some(parse_mode(mode)?));
            } else if let Some(mode) = lines.after(b"deleted file mode ") {
                (header.action, header.old_mode) = (Action::Delete, Some(parse_mode(mode)?));
            } else if let Some(path) = lines.after(b"rename from ") {
                renamed.0 = Some(unquoted(path)?);
            } else if let Some(path) = lines.after(b"rename to ") {
                renamed.1 = Some(unquoted(path)?);
            } else if let Some(ids) = lines.after(b"index ") {
                header.index(ids)?;
            } else if lines.after(b"similarity index ").is_none() {
                break;
            }
        }
        match renamed {
            (Some(old), Some(new)) if header.action == Action::Change && old != new => {
                (header.action, header.old_path, header.new_path) = (Action::Rename, old, new);
            }
            (None, None) => {
                header.new_path = same_twice(names)?;
                header.old_path = header.new_path.clone();
            }
            _ => return Err(PatchFault::Header),
        }
        if !is_path(&header.old_path) || !is_path(&header.new_path) {
            return Err(PatchFault::Header);
        }
        header.file_lines(lines)?;
        Ok(header)
    }

    /// `OLD..NEW` and perhaps a mode, with full ids; the null id stands for no file.
    fn index(&mut self, line: &[u8]) -> Result<(), PatchFault> {
        let text = str::from_utf8(line).ok().ok_or(PatchFault::Header)?;
        let (ids, mode) = match text.split_once(' ') {
            Some((ids, mode)) => (ids, Some(mode)),
            None => (text, None),
        };
        let (old, new) = ids.split_once("..").ok_or(PatchFault::Header)?;
        let id = |hex: &str| {
            let id = (hex.len() == 40)
                .then(|| hex.parse::<Oid>().ok())
                .flatten()
                .ok_or(PatchFault::Header)?;
            Ok((!id.is_zero()).then_some(id))
        };
        (self.old_id, self.new_id) = (id(old)?, id(new)?);
        if let Some(mode) = mode {
            let mode = Some(parse_mode(mode.as_bytes())?);
            if self.old_mode.is_some() || self.new_mode.is_some() {
                return Err(PatchFault::Header);
            }
            (self.old_mode, self.new_mode) = (mode, mode);
        }
        Ok(())
    }

    /// `---` and `+++`, when there are any, must name the same paths.
    fn file_lines(&self, lines: &mut Lines<'_>) -> Result<(), PatchFault> {
        let Some(old) = lines.after(b"--- ") else { return Ok(()) };
        let new = lines.after(b"+++ ").ok_or(PatchFault::Header)?;
        let check = |line: &[u8], prefix: &[u8], path: &[u8], absent: bool| {
            let line = line.strip_suffix(b"\t").unwrap_or(line);
            let right = if absent {
                line == b"/dev/null"
            } else {
                unquoted(line)? == [prefix, path].concat()
            };
            if right { Ok(()) } else { Err(PatchFault::Header) }
        };
        check(old, b"a/", &self.old_path, self.is_addition())?;
        check(new, b"b/", &self.new_path, self.is_deletion())
    }
}

/// The path of `a/PATH b/PATH`, where both are the same.
fn same_twice(names: &[u8]) -> Result<Vec<u8>, PatchFault> {
    let half = names.len() / 2;
    let (old, new) = match names.split_at_checked(half) {
        Some((old, [b' ', new @ ..])) => (old, new),
        _ => return Err(PatchFault::Header),
    };
    let (old, new) = (unquoted(old)?, unquoted(new)?);
    match (old.strip_prefix(b"a/"), new.strip_prefix(b"b/")) {
        (Some(old), Some(new)) if old == new && !old.is_empty() => Ok(old.to_vec()),
        _ => Err(PatchFault::Header),
    }
}

/// Whether git can have this path in a tree at all.
fn is_path(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').all(|name| {
        !matches!(name, b"" | b"." | b"..") && !name.contains(&0) && !crate::path::is_dot_git(name)
    })
}

/// A path as it is, or in double quotes with the escapes of C.
fn unquoted(text: &[u8]) -> Result<Vec<u8>, PatchFault> {
    let Some(quoted) = text.strip_prefix(b"\"") else { return Ok(text.to_vec()) };
    let mut rest = quoted.strip_suffix(b"\"").ok_or(PatchFault::Header)?;
    let mut path = Vec::with_capacity(rest.len());
    loop {
        let (byte, tail) = match rest {
            [] => return Ok(path),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), tail)
            }
            [b'\\', letter, tail @ ..] => {
                let byte = match letter {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => *letter,
                    _ => return Err(PatchFault::Header),
                };
                (byte, tail)
            }
            [b'\\' | b'"'] | [b'"', ..] => return Err(PatchFault::Header),
            [byte, tail @ ..] => (*byte, tail),
        };
        path.push(byte);
        rest = tail;
    }
}

fn parse_mode(text: &[u8]) -> Result<FileMode, PatchFault> {
    let text = str::from_utf8(text).ok().ok_or(PatchFault::Header)?;
    u32::from_str_radix(text, 8).ok().and_then(file_mode).ok_or(PatchFault::Header)
}

/// The modes of files and links; submodules are never patched.
pub(super) fn file_mode(mode: u32) -> Option<FileMode> {
    [FileMode::Blob, FileMode::BlobExecutable, FileMode::Link, FileMode::BlobGroupWritable]
        .into_iter()
        .find(|&known| u32::from(known) == mode)
}
