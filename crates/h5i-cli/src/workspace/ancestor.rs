//! Objects of an earlier commit, which a later one's need not be packed with again.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use git2::{Odb, Oid, Repository};

use crate::path_error::PathError;
use crate::store::{ObjectsKey, Store, names};

/// How many commits are looked at.
const COMMITS: usize = 256;
/// With so many packs it is time for one of all.
const PACKS: usize = 8;

/// Base objects that stand already and are a part of those that are wanted.
#[derive(Debug)]
pub(super) struct Ancestor {
    pub(super) tip: Oid,
    /// The directory of its packs.
    pub(super) packs: PathBuf,
}

/// Reads a commit and its tree from an object directory of h5i's own.
fn stands(objects: &Path, commit: Oid) -> Result<(), git2::Error> {
    let odb = Odb::new()?;
    odb.add_disk_alternate(objects.to_str().unwrap_or_default())?;
    let commit = odb.read(commit)?;
    // `tree NAME` is the first line of every commit.
    let line = commit.data().split(|byte| *byte == b'\n').next().unwrap_or_default();
    let tree = str::from_utf8(line).ok().and_then(|line| line.strip_prefix("tree "));
    odb.read(Oid::from_str(tree.unwrap_or_default())?)?;
    Ok(())
}

/// The nearest ancestor of a commit whose objects stand with all of their past; `None` if there is
/// none near, or there are many packs of it.
pub(super) fn ancestor(
    store: &Store,
    repo: &Repository,
    tip: Oid,
) -> Result<Option<Ancestor>, PathError> {
    let standing: BTreeSet<String> = names(&store.objects_dir())?.into_iter().collect();
    let (mut seen, mut waiting) = (BTreeSet::from([tip]), VecDeque::from([tip]));
    while let Some(id) = waiting.pop_front() {
        // A name without an ending stands for a commit and all of its past.
        let name = id.to_string();
        if standing.contains(&name)
            && let Ok(key) = ObjectsKey::try_from(name)
        {
            let packs = store.objects_path(&key).join("objects/pack");
            let few = names(&packs)?.iter().filter(|name| name.ends_with(".pack")).count() < PACKS;
            // What is damaged must not go on from base to base.
            let usable = few && stands(&store.objects_path(&key).join("objects"), id).is_ok();
            return Ok(usable.then_some(Ancestor { tip: id, packs }));
        }
        // What can't be read is told by what packs it.
        let Ok(commit) = repo.find_commit(id) else { continue };
        for parent in commit.parent_ids() {
            if seen.len() < COMMITS && seen.insert(parent) {
                waiting.push_back(parent);
            }
        }
    }
    Ok(None)
}
