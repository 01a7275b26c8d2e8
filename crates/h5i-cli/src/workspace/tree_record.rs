//! What is written down beside a pristine tree.

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::backend::Note;
use crate::json_bytes::JsonBytes;
use crate::path_error::{Action, PathError};
use crate::store::{TreeKey, replace_file};

/// `tree.json` of a pristine tree; its time of modification is when the tree was last used.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TreeRecord {
    v: u32,
    /// The boot during which its content was written or last read and found right. What another
    /// boot wrote may have been lost in a power cut.
    pub(super) boot: String,
    /// What it takes on disk, about.
    pub(super) bytes: u64,
    /// How many entries the tree has.
    pub(super) files: u64,
    /// The tree whose files it is laid over; it has its own difference only, then. That tree stands
    /// on no other.
    pub(super) over: Option<TreeKey>,
    submodules: Vec<JsonBytes>,
    lfs_pointers: Vec<JsonBytes>,
}

const NAME: &str = "tree.json";

impl TreeRecord {
    pub(super) fn new(
        boot: String,
        (bytes, files): (u64, u64),
        over: Option<TreeKey>,
        notes: &[Note],
    ) -> Self {
        let paths = |pick: fn(&Note) -> Option<&Vec<u8>>| {
            notes.iter().filter_map(pick).cloned().map(JsonBytes).collect()
        };
        Self {
            v: 1,
            boot,
            bytes,
            files,
            over,
            submodules: paths(|note| match note {
                Note::Submodule { path } => Some(path),
                Note::LfsPointer { .. } => None,
            }),
            lfs_pointers: paths(|note| match note {
                Note::LfsPointer { path } => Some(path),
                Note::Submodule { .. } => None,
            }),
        }
    }

    /// What a person should know about the tree.
    pub(super) fn notes(self) -> Vec<Note> {
        let submodules = self.submodules.into_iter().map(|path| Note::Submodule { path: path.0 });
        let pointers = self.lfs_pointers.into_iter().map(|path| Note::LfsPointer { path: path.0 });
        submodules.chain(pointers).collect()
    }

    pub(super) fn write(&self, tree: &Path) -> Result<(), PathError> {
        let path = tree.join(NAME);
        let json = serde_json::to_vec(self)
            .map_err(|e| PathError::at(Action::Write, &path)(std::io::Error::from(e)))?;
        replace_file(tree, NAME, &json)
    }

    /// The record of the tree at `tree`; `None` when there is none that this version reads.
    pub(super) fn read(tree: &Path) -> Option<Self> {
        let json = fs::read(tree.join(NAME)).ok()?;
        serde_json::from_slice::<Self>(&json).ok().filter(|record| record.v == 1)
    }

    /// Notes that the tree is used now.
    pub(super) fn touch(tree: &Path) -> Result<(), PathError> {
        let path = tree.join(NAME);
        File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_times(FileTimes::new().set_modified(SystemTime::now())))
            .map_err(PathError::at(Action::Write, &path))
    }

    /// When the tree at `tree` was last used; long ago for a damaged one.
    pub(super) fn last_use(tree: &Path) -> SystemTime {
        let used = fs::metadata(tree.join(NAME)).and_then(|meta| meta.modified());
        used.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The tree that the one at `tree` is laid over, if any.
    pub(crate) fn stands_on(tree: &Path) -> Option<TreeKey> {
        Self::read(tree).and_then(|record| record.over)
    }

    /// The size of the tree at `tree` and when it was last used; nothing, long ago, for a damaged
    /// one.
    pub(crate) fn size_and_use(tree: &Path) -> (u64, SystemTime) {
        (Self::read(tree).map_or(0, |record| record.bytes), Self::last_use(tree))
    }
}
