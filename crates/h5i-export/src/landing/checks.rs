//! What must hold of the landing tree even if nobody compared the bundle with a log.

use git2::{Delta, FileMode, Oid};

use super::{LandError, failed};
use crate::path::ExportPath;
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
