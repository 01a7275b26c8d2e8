//! Applying a patch to a tree in memory: the proof of the export, and the check of a bundle.
//!
//! Strict on purpose: hunks stand exactly where they say, preimages are those that the `index`
//! lines name, and what the format leaves open is refused. It shares no code with what made the
//! patch.

mod binary;
mod edits;
mod header;
mod hunk;
mod lines;
mod places;
mod sections;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

use git2::{FileMode, ObjectType, Oid};

pub(crate) use edits::{Edit, Edits};
use header::Header;
use lines::Lines;
pub(crate) use sections::{FILE, Sections};

use crate::escape::Escaped;
use crate::store::{Store, StoreError};

/// Why a patch does not apply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// A line of the patch is wrong.
    #[error("line {line} of the patch{}: {fault}", in_file(path))]
    Line {
        /// The line, from 1.
        line: u64,
        /// The file that the line is about, when it is known.
        path: Vec<u8>,
        /// What is wrong.
        fault: PatchFault,
    },
    /// The patch can't be read.
    #[error("can't read the patch")]
    Read(#[from] io::Error),
    /// The objects can't be used.
    #[error("can't use the objects of the base")]
    Store(#[from] StoreError),
}

fn in_file(path: &[u8]) -> String {
    if path.is_empty() { String::new() } else { format!(", for `{}`", Escaped::new(path)) }
}

/// What is wrong with a line of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchFault {
    /// It is not the beginning of a file's patch, where one must be.
    #[error("a file's patch must begin here")]
    NoHeader,
    /// A header line can't be read, or contradicts another one.
    #[error("the header is malformed or contradicts itself")]
    Header,
    /// A hunk can't be read.
    #[error("the hunk is malformed")]
    Hunk,
    /// A hunk's context or removed lines are not those of the file.
    #[error("the hunk's lines are not those of the file")]
    Context,
    /// The binary part can't be read.
    #[error("the binary part is malformed")]
    Binary,
    /// The file of the base is not the one that the patch was made from.
    #[error("the file of the base is not the one that the patch was made from")]
    Preimage,
    /// The file is new in the patch and there in the base.
    #[error("the file is there already")]
    Exists,
    /// The file is not in the base.
    #[error("the file is not in the base")]
    Absent,
    /// The result is not the one that the patch names.
    #[error("the result is not the one that the patch names")]
    Result,
    /// The file is patched twice.
    #[error("the file is patched a second time")]
    Twice,
}

/// What becomes of the objects that a patch makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// They are written to the store.
    Objects,
    /// They are named and forgotten.
    Ids,
}

/// The tree that `patch` gives when it is applied to `base`. The patch of one file at a time is in
/// memory.
///
/// # Errors
/// [`PatchError`] with the first line that does not fit.
pub(crate) fn apply(
    store: &Store,
    base: Oid,
    patch: impl BufRead,
    keep: Keep,
) -> Result<Oid, PatchError> {
    let mut state = State { store, base, keep, removed: BTreeSet::new(), placed: BTreeMap::new() };
    for section in Sections::new(patch) {
        let section = section?;
        state.section(&mut Lines::new(&section.text, section.line))?;
    }
    if let Some(placed) = places::first_taken(&state)? {
        let (line, path) = (placed.line, placed.path.clone());
        return Err(PatchError::Line { line, path, fault: PatchFault::Exists });
    }
    let mut edits = Edits::default();
    for path in &state.removed {
        edits.add(path, Edit::Remove);
    }
    for Placed { path, id, mode, .. } in state.placed.values() {
        edits.add(path, Edit::Set(*id, *mode));
    }
    Ok(match keep {
        Keep::Objects => edits.apply(store, Some(base))?,
        Keep::Ids => edits.id(store, Some(base))?,
    })
}

/// A fault whose line is known to the caller.
enum Fault {
    At(PatchFault),
    Store(StoreError),
}

impl From<PatchFault> for Fault {
    fn from(fault: PatchFault) -> Self {
        Self::At(fault)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

struct State<'s> {
    store: &'s Store,
    base: Oid,
    keep: Keep,
    removed: BTreeSet<Vec<u8>>,
    /// By path.
    placed: BTreeMap<Vec<u8>, Placed>,
}

/// A file that the patch leaves behind.
struct Placed {
    path: Vec<u8>,
    id: Oid,
    mode: FileMode,
    /// Where its patch begins.
    line: u64,
    origin: Origin,
}

/// Whether the base has a file at the path that a patch leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It was changed in its place.
    Changed,
    /// It was added or renamed; nothing may stand there.
    New,
}

