//! A tree that stands already and differs little from the one that is wanted.

use git2::{Oid, Repository, Tree, TreeEntry};

use super::tree_record::TreeRecord;
use crate::path_error::PathError;
use crate::store::{Store, TreeKey, names};

/// A pristine tree that another one can be laid over.
#[derive(Debug)]
pub(super) struct Near {
    pub(super) key: TreeKey,
    pub(super) tree: Oid,
    pub(super) record: TreeRecord,
}

/// Fewer files than this are as soon written as compared.
const SMALLEST: u64 = 256;
/// Of how many files one may differ.
const PART: u64 = 8;
/// How many trees are compared, those used last first.
const CANDIDATES: usize = 8;

/// The tree that differs least, of those that were used last, stand on no other one, and have been
/// found whole during this boot; `None` if each differs in more than an eighth of its files.
///
/// A tree can only be compared whose objects are in `repo`: those of an ancestor are.
pub(super) fn near(
    store: &Store,
    repo: &Repository,
    wanted: Oid,
    boot: &str,
) -> Result<Option<Near>, PathError> {
    let mut standing = Vec::new();
    for name in names(&store.trees_dir())? {
        let Ok(key) = TreeKey::try_from(name) else { continue };
        let path = store.tree_path(&key);
        let Some(record) = TreeRecord::read(&path) else { continue };
        if record.over.is_none() && record.boot == boot && record.files >= SMALLEST {
            standing.push((TreeRecord::last_use(&path), key, record));
        }
    }
    standing.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
    let mut nearest: Option<(u64, Near)> = None;
    for (_, key, record) in standing.into_iter().take(CANDIDATES) {
        let most = nearest.as_ref().map_or(record.files / PART, |(least, _)| *least);
        let Ok(tree) = Oid::from_str(key.as_str()) else { continue };
        if let Some(count) = count(repo, tree, wanted, most) {
            nearest = Some((count, Near { key, tree, record }));
        }
    }
    Ok(nearest.map(|(_, near)| near))
}

/// How many entries must be written or hidden for the one tree to become the other; `None` if they
/// are more than `most` or an object is missing.
fn count(repo: &Repository, from: Oid, to: Oid, most: u64) -> Option<u64> {
    let mut counted = 0;
    let mut waiting = vec![(Some(from), to)];
    while let Some((from, to)) = waiting.pop() {
        let from = from.map(|id| repo.find_tree(id)).transpose().ok()?;
        let to = repo.find_tree(to).ok()?;
        for entry in &to {
            let below = from.as_ref().and_then(|from| from.get_name_bytes(entry.name_bytes()));
            if below.as_ref().is_some_and(|below| below.id() == entry.id()) {
                // A change of its mode, too, costs little.
                counted += u64::from(below.is_some_and(|b| b.filemode() != entry.filemode()));
                continue;
            }
            counted += 1;
            if is_tree(&entry) {
                waiting.push((below.filter(is_tree).map(|below| below.id()), entry.id()));
            }
            if counted > most {
                return None;
            }
        }
        counted += gone(from.as_ref(), &to);
    }
    (counted <= most).then_some(counted)
}

fn gone(from: Option<&Tree<'_>>, to: &Tree<'_>) -> u64 {
    let Some(from) = from else { return 0 };
    from.iter().map(|entry| u64::from(to.get_name_bytes(entry.name_bytes()).is_none())).sum()
}

fn is_tree(entry: &TreeEntry<'_>) -> bool {
    entry.kind() == Some(git2::ObjectType::Tree)
}
