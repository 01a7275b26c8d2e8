//! A tree from bytes, as an archive would describe it.
//!
//! Entries follow each other: a byte that says what, a byte with the length of the name, the name,
//! a byte with the length of the content, the content. The tree begins as the base's, so that a
//! script of nothing changes nothing.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};

/// The most entries of one script.
const MOST: usize = 64;

/// One entry of a script.
struct Entry<'a> {
    what: u8,
    name: &'a [u8],
    content: &'a [u8],
}

/// Makes the tree below `root`. What can't be made is left out, as an archive program would.
pub(super) fn perform(root: &Path, script: &[u8]) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, root, flags, Mode::empty()).expect("opens the tree");
    for (what, name, content) in [
        (0, &b"a.txt"[..], &b"one\ntwo\nthree\nfour\nfive\n"[..]),
        (0, b"no-end", b"no end of line"),
        (1, b"run.sh", b"#!/bin/sh\n"),
        (2, b"link", b"a.txt"),
        (0, b"empty", b""),
        (0, b".gitignore", b"*.o\ntarget/\n"),
        (0, b"dir/deep.txt", b"deep\n"),
        (0, b"dir/blob.bin", &[0, 1, 2, 3, 0xff]),
    ] {
        make(&root, &Entry { what, name, content });
    }
    for entry in entries(script).take(MOST) {
        make(&root, &entry);
    }
}

fn entries(script: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut rest = script;
    std::iter::from_fn(move || {
        let (&what, after) = rest.split_first()?;
        let (name, after) = piece(after)?;
        let (content, after) = piece(after)?;
        rest = after;
        Some(Entry { what, name, content })
    })
}

/// A length and as many bytes; fewer at the end.
fn piece(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    Some(rest.split_at(usize::from(length).min(rest.len())))
}

/// Makes one entry. Every step is beneath the root and follows no link, so that no script reaches
/// the machine that it is tried on.
fn make(root: &OwnedFd, entry: &Entry<'_>) -> Option<()> {
    let (at, leaf) = beneath(root, entry.name, Missing::Made)?;
    match entry.what % 9 {
        0 => file(&at, leaf, entry.content, Mode::RUSR | Mode::WUSR),
        1 => file(&at, leaf, entry.content, Mode::RWXU),
        2 => {
            rustix::fs::unlinkat(&at, leaf, AtFlags::empty()).ok();
            rustix::fs::symlinkat(entry.content, &at, leaf).ok()
        }
        3 => rustix::fs::mkdirat(&at, leaf, Mode::RWXU).ok(),
        4 => rustix::fs::mknodat(&at, leaf, FileType::Fifo, Mode::RWXU, 0).ok(),
        5 => rustix::fs::unlinkat(&at, leaf, AtFlags::empty()).ok(),
        6 => rustix::fs::unlinkat(&at, leaf, AtFlags::REMOVEDIR).ok(),
        7 => {
            let (from, name) = beneath(root, entry.content, Missing::Left)?;
            rustix::fs::renameat(&from, name, &at, leaf).ok()
        }
        _ => {
            let (from, name) = beneath(root, entry.content, Missing::Left)?;
            rustix::fs::linkat(&from, name, &at, leaf, AtFlags::empty()).ok()
        }
    }
}

/// What becomes of directories that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Made,
    Left,
}

/// The directory that `path` is in, and its last name, which is one that stays there.
fn beneath<'a>(root: &OwnedFd, path: &'a [u8], missing: Missing) -> Option<(OwnedFd, &'a [u8])> {
    let mut names = path.split(|&byte| byte == b'/').collect::<Vec<_>>();
    let leaf = names.pop().filter(|leaf| !matches!(*leaf, b"" | b"." | b".."))?;
    let mut at = root.try_clone().ok()?;
    for name in names {
        if matches!(name, b"" | b"." | b"..") {
            return None;
        }
        if missing == Missing::Made {
            // It may be there.
            rustix::fs::mkdirat(&at, name, Mode::RWXU).ok();
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        at = rustix::fs::openat2(&at, name, flags, Mode::empty(), resolve()).ok()?;
    }
    Some((at, leaf))
}

fn file(at: &OwnedFd, name: &[u8], content: &[u8], mode: Mode) -> Option<()> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat2(at, name, flags, mode, resolve()).ok()?;
    rustix::fs::fchmod(&file, mode).ok()?;
    rustix::io::write(&file, content).ok()?;
    Some(())
}

fn resolve() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}
