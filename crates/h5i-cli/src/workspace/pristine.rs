//! A base tree laid out once, for all boxes that start from it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::Index;

use super::backend::{Backend as _, Layout, Note};
use super::base_objects::BaseObjects;
use super::checkout::{Checkout, CheckoutError};
use super::git_dir::GitDir;
use super::near::{Near, near};
use super::prepare::{Owner, WorkspaceError};
use super::tree_check::Files;
use super::tree_record::TreeRecord;
use crate::changed_paths::{MANY, mark_unchanged};
use crate::path_error::{Action, PathError};
use crate::store::{
    BoxDraft, LayerName, Store, TreeKey, make_private_dir, make_private_dirs, random_hex,
    remove_tree,
};

/// A base tree as the lower layers of overlays: `files/`, the base's files, and `index/`, a git
/// directory with nothing but the prepared index. Both are only ever mounted read-only.
///
/// Where a tree stands that differs little, `over-<its name>/` has the difference alone in place of
/// `files/`, and that tree's `files/` is one layer more. It stands on no other tree, so there is
/// never more than one.
///
/// It is complete when it is there: it is made under another name and renamed. Its files have the
/// bytes of the tree's objects, each checked against its name when it was read. No file of it may
/// be given a second name: that would change the time by which Git knows it unchanged.
#[derive(Debug)]
pub(super) struct PristineTree {
    key: TreeKey,
    path: PathBuf,
    over: Option<TreeKey>,
    notes: Vec<Note>,
    entries: u64,
}

/// What a pristine tree is made of.
pub(super) struct PristineRequest<'a> {
    pub(super) objects: &'a BaseObjects,
    /// The user and group that `stat` shows in the boxes.
    pub(super) inside: (u32, u32),
    /// The time of the files.
    pub(super) mtime: i64,
}

impl PristineTree {
    /// Makes the tree, or finds it. One that an earlier boot left is read and compared with the
    /// tree first, and made again when it differs.
    pub(super) fn make(
        draft: &mut BoxDraft,
        request: &PristineRequest<'_>,
    ) -> Result<Self, WorkspaceError> {
        let store = draft.store().clone();
        let key = TreeKey::try_from(request.objects.tree.to_string())?;
        let path = store.tree_path(&key);
        let boot = boot_id()?;
        if let Some(record) = standing(&store, &key, &boot)? {
            let (over, entries) = (record.over.clone(), record.files);
            return Ok(Self { key, path, over, notes: record.notes(), entries });
        }
        make_private_dirs(&store.trees_dir())?;
        let near = near(&store, &request.objects.open()?, request.objects.tree, &boot)?;
        let staging = Staging::begin(&store.trees_dir(), key.as_str())?;
        let (staging, record) = match fill(&store, &staging.0, request, &boot, near.as_ref()) {
            // Not everywhere can a file be hidden, and not every change be laid over another tree.
            Err(WorkspaceError::Checkout(CheckoutError::Hide { .. })) if near.is_some() => {
                let again = Staging::begin(&store.trees_dir(), key.as_str())?;
                let record = fill(&store, &again.0, request, &boot, None)?;
                (again, record)
            }
            filled => (staging, filled?),
        };
        if path.try_exists().map_err(PathError::at(Action::Inspect, &path))? {
            let damaged = store.trees_dir().join(format!(".{key}.{}.damaged", random_hex(4)?));
            if standing(&store, &key, &boot)?.is_none() {
                fs::rename(&path, &damaged).map_err(PathError::at(Action::Rename, &path))?;
                remove_tree(&damaged)?;
            }
        }
        staging.publish(&path)?;
        draft.made_tree(key.clone());
        // Who was quicker may have laid it over another tree.
        let over = TreeRecord::stands_on(&path);
        let entries = record.files;
        Ok(Self { key, path, over, notes: record.notes(), entries })
    }

    /// Makes, or finds, the layer with the git directory that boxes of this base start with, and
    /// yields the layers of such a box, the one that hides the others first.
    pub(super) fn layers(&self, git_dir: &GitDir<'_>) -> Result<Vec<LayerName>, WorkspaceError> {
        let kind = if git_dir.asks { LayerName::ASKING } else { LayerName::PLAIN };
        let name = format!("{kind}{}", git_dir.digest()?);
        let path = self.path.join(&name);
        if !path.try_exists().map_err(PathError::at(Action::Inspect, &path))? {
            let staging = Staging::begin(&self.path, &name)?;
            git_dir.write_to(&staging.0.join(".git"))?;
            staging.publish(&path)?;
        }
        let of = |key: &TreeKey, part: &str| key.layer(part);
        let mut layers = vec![of(&self.key, &name)?, of(&self.key, "index")?];
        layers.push(of(&self.key, &files_of(self.over.as_ref()))?);
        if let Some(over) = &self.over {
            layers.push(of(over, "files")?);
        }
        Ok(layers)
    }

