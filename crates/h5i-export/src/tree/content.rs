//! The content of one file, read once and hashed as read.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use git2::{ObjectType, Oid};

use super::TreeError;
use super::walk::{Walk, failed};
use crate::store::{Store, StoreError};

/// The largest file that is read into memory at once; larger ones go through the quarantine.
const IN_MEMORY: u64 = 8 << 20;

/// An opened regular file, with what `fstat` said of the descriptor.
#[derive(Debug)]
pub(crate) struct Regular {
    file: File,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) inode: (u64, u64),
    changed: (i64, i64),
}

/// A file's content as it was read.
#[derive(Debug)]
pub(crate) enum Content {
    /// The bytes; not in the quarantine yet.
    Bytes(Vec<u8>),
    /// It was large and is in the quarantine.
    Stored(Oid),
    /// It grew, shrank or was written to while it was read.
    Unsteady,
}

impl Regular {
    /// Takes an opened descriptor; `None` when it is no regular file.
    pub(crate) fn new(opened: OwnedFd, path: &[u8]) -> Result<Option<Self>, TreeError> {
        let file = File::from(opened);
        let stat = file.metadata().map_err(failed("stat", path))?;
        if !stat.is_file() {
            return Ok(None);
        }
        Ok(Some(Self {
            size: stat.size(),
            mode: stat.mode(),
            links: stat.nlink(),
            inode: (stat.dev(), stat.ino()),
            changed: (stat.mtime(), stat.mtime_nsec()),
            file,
        }))
    }

    /// Whether size and time of change are still what they were.
    fn is_steady(&self, path: &[u8]) -> Result<bool, TreeError> {
        let stat = self.file.metadata().map_err(failed("stat", path))?;
        Ok(stat.size() == self.size && (stat.mtime(), stat.mtime_nsec()) == self.changed)
    }
}

/// Reads `regular` to the size that it had when it was opened, and not a byte further.
pub(crate) fn read_content(
    mut regular: Regular,
    path: &[u8],
    store: &Store,
    walk: &Walk,
) -> Result<Content, TreeError> {
    if regular.size <= IN_MEMORY {
        let mut bytes = Vec::with_capacity(usize::try_from(regular.size).unwrap_or(0));
        // One byte more than expected shows that the file grew.
        let mut bounded = (&mut regular.file).take(regular.size + 1);
        bounded.read_to_end(&mut bytes).map_err(failed("read", path))?;
        let steady = bytes.len() as u64 == regular.size && regular.is_steady(path)?;
        return Ok(if steady { Content::Bytes(bytes) } else { Content::Unsteady });
    }
    let git = StoreError::git("write a large file into the quarantine");
    let Ok(size) = usize::try_from(regular.size) else { return Ok(Content::Unsteady) };
    let odb = store.directory()?;
    let mut writer = odb.writer(size, ObjectType::Blob).map_err(git)?;
    let mut buffer = vec![0; 1 << 18];
    let mut left = regular.size;
    while left > 0 {
        walk.check_time()?;
        let want = usize::try_from(left).unwrap_or(buffer.len()).min(buffer.len());
        let count = match regular.file.read(&mut buffer[..want]) {
            Ok(0) => return Ok(Content::Unsteady),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed("read", path)(error)),
        };
        writer.write_all(&buffer[..count]).map_err(failed("keep", path))?;
        left -= count as u64;
    }
    if !regular.is_steady(path)? {
        return Ok(Content::Unsteady);
    }
    let id = writer.finalize().map_err(StoreError::git("keep a large file"))?;
    Ok(Content::Stored(id))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::{Content, IN_MEMORY, Regular, read_content};
    use crate::fixture::Fixture;
    use crate::store::Store;
    use crate::tree::{ReadLimits, Walk};

    /// Reads a file of `size` bytes after `meddle` had its way between opening and reading.
    fn read(size: u64, meddle: impl FnOnce(&std::path::Path)) -> Content {
        let fixture = Fixture::new(|_| ());
        let content = vec![b'x'; usize::try_from(size).expect("small")];
        fixture.tree().file("f", content);
        let (root, layers) = fixture.source().into_root();
        let walk = Walk::new(root, layers, ReadLimits::default()).expect("opens");
        let opened = walk.open_again(b"f").expect("opens");
        let regular = Regular::new(opened, b"f").expect("stats").expect("a file");
        meddle(&fixture.tree().at("f"));
        let store = Store::open(&fixture.base, fixture.path()).expect("opens");
        read_content(regular, b"f", &store, &walk).expect("reads")
    }

    #[test]
    fn a_file_that_grows_or_shrinks_while_it_is_read_is_unsteady() {
        for size in [10, IN_MEMORY + 1] {
            let grown = read(size, |path| {
                OpenOptions::new()
                    .append(true)
                    .open(path)
                    .expect("opens")
                    .write_all(b"more")
                    .expect("writes");
            });
            assert!(matches!(grown, Content::Unsteady), "{size}");
            let shrunk = read(size, |path| {
                OpenOptions::new().write(true).open(path).expect("opens").set_len(5).expect("cuts");
            });
            assert!(matches!(shrunk, Content::Unsteady), "{size}");
        }
        assert!(matches!(read(10, |_| ()), Content::Bytes(bytes) if bytes == [b'x'; 10]));
        assert!(matches!(read(IN_MEMORY + 1, |_| ()), Content::Stored(_)));
    }

    #[test]
    fn a_file_swapped_after_it_was_opened_is_read_as_it_was_opened() {
        let swapped = read(10, |path| {
            std::fs::remove_file(path).expect("removes");
            std::os::unix::fs::symlink("/etc/passwd", path).expect("links");
        });
        assert!(matches!(swapped, Content::Bytes(bytes) if bytes == [b'x'; 10]));
    }

    #[test]
    fn a_link_is_not_opened_whether_it_is_the_file_or_above_it() {
        let fixture = Fixture::new(|_| ());
        fixture.tree().file("d/f", "x").link("l", "d/f").link("up", "d");
        let (root, layers) = fixture.source().into_root();
        let walk = Walk::new(root, layers, ReadLimits::default()).expect("opens");
        for path in [&b"l"[..], b"up/f", b"../host/.git/HEAD", b"/etc/passwd"] {
            walk.open_again(path).expect_err("a link, or outside");
        }
        walk.open_again(b"d/f").expect("the twin: the file itself");
    }
}
