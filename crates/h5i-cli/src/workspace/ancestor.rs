//! Objects of an earlier commit, which a later one's need not be packed with again.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use git2::{Oid, Repository};

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
            return Ok(few.then_some(Ancestor { tip: id, packs }));
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