    /// Whether its boxes tell git what to look at.
    pub(super) const fn is_large(&self) -> bool {
        self.entries >= MANY as u64
    }

    /// What a person should know about the tree.
    pub(super) fn notes(self) -> Vec<Note> {
        self.notes
    }
}

/// A directory in the making, removed when dropped.
struct Staging(PathBuf);

impl Staging {
    fn begin(beside: &Path, name: &str) -> Result<Self, PathError> {
        let dir = beside.join(format!(".{name}.{}.new", random_hex(4)?));
        make_private_dir(&dir)?;
        Ok(Self(dir))
    }

    /// Gives it its name, unless somebody else was quicker: what is there then is the same.
    fn publish(self, path: &Path) -> Result<(), PathError> {
        match fs::rename(&self.0, path) {
            Ok(()) => Ok(()),
            Err(e) if is_taken(&e) => Ok(()),
            Err(e) => Err(PathError::at(Action::Rename, path)(e)),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Absent after the rename; else the error that led here is the one to tell.
        remove_tree(&self.0).ok();
    }
}

fn is_taken(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists)
}

/// The directory of a tree that has its files, or its difference from another tree.
fn files_of(over: Option<&TreeKey>) -> String {
    over.map_or_else(|| "files".to_owned(), |over| format!("over-{over}"))
}

const INDEX: &str = "index/.git/index";

/// The record of the tree of that name, if it and what it is laid over stand whole.
fn standing(store: &Store, key: &TreeKey, boot: &str) -> Result<Option<TreeRecord>, PathError> {
    let path = store.tree_path(key);
    let Some(mut record) = TreeRecord::read(&path) else { return Ok(None) };
    let below = record.over.as_ref().map(|over| store.tree_path(over));
    if let Some(over) = &record.over {
        let whole = standing(store, over, boot)?.is_some_and(|below| below.over.is_none());
        if !whole {
            return Ok(None);
        }
    }
    if record.boot == boot {
        TreeRecord::touch(&path)?;
        return Ok(Some(record));
    }
    let layer = path.join(files_of(record.over.as_ref()));
    let files =
        Files { layer: &layer, below: below.as_ref().map(|below| below.join("files")).as_deref() }
            .are_as_in(&path.join(INDEX), below.map(|below| below.join(INDEX)).as_deref());
    if !files {
        return Ok(None);
    }
    boot.clone_into(&mut record.boot);
    record.write(&path)?;
    Ok(Some(record))
}

fn fill(
    store: &Store,
    dir: &Path,
    request: &PristineRequest<'_>,
    boot: &str,
    near: Option<&Near>,
) -> Result<TreeRecord, WorkspaceError> {
    let over = near.map(|near| near.key.clone());
    let files = dir.join(files_of(over.as_ref()));
    make_private_dirs(&files)?;
    make_private_dirs(&dir.join("index/.git"))?;
    let path = dir.join(INDEX);
    if let Some(over) = &over {
        let below = store.tree_path(over).join(INDEX);
        fs::copy(&below, &path).map_err(PathError::at(Action::Read, &below))?;
    }
    let repo = request.objects.open()?;
    let mut index = Index::open(&path)?;
    let laid_out = Checkout.lay_out(
        &Layout {
            objects: &repo,
            tree: request.objects.tree,
            over: near.map(|near| near.tree),
            root: &files,
            owner: Owner::Caller,
            inside: request.inside,
            mtime: request.mtime,
        },
        &mut index,
    )?;
    if over.is_none() {
        // Fills the index's cache of trees, by which `git status` compares HEAD; entries keep their
        // data. Of another tree's index it is right but for what lies above a change, where git
        // looks at the entries.
        index.read_tree(&repo.find_tree(request.objects.tree)?)?;
    }
    index.write()?;
    if index.len() >= MANY {
        mark_unchanged(&path).map_err(PathError::at(Action::Write, &path))?;
    }
    let mut notes = near.map(|near| near.record.clone().notes()).unwrap_or_default();
    // What was written again has told its notes again.
    notes.retain(|note| is_kept(note, &index, &files));
    notes.extend(laid_out.notes);
    let record =
        TreeRecord::new(boot.to_owned(), (laid_out.bytes, index.len() as u64), over, &notes);
    record.write(dir)?;
    Ok(record)
}

/// Whether what a note of the tree below is about is still there, and not in the layer.
fn is_kept(note: &Note, index: &Index, layer: &Path) -> bool {
    let path = Path::new(OsStr::from_bytes(note.path()));
    index.get_path(path, 0).is_some() && fs::symlink_metadata(layer.join(path)).is_err()
}

/// The kernel's name for this boot.
fn boot_id() -> Result<String, PathError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(PathError::at(Action::Read, path))?;
    Ok(text.trim().to_owned())
}
