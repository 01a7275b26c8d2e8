//! The host's working tree as a tree object, without a write to the host's repository.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use git2::{Delta, DiffOptions, FileMode, IndexEntry, IndexEntryExtendedFlag, Oid, Repository};
use rustix::fs::{Timespec, Timestamps};

use super::host_repository::HostRepository;
use super::tree_writer::{FileEntry, write_trees};
use crate::path_error::{Action, PathError};
use crate::shown::Shown;

/// Why the working tree could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkingTreeError {
    /// Files are in conflict after a merge that is not finished.
    #[error("the working tree has a merge that is not finished")]
    Unmerged,
    /// An untracked directory is a repository of its own.
    #[error("the working tree has another repository in it: `{}`", Shown::bytes(path))]
    NestedRepository {
        /// Its path, bytes.
        path: Vec<u8>,
    },
    /// The index has a form that is not supported (split or sparse).
    #[error("cannot read the repository's index")]
    Index(#[source] git2::Error),
    /// A file can't be read.
    #[error("cannot take the working tree")]
    Git(#[from] git2::Error),
    /// A file of the git directory can't be copied.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// Settings that say which files are looked at and how they become objects.
const SETTINGS: [&str; 8] = [
    "core.excludesfile",
    "core.attributesfile",
    "core.ignorecase",
    "core.filemode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.trustctime",
];

/// Writes to the bare repository at `staging` the tree that `git add --all` would make of the
/// host's working tree, and gives its name.
///
/// The index that libgit2 works on is a copy: the host's is not even refreshed. No filter program
/// is run; a file with a filter that has not changed keeps its stored form. `staging` does not see
/// the host's objects, so that none of them is touched.
pub(super) fn working_tree(
    host: &HostRepository,
    workdir: &Path,
    staging: &Path,
) -> Result<Oid, WorkingTreeError> {
    copy_index(&host.git_dir().join("index"), &staging.join("index"))?;
    let info = staging.join("info");
    fs::create_dir_all(&info).map_err(PathError::at(Action::CreateDirectory, &info))?;
    for file in ["exclude", "attributes"] {
        copy_if_there(&host.common_dir().join("info").join(file), &info.join(file))?;
    }
    copy_if_there(&host.git_dir().join("info/sparse-checkout"), &info.join("sparse-checkout"))?;
    let repo = Repository::open_bare(staging)?;
    let mut config = repo.config()?.open_level(git2::ConfigLevel::Local)?;
    for key in SETTINGS {
        if let Some(value) = super::pinned_base::configured(Some(host), key) {
            config.set_str(key, &value)?;
        }
    }
    drop(config);
    drop(repo);
    let repo = Repository::open_bare(staging)?;
    repo.set_workdir(workdir, false)?;
    let index = repo.index().map_err(WorkingTreeError::Index)?;
    let mut files: BTreeMap<Vec<u8>, FileEntry> = BTreeMap::new();
    let mut absent_by_choice = BTreeSet::new();
    for entry in index.iter() {
        if is_conflict(&entry) {
            return Err(WorkingTreeError::Unmerged);
        }
        if is_skipped(&entry) {
            absent_by_choice.insert(entry.path.clone());
        }
        let IndexEntry { path, mode, id, .. } = entry;
        files.insert(path.clone(), FileEntry { path, mode, id });
    }
    let mut options = DiffOptions::new();
    options
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .include_typechange(true)
        .include_unreadable(true)
        .ignore_submodules(true);
    let changes = repo.diff_index_to_workdir(Some(&index), Some(&mut options))?;
    for change in changes.deltas() {
        let file = change.new_file();
        let path = file.path_bytes().unwrap_or_default().to_vec();
        match change.status() {
            Delta::Deleted => {
                if !absent_by_choice.contains(&path) {
                    files.remove(&path);
                }
            }
            Delta::Conflicted => return Err(WorkingTreeError::Unmerged),
            _ if path.ends_with(b"/") => return Err(WorkingTreeError::NestedRepository { path }),
            _ => {
                let on_disk = workdir.join(OsStr::from_bytes(&path));
                let (mode, id) = match file.mode() {
                    FileMode::Link => {
                        let target = fs::read_link(&on_disk)
                            .map_err(PathError::at(Action::Read, &on_disk))?;
                        (0o120_000, repo.blob(target.as_os_str().as_bytes())?)
                    }
                    FileMode::BlobExecutable => (0o100_755, repo.blob_path(&on_disk)?),
                    _ => (0o100_644, repo.blob_path(&on_disk)?),
                };
                files.insert(path.clone(), FileEntry { path, mode, id });
            }
        }
    }
    let files: Vec<FileEntry> = files.into_values().collect();
    Ok(write_trees(&repo.odb()?, &files)?)
}

/// Whether an index entry is one side of a conflict: its stage is not zero.
fn is_conflict(entry: &IndexEntry) -> bool {
    entry.flags & 0x3000 != 0
}

fn is_skipped(entry: &IndexEntry) -> bool {
    let flags = IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended);
    flags.contains(IndexEntryExtendedFlag::SKIP_WORKTREE)
}

/// Copies an index with its time: an entry is taken for unchanged by its stat data only if it is
/// older than the index, and a copy that looks younger would make a recent change invisible.
fn copy_index(from: &Path, to: &Path) -> Result<(), PathError> {
    // Asked before the copy: if the index is replaced in between, the copy looks too old, which
    // costs a comparison of bytes and hides nothing.
    let meta = match fs::metadata(from) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(PathError::at(Action::Inspect, from)(e)),
    };
    if !copy_if_there(from, to)? {
        return Ok(());
    }
    let time = Timespec { tv_sec: meta.mtime(), tv_nsec: meta.mtime_nsec() };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, to, &times, rustix::fs::AtFlags::empty())
        .map_err(PathError::at(Action::ChangeMode, to))
}

fn copy_if_there(from: &Path, to: &Path) -> Result<bool, PathError> {
    match fs::copy(from, to) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(PathError::at(Action::Read, from)(e)),
    }
}
