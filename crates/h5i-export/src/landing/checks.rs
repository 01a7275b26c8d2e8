//! What must hold of the landing tree even if nobody compared the bundle with a log.

use std::collections::BTreeSet;

use git2::{Delta, FileMode, Index, Oid, Tree};

use super::{LandError, failed};
use crate::path::{ExportPath, NameSet};
use crate::review::links::{Leads, resolve, target_at};
use crate::store::Store;

/// Fails on a new name that may not leave a box, and on a new link that leads out of the tree.
pub(super) fn check(store: &Store, base: Oid, tree: Oid) -> Result<(), LandError> {
    let (old, new) = (store.tree(base)?, store.tree(tree)?);
    let diff = store
        .repo
        .diff_tree_to_tree(Some(&old), Some(&new), None)
        .map_err(failed("compare the trees"))?;
    for delta in diff.deltas() {
        let file = delta.new_file();
        let path = file.path_bytes().unwrap_or_default();
        if delta.status() == Delta::Added {
            ExportPath::new(path).map_err(LandError::Path)?;
        }
        if delta.status() != Delta::Deleted
            && file.mode() == FileMode::Link
            && let Some(target) = target_at(store, tree, path)?
            && resolve(store, tree, path, &target)? == Leads::Outside
        {
            return Err(LandError::LinkEscapes { path: path.to_vec() });
        }
    }
    Ok(())
}

/// Fails on a name of `merged` that `ours` does not have and that folds to one that it has.
pub(super) fn names(ours: &Tree<'_>, merged: &Index) -> Result<(), LandError> {
    let mut here = Index::new().map_err(failed("make an index"))?;
    here.read_tree(ours).map_err(failed("read the tree that is here"))?;
    let here: BTreeSet<Vec<u8>> = here.iter().map(|entry| entry.path).collect();
    let new: BTreeSet<Vec<u8>> =
        merged.iter().map(|entry| entry.path).filter(|path| !here.contains(path)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let mut names = NameSet::new();
    here.iter().for_each(|path| names.know(path));
    for path in &new {
        names.add(&ExportPath::new(path).map_err(LandError::Path)?).map_err(LandError::Clash)?;
    }
    Ok(())
}
