//! A base tree laid out once, for all boxes that start from it.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Index, ObjectType, Oid};

use super::backend::{Backend as _, Layout, Note};
use super::base_objects::BaseObjects;
use super::checkout::Checkout;
use super::git_dir::GitDir;
use super::prepare::{Owner, WorkspaceError};
use super::tree_record::TreeRecord;
use crate::path_error::{Action, PathError};
use crate::store::{
    BoxDraft, LayerName, TreeKey, make_private_dir, make_private_dirs, random_hex, remove_tree,
};

/// A base tree as the lower layers of overlays: `files/`, the base's files, and `index/`, a git
/// directory with nothing but the prepared index. Both are only ever mounted read-only.
///
/// It is complete when it is there: it is made under another name and renamed. Its files have the
/// bytes of the tree's objects, each checked against its name when it was read. No file of it may
/// be given a second name: that would change the time by which Git knows it unchanged.
#[derive(Debug)]
pub(super) struct PristineTree {
    key: TreeKey,
    path: PathBuf,
    notes: Vec<Note>,
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
        if let Some(mut record) = TreeRecord::read(&path) {
            if record.boot == boot {
                TreeRecord::touch(&path)?;
                return Ok(Self { key, path, notes: record.notes() });
            }
            if is_intact(&path) {
                record.boot = boot;
                record.write(&path)?;
                return Ok(Self { key, path, notes: record.notes() });
            }
        }
        make_private_dirs(&store.trees_dir())?;
        let staging = Staging::begin(&store.trees_dir(), key.as_str())?;
        let record = fill(&staging.0, request, boot)?;
        if path.try_exists().map_err(PathError::at(Action::Inspect, &path))? {
            let damaged = store.trees_dir().join(format!(".{key}.{}.damaged", random_hex(4)?));
            let now = TreeRecord::read(&path);
            if now.is_none_or(|now| now.boot != record.boot) {
                fs::rename(&path, &damaged).map_err(PathError::at(Action::Rename, &path))?;
                remove_tree(&damaged)?;
            }
        }
        staging.publish(&path)?;
        draft.made_tree(key.clone());
        Ok(Self { key, path, notes: record.notes() })
    }

    /// Makes, or finds, the layer with the git directory that boxes of this base start with, and
    /// yields the layers of such a box, the one that hides the others first.
    pub(super) fn layers(&self, git_dir: &GitDir<'_>) -> Result<Vec<LayerName>, WorkspaceError> {
        let name = format!("git-{}", git_dir.digest()?);
        let path = self.path.join(&name);
        if !path.try_exists().map_err(PathError::at(Action::Inspect, &path))? {
            let staging = Staging::begin(&self.path, &name)?;
            git_dir.write_to(&staging.0.join(".git"))?;
            staging.publish(&path)?;
        }
        let parts = [name.as_str(), "index", "files"];
        Ok(parts.into_iter().map(|part| self.key.layer(part)).collect::<Result<_, _>>()?)
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

fn fill(
    dir: &Path,
    request: &PristineRequest<'_>,
    boot: String,
) -> Result<TreeRecord, WorkspaceError> {
    let files = dir.join("files");
    make_private_dirs(&files)?;
    make_private_dirs(&dir.join("index/.git"))?;
    let repo = request.objects.open()?;
    let mut index = Index::open(&dir.join("index/.git/index"))?;
    let notes = Checkout.lay_out(
        &Layout {
            objects: &repo,
            tree: request.objects.tree,
            root: &files,
            owner: Owner::Caller,
            inside: request.inside,
            mtime: request.mtime,
        },
        &mut index,
    )?;
    index.read_tree(&repo.find_tree(request.objects.tree)?)?;
    index.write()?;
    let bytes = index.iter().map(|entry| u64::from(entry.file_size).next_multiple_of(4096)).sum();
    let record = TreeRecord::new(boot, bytes, &notes);
    record.write(dir)?;
    Ok(record)
}

/// Whether every file has the content that the index has for it.
fn is_intact(tree: &Path) -> bool {
    let Ok(index) = Index::open(&tree.join("index/.git/index")) else { return false };
    !index.is_empty()
        && index.iter().all(|entry| {
            let path = tree.join("files").join(OsStr::from_bytes(&entry.path));
            match entry.mode {
                0o160_000 => fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()),
                0o120_000 => fs::read_link(&path)
                    .is_ok_and(|target| is_blob(target.as_os_str().as_bytes(), entry.id)),
                _ => read_file(&path).is_ok_and(|content| is_blob(&content, entry.id)),
            }
        })
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    fs::File::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

fn is_blob(content: &[u8], id: Oid) -> bool {
    Oid::hash_object(ObjectType::Blob, content).is_ok_and(|found| found == id)
}

/// The kernel's name for this boot.
fn boot_id() -> Result<String, PathError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(PathError::at(Action::Read, path))?;
    Ok(text.trim().to_owned())
}
