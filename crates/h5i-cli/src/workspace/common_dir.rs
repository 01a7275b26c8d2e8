//! Which repository a directory belongs to, without opening it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::path_error::{Action, PathError};
use crate::store::{RepoId, Scope};

/// The scope of the repository that `start` lies in; `None` outside of any.
///
/// Only names are looked at: `.git`, its `commondir`, and for bare repositories `HEAD`, `objects`
/// and `refs`. That is enough to find a repository's boxes, and a hundred system calls less than
/// opening it. What is found is an identity, no permission: nothing is read of the repository.
///
/// # Errors
/// [`PathError`] when something that is there can't be read.
pub fn scope_of(start: &Path) -> Result<Option<Scope>, PathError> {
    for dir in start.ancestors() {
        if let Some(git_dir) = git_dir_at(dir)? {
            let common = common_of(&git_dir)?;
            #[expect(clippy::disallowed_methods, reason = "an identity, compared and never opened")]
            let common =
                fs::canonicalize(&common).map_err(PathError::at(Action::Inspect, &common))?;
            return Ok(Some(Scope::Repository(RepoId::of_common_dir(&common))));
        }
    }
    Ok(None)
}

/// The git directory of a working tree or bare repository at exactly `dir`.
fn git_dir_at(dir: &Path) -> Result<Option<PathBuf>, PathError> {
    let inner = dir.join(".git");
    match fs::metadata(&inner) {
        Ok(meta) if meta.is_dir() => return Ok(Some(inner)),
        Ok(_) => {
            let Some(text) = read(&inner)? else { return Ok(None) };
            let place = text.strip_prefix("gitdir:").map(str::trim).unwrap_or_default();
            return Ok(Some(dir.join(place)));
        }
        Err(e) if is_absence(&e) => {}
        Err(e) => return Err(PathError::at(Action::Inspect, &inner)(e)),
    }
    let bare = ["HEAD", "objects", "refs"].iter().all(|name| fs::metadata(dir.join(name)).is_ok());
    Ok(bare.then(|| dir.to_owned()))
}

/// The directory that all linked worktrees share; see gitrepository-layout(5), `commondir`.
fn common_of(git_dir: &Path) -> Result<PathBuf, PathError> {
    let shared = read(&git_dir.join("commondir"))?;
    Ok(shared.map_or_else(|| git_dir.to_owned(), |text| git_dir.join(text.trim_end())))
}

fn read(path: &Path) -> Result<Option<String>, PathError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if is_absence(&e) => Ok(None),
        Err(e) => Err(PathError::at(Action::Read, path)(e)),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
