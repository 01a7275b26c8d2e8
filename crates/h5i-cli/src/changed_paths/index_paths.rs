//! The paths of an index, and nothing else of it.

use super::index_mark::CHECKSUM;

/// Bytes of an entry before its path: times, ids and sizes, the object's name, flags.
const ENTRY: usize = 62;
/// Of those, where the flags are.
const FLAGS: usize = 60;
/// The flag that there are two more bytes of flags.
const EXTENDED: u8 = 0x40;

/// The extension that remembers which files git does not track.
const UNTRACKED: &[u8] = b"UNTR";

/// Whether an index may remember which files of a directory git does not track. Git then looks again
/// at those directories only that the answer names, which are those of its entries.
pub(crate) fn has_untracked(index: &[u8]) -> bool {
    index.windows(UNTRACKED.len()).any(|four| four == UNTRACKED)
}

/// The paths of an index's entries, in its order (gitformat-index(5), versions 2 and 3). `None` for
/// another version, for one that is not whole, where an extension says that the entries are not all,
/// and for one with a [cache of untracked files](has_untracked): who needs those reads it by libgit2,
/// which takes longer than `git status` itself.
pub(crate) fn index_paths(index: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = index.strip_prefix(b"DIRC")?.get(..index.len().checked_sub(4 + CHECKSUM)?)?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if version != 2 && version != 3 {
        return None;
    }
    let mut paths = Vec::with_capacity(count.min(rest.len() / ENTRY));
    for _ in 0..count {
        let extended = rest.get(FLAGS)? & EXTENDED != 0;
        let head = if extended { ENTRY + 2 } else { ENTRY };
        let path = rest.get(head..)?;
        let path = &path[..path.iter().position(|byte| *byte == 0)?];
        paths.push(path);
        // At least one byte of zero, up to a multiple of eight.
        rest = rest.get((head + path.len() + 8) / 8 * 8..)?;
    }
    while !rest.is_empty() {
        let (name, mut content) = rest.split_at_checked(4)?;
        if !name[0].is_ascii_uppercase() || name == UNTRACKED {
            return None;
        }
        let length = number(&mut content)?;
        rest = content.get(length..)?;
    }
    Some(paths)
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (bytes, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*bytes)).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use git2::{Index, IndexEntry, IndexEntryExtendedFlag, IndexTime, Oid};

    use super::*;

    fn entry(path: &[u8]) -> IndexEntry {
        let time = IndexTime::new(0, 0);
        IndexEntry {
            ctime: time,
            mtime: time,
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: Oid::from_bytes(&[7; 20]).unwrap(),
            flags: 0,
            flags_extended: 0,
            path: path.to_owned(),
        }
    }

    /// Writes an index as libgit2 does, and reads its bytes.
    fn written(at: &Path, entries: impl IntoIterator<Item = IndexEntry>) -> Vec<u8> {
        let mut index = Index::open(at).unwrap();
        entries.into_iter().for_each(|entry| index.add(&entry).unwrap());
        index.write().unwrap();
        fs::read(at).unwrap()
    }

    fn by_libgit2(at: &Path) -> Vec<Vec<u8>> {
        Index::open(at).unwrap().iter().map(|entry| entry.path).collect()
    }

    #[test]
    fn they_are_what_libgit2_reads() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("index");
        // Every length modulo eight, one that the flags can't hold, and bytes that are no text.
        let mut names: Vec<Vec<u8>> = (1..40).map(|length| vec![b'a'; length]).collect();
        names.extend([
            vec![b'b'; 4095],
            vec![b'c'; 5000],
            b"d/\xff\xfe".to_vec(),
            b"e/f g".to_vec(),
        ]);
        let bytes = written(&at, names.iter().map(|name| entry(name)));
        assert_eq!(bytes[7], 2);
        assert_eq!(index_paths(&bytes).unwrap(), by_libgit2(&at));
        let skipped = IndexEntry {
            flags_extended: IndexEntryExtendedFlag::SKIP_WORKTREE.bits(),
            ..entry(b"aa")
        };
        let bytes = written(&at, [skipped]);
        assert_eq!(bytes[7], 3, "an entry with more flags");
        assert_eq!(index_paths(&bytes).unwrap(), by_libgit2(&at));
        super::super::mark_unchanged(&at).unwrap();
        assert_eq!(index_paths(&fs::read(&at).unwrap()).unwrap(), by_libgit2(&at));
    }

    #[test]
    fn what_is_not_whole_or_not_all_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("index");
        let bytes = written(&at, [entry(b"a"), entry(b"b/c")]);
        assert_eq!(index_paths(&bytes).unwrap(), [&b"a"[..], b"b/c"]);
        for end in 0..bytes.len() {
            let cut = index_paths(&bytes[..end]);
            assert!(cut.is_none_or(|paths| paths.len() == 2), "{end}");
        }
        let mut fourth = bytes.clone();
        fourth[7] = 4;
        assert_eq!(index_paths(&fourth), None);
        // A sparse or a split index: its entries are not all. One that remembers more than entries.
        for name in [b"sdir", b"link", b"UNTR"] {
            let mut other = bytes[..bytes.len() - CHECKSUM].to_vec();
            other.extend_from_slice(name);
            other.extend_from_slice(&[0; 4 + CHECKSUM]);
            assert_eq!(index_paths(&other), None);
            assert_eq!(has_untracked(&other), name == b"UNTR");
        }
    }
}
