//! Landing in the working tree, conflicts and all.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::build::CheckoutBuilder;
use git2::{Index, ObjectType, Oid, Repository, RepositoryState, StatusOptions};

use super::{LandError, Merged, failed, hand_over};

impl Merged<'_> {
    /// Writes the merged files into the working tree and the index of `host`, which must have
    /// nothing of its own to lose: no change in the index or in a tracked file, no merge under way,
    /// and no untracked file in the way. Where both sides changed a file it gets conflict markers
    /// and the index three versions, as after `git merge`. Nothing is committed.
    ///
    /// Bytes are written as they were reviewed, without filters or line-end conversion.
    ///
    /// # Errors
    /// As [`Merged::check_working_tree`], before anything is written. [`LandError::Git`] from the last
    /// step can leave the files half written.
    pub fn check_out(mut self, host: &Repository, their_label: &str) -> Result<(), LandError> {
        self.check_working_tree(host)?;
        let odb = host.odb().map_err(failed("open the objects of the repository"))?;
        let entries: Vec<Oid> = self
            .index
            .iter()
            .filter(|entry| entry.mode != u32::from(git2::FileMode::Commit))
            .map(|entry| entry.id)
            .collect();
        for id in entries {
            hand_over(self.store, &odb, id, ObjectType::Blob)?;
        }
        let mut options = CheckoutBuilder::new();
        options
            .safe()
            .ancestor_label("base")
            .our_label("HEAD")
            .their_label(their_label)
            .conflict_style_merge(true)
            .disable_filters(true)
            .overwrite_ignored(false);
        host.checkout_index(Some(&mut self.index), Some(&mut options))
            .map_err(failed("write the working tree"))
    }

    /// Checks that the working tree of `host` has nothing to lose. Nothing is written.
    ///
    /// # Errors
    /// [`LandError::Bare`], [`LandError::Underway`], [`LandError::Dirty`], [`LandError::InTheWay`].
    pub fn check_working_tree(&self, host: &Repository) -> Result<(), LandError> {
        let workdir = host.workdir().ok_or(LandError::Bare)?;
        check_clean(host)?;
        let tracked = host.index().map_err(failed("read the index"))?;
        let mut paths = BTreeSet::new();
        for entry in self.index.iter() {
            if is_tracked(&tracked, &entry.path) {
                continue;
            }
            // A slash ends each directory on the way; the file itself comes last.
            let ends = (0..=entry.path.len())
                .filter(|&end| entry.path.get(end).is_none_or(|&byte| byte == b'/'));
            for end in ends {
                let (path, is_leaf) = (&entry.path[..end], end == entry.path.len());
                if stands_in_the_way(workdir, &tracked, path, is_leaf)? {
                    paths.insert(path.to_vec());
                }
            }
        }
        if paths.is_empty() {
            return Ok(());
        }
        Err(LandError::InTheWay { paths: paths.into_iter().collect() })
    }
}

fn is_tracked(index: &Index, path: &[u8]) -> bool {
    index.get_path(Path::new(OsStr::from_bytes(path)), 0).is_some()
}

/// Whether something that git does not track is at `path`, where a file (`is_leaf`) or a directory
/// has to be.
fn stands_in_the_way(
    workdir: &Path,
    tracked: &Index,
    path: &[u8],
    is_leaf: bool,
) -> Result<bool, LandError> {
    let relative = Path::new(OsStr::from_bytes(path));
    if is_tracked(tracked, path) {
        return Ok(false);
    }
    let found = match fs::symlink_metadata(workdir.join(relative)) {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(source) => {
            return Err(LandError::Io { path: workdir.join(relative), source });
        }
    };
    if !found.is_dir() {
        return Ok(true);
    }
    // A directory of tracked files may become a file.
    let below = [path, b"/"].concat();
    Ok(is_leaf && !tracked.iter().any(|entry| entry.path.starts_with(&below)))
}

fn check_clean(host: &Repository) -> Result<(), LandError> {
    if host.state() != RepositoryState::Clean {
        return Err(LandError::Underway);
    }
    let mut options = StatusOptions::new();
    options.include_untracked(false).include_ignored(false).exclude_submodules(true);
    let statuses = host.statuses(Some(&mut options)).map_err(failed("compare the working tree"))?;
    let mut paths: Vec<Vec<u8>> =
        statuses.iter().map(|entry| entry.path_bytes().to_vec()).collect();
    if paths.is_empty() {
        return Ok(());
    }
    paths.sort();
    Err(LandError::Dirty { paths })
}
