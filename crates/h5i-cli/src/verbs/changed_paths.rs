//! `h5i changed-paths`, which git starts in a box of many files

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::Index;
use h5i_confine::WORKSPACE;
use serde_json::Value;

use super::Answer;
use crate::args::ChangedPathsArgs;
use crate::changed_paths::{TOKEN, UPPER_IN_BOX, Views, has_untracked, index_paths};
use crate::failure::Failure;
use crate::surroundings::Surroundings;

/// Answers git's question for what may have changed (githooks(5), "fsmonitor-watchman"): the paths,
/// each ended by a zero byte, in version 2 after a token.
///
/// Without an answer git looks at every file: so whatever is not as expected, above all another
/// working tree that has the box's configuration, is none.
pub(super) fn answer(
    surroundings: &Surroundings,
    args: &ChangedPathsArgs,
) -> Result<Answer, Failure> {
    match text(surroundings, args) {
        Ok(text) => Answer::new(Value::Null, text),
        // What is said on standard error would stand between what git says.
        Err(_) => Ok(Answer::new(Value::Null, Vec::new())?.code(1)),
    }
}

fn text(surroundings: &Surroundings, args: &ChangedPathsArgs) -> io::Result<Vec<u8>> {
    let other = || io::Error::other("this is not the workspace of a box of many files");
    let (here, work) = (fs::metadata(".")?, fs::metadata(WORKSPACE)?);
    let own_git_dir = surroundings
        .variable("GIT_DIR")
        .is_none_or(|dir| Path::new(WORKSPACE).join(dir) == Path::new(WORKSPACE).join(".git"));
    if (here.dev(), here.ino()) != (work.dev(), work.ino()) || !own_git_dir {
        return Err(other());
    }
    let index = surroundings.variable("GIT_INDEX_FILE").map_or(".git/index".into(), PathBuf::from);
    let index = Path::new(WORKSPACE).join(index);
    let views = Views { merged: WORKSPACE.into(), upper: UPPER_IN_BOX.into() };
    fs::metadata(&views.upper)?;
    let bytes = fs::read(&index)?;
    let entries: Vec<Vec<u8>>;
    let paths = match index_paths(&bytes) {
        Some(paths) => paths,
        None if has_untracked(&bytes) => return Err(other()),
        None => {
            let index = Index::open(&index).map_err(io::Error::other)?;
            entries = index.iter().map(|entry| entry.path).collect();
            entries.iter().map(Vec::as_slice).collect()
        }
    };
    let changed = views.changed(paths.into_iter())?;
    let mut text = Vec::new();
    match args.interface {
        1 => {}
        2 => text.extend_from_slice(format!("{TOKEN}\0").as_bytes()),
        _ => return Err(other()),
    }
    for path in changed {
        text.extend_from_slice(path);
        text.push(0);
    }
    Ok(text)
}