impl State<'_> {
    /// Applies the patches of a part; there is one, unless something stands where it may not.
    fn section(&mut self, lines: &mut Lines<'_>) -> Result<(), PatchError> {
        while !lines.at_end() {
            let mut path = Vec::new();
            let line = lines.number();
            if let Err(error) = self.file(lines, &mut path) {
                return Err(match error {
                    // What is only known at the end of a file's patch is told of its beginning.
                    Fault::At(fault)
                        if matches!(
                            fault,
                            PatchFault::Hunk | PatchFault::Context | PatchFault::Binary
                        ) =>
                    {
                        PatchError::Line { line: lines.number(), path, fault }
                    }
                    Fault::At(fault) => PatchError::Line { line, path, fault },
                    Fault::Store(error) => PatchError::Store(error),
                });
            }
        }
        Ok(())
    }

    /// Applies the patch of one file.
    fn file(&mut self, lines: &mut Lines<'_>, path: &mut Vec<u8>) -> Result<(), Fault> {
        let line = lines.number();
        let header = Header::read(lines)?;
        path.clone_from(&header.new_path);
        let (old, old_mode) = self.preimage(&header)?;
        if header.old_id.is_some_and(|id| Oid::hash_object(ObjectType::Blob, &old).ok() != Some(id))
        {
            return Err(PatchFault::Preimage.into());
        }
        let new = if lines.peek() == Some(b"GIT binary patch") {
            binary::apply(lines, &old)?
        } else {
            hunk::apply(lines, &old)?
        };
        if header.is_deletion() {
            if !new.is_empty() {
                return Err(PatchFault::Result.into());
            }
            return self.remove(header.old_path);
        }
        let id = match self.keep {
            Keep::Objects => self.store.write(ObjectType::Blob, &new)?,
            Keep::Ids => {
                Oid::hash_object(ObjectType::Blob, &new).map_err(StoreError::git("hash a file"))?
            }
        };
        match header.new_id {
            Some(expected) if expected != id => return Err(PatchFault::Result.into()),
            None if new != old => return Err(PatchFault::Header.into()),
            _ => {}
        }
        let mode = header.new_mode.or(old_mode).ok_or(PatchFault::Header)?;
        let changed = !header.is_addition() && !header.is_rename();
        let origin = if changed { Origin::Changed } else { Origin::New };
        if header.is_rename() {
            self.remove(header.old_path)?;
        }
        let path = header.new_path;
        let placed = Placed { path: path.clone(), id, mode, line, origin };
        match self.placed.insert(path, placed) {
            None => Ok(()),
            Some(_) => Err(PatchFault::Twice.into()),
        }
    }

    fn remove(&mut self, path: Vec<u8>) -> Result<(), Fault> {
        if self.removed.insert(path) { Ok(()) } else { Err(PatchFault::Twice.into()) }
    }

    /// The content before, and the mode that the base has.
    fn preimage(&self, header: &Header) -> Result<(Vec<u8>, Option<FileMode>), Fault> {
        if header.is_addition() {
            return Ok((Vec::new(), None));
        }
        let found = self.lookup(&header.old_path)?;
        let Some((id, mode)) = found else { return Err(PatchFault::Absent.into()) };
        let same = |stated: FileMode| {
            stated == mode || (stated == FileMode::BlobGroupWritable && mode == FileMode::Blob)
        };
        if header.old_mode.is_some_and(|stated| !same(stated)) {
            return Err(PatchFault::Preimage.into());
        }
        Ok((self.store.blob(id)?.content().to_vec(), Some(mode)))
    }

    /// The file or link that the base has at `path`.
    fn lookup(&self, path: &[u8]) -> Result<Option<(Oid, FileMode)>, StoreError> {
        let mut at = self.base;
        let mut names = path.split(|&byte| byte == b'/').peekable();
        while let Some(name) = names.next() {
            let tree = self.store.tree(at)?;
            let Some(entry) = tree.get_name_bytes(name) else { return Ok(None) };
            match (entry.kind(), names.peek()) {
                (Some(ObjectType::Tree), Some(_)) => at = entry.id(),
                (Some(ObjectType::Blob), None) => {
                    return Ok(header::file_mode(entry.filemode().cast_unsigned())
                        .map(|mode| (entry.id(), mode)));
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}
