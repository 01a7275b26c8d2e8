//! The rules for exported paths, one variant each.

use super::{MAX_DEPTH, MAX_NAME, MAX_PATH, fold_name};
use crate::escape::{is_bidi_control, is_invisible};

/// A rule that an exported path must keep.
///
/// The rules hold for the strictest of the file systems a patch may land on: ext4 with case
/// folding, HFS+ and APFS, NTFS and FAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PathRule {
    /// The path has no byte, or a component of it has none (`a//b`, `a/`).
    #[error("it has an empty component")]
    Empty,
    /// It starts with `/`.
    #[error("it is absolute")]
    Absolute,
    /// It is longer than [`MAX_PATH`] bytes.
    #[error("it is longer than {MAX_PATH} bytes")]
    PathTooLong,
    /// A component is longer than [`MAX_NAME`] bytes.
    #[error("a name in it is longer than {MAX_NAME} bytes")]
    NameTooLong,
    /// It has more than [`MAX_DEPTH`] components.
    #[error("it is more than {MAX_DEPTH} directories deep")]
    TooDeep,
    /// A component is `.` or `..`.
    #[error("it has a `.` or `..` component")]
    DotComponent,
    /// It has a NUL byte.
    #[error("it has a NUL byte")]
    Nul,
    /// It has a control character, C0, DEL or C1.
    #[error("it has a control character")]
    Control,
    /// It has a `\`, which is a separator elsewhere.
    #[error("it has a backslash, a path separator on other systems")]
    Backslash,
    /// It has a bidirectional mark, override or isolate.
    #[error("it has a character that changes the direction of text")]
    Bidi,
    /// It has a code point that file systems ignore or that leaves no mark.
    #[error("it has an invisible character")]
    Invisible,
    /// A component is, or folds to, `.git`, or is a short name of it.
    #[error("a name in it is or folds to `.git`")]
    DotGit,
    /// A component starts with a letter and a colon.
    #[error("a name in it starts with a drive letter")]
    Drive,
    /// A component names an NTFS stream type (`name::$DATA`, `name:$I30:$INDEX_ALLOCATION`).
    #[error("a name in it names an NTFS stream")]
    Stream,
    /// A component ends with a dot or a space, which Windows drops.
    #[error("a name in it ends with a dot or a space")]
    TrailingDotOrSpace,
    /// A component is a device name on Windows (`CON`, `aux.c`, `LPT1`).
    #[error("a name in it is a device on Windows")]
    Device,
}

/// Checks a whole path.
pub(super) fn check(path: &[u8]) -> Result<(), PathRule> {
    if path.is_empty() {
        return Err(PathRule::Empty);
    }
    if path.len() > MAX_PATH {
        return Err(PathRule::PathTooLong);
    }
    if path.starts_with(b"/") {
        return Err(PathRule::Absolute);
    }
    for (depth, name) in path.split(|&byte| byte == b'/').enumerate() {
        if depth >= MAX_DEPTH {
            return Err(PathRule::TooDeep);
        }
        check_name(name)?;
    }
    Ok(())
}

/// Checks one component.
fn check_name(name: &[u8]) -> Result<(), PathRule> {
    match name {
        b"" => return Err(PathRule::Empty),
        b"." | b".." => return Err(PathRule::DotComponent),
        _ if name.len() > MAX_NAME => return Err(PathRule::NameTooLong),
        _ => {}
    }
    // Ahead of the rules on characters, so that a disguised git directory is called what it is.
    if is_dot_git(name) {
        return Err(PathRule::DotGit);
    }
    check_characters(name)?;
    // Folded: a dotless i becomes a letter of a drive.
    if let [letter, b':', ..] = fold_name(name)[..]
        && letter.is_ascii_alphabetic()
    {
        return Err(PathRule::Drive);
    }
    if name.windows(2).any(|pair| pair == b":$") {
        return Err(PathRule::Stream);
    }
    if matches!(name.last(), Some(b'.' | b' ')) {
        return Err(PathRule::TrailingDotOrSpace);
    }
    if is_device(name) {
        return Err(PathRule::Device);
    }
    Ok(())
}

fn check_characters(name: &[u8]) -> Result<(), PathRule> {
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\0' => return Err(PathRule::Nul),
                '\\' => return Err(PathRule::Backslash),
                c if c.is_control() => return Err(PathRule::Control),
                c if is_bidi_control(c) => return Err(PathRule::Bidi),
                c if is_invisible(c) => return Err(PathRule::Invisible),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether a file system could take `name` for a git directory: the part before the first `:`,
/// folded, without trailing dots and spaces, is `.git` or the short name `git~N`.
pub(crate) fn is_dot_git(name: &[u8]) -> bool {
    let folded = fold_name(name);
    let stem = before(&folded, b":\\");
    let end = stem.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |last| last + 1);
    match &stem[..end] {
        b".git" => true,
        stem => stem
            .strip_prefix(b"git~")
            .is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)),
    }
}

/// Whether Windows opens a device for `name`, with any extension.
fn is_device(name: &[u8]) -> bool {
    let folded = fold_name(name);
    let stem = before(&folded, b".:");
    let end = stem.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    match &stem[..end] {
        b"con" | b"prn" | b"aux" | b"nul" | b"conin$" | b"conout$" | b"clock$" => true,
        stem => {
            let Some(number) = stem.strip_prefix(b"com").or_else(|| stem.strip_prefix(b"lpt"))
            else {
                return false;
            };
            matches!(number, [b'0'..=b'9']) || matches!(number, [0xc2, 0xb9 | 0xb2 | 0xb3])
        }
    }
}

/// The part of `name` before the first of `stops`.
fn before<'a>(name: &'a [u8], stops: &[u8]) -> &'a [u8] {
    let end = name.iter().position(|byte| stops.contains(byte)).unwrap_or(name.len());
    &name[..end]
}
