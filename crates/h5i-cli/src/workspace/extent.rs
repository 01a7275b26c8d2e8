//! How much a base holds.

use git2::{Odb, Oid, Repository};

use super::base_objects::BaseObjects;

/// Files and directories of a base that is small.
const ENTRIES: usize = 50;
/// The bytes of the files, together.
const BYTES: usize = 1 << 20;
/// Directories below each other in one.
const DEPTH: usize = 32;

/// Whether a base is so small that every box may have files of its own.
///
/// An overlay saves writing and removing the files, a tenth of a millisecond each, and costs its
/// mount in every session: about a millisecond. With a handful of runs there is nothing to save
/// below fifty files, and a directory has none of an overlay's limits. The bytes are those that a
/// box without changes may take on the disk.
///
/// A base that can't be read is not small: who lays it out names what is missing.
#[must_use]
pub fn is_small(objects: &BaseObjects) -> bool {
    let look = || {
        let repository = objects.open()?;
        let odb = repository.odb()?;
        let mut room = Room { repository: &repository, odb, entries: ENTRIES, bytes: BYTES };
        room.takes(objects.tree, DEPTH)
    };
    look().is_ok_and(|taken| taken == Taken::All)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    All,
    TooMuch,
}

struct Room<'a> {
    repository: &'a Repository,
    odb: Odb<'a>,
    entries: usize,
    bytes: usize,
}

impl Room<'_> {
    /// Nothing is read beyond what fits.
    fn takes(&mut self, tree: Oid, depth: usize) -> Result<Taken, git2::Error> {
        let tree = self.repository.find_tree(tree)?;
        for entry in &tree {
            let bytes = match (entry.filemode(), depth) {
                (0o040_000, 0) => return Ok(Taken::TooMuch),
                (0o040_000, _) if self.takes(entry.id(), depth - 1)? == Taken::TooMuch => {
                    return Ok(Taken::TooMuch);
                }
                (0o040_000 | 0o160_000, _) => 0,
                _ => self.odb.read_header(entry.id())?.0,
            };
            match (self.entries.checked_sub(1), self.bytes.checked_sub(bytes)) {
                (Some(entries), Some(bytes)) => (self.entries, self.bytes) = (entries, bytes),
                _ => return Ok(Taken::TooMuch),
            }
        }
        Ok(Taken::All)
    }
}
