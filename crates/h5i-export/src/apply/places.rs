//! Whether the places of new files are free.

use git2::{ObjectType, Oid};

use super::{Origin, Placed, State};
use crate::store::StoreError;

/// The first file, by path, that would stand where something else does: a file of the base that
/// the patch does not take away, a file in the place of a directory that keeps something, or a file
/// below another one.
///
/// It is asked at the end, because the order of a patch is free: what makes way may come later.
pub(super) fn first_taken<'s>(state: &'s State<'_>) -> Result<Option<&'s Placed>, StoreError> {
    for placed in state.placed.values() {
        if placed.origin == Origin::New && is_taken(state, &placed.path)? {
            return Ok(Some(placed));
        }
    }
    Ok(None)
}

fn is_taken(state: &State<'_>, path: &[u8]) -> Result<bool, StoreError> {
    let mut at = Some(state.base);
    for end in (0..=path.len()).filter(|&end| path.get(end).is_none_or(|&byte| byte == b'/')) {
        let here = &path[..end];
        if here != path && state.placed.contains_key(here) {
            return Ok(true);
        }
        let Some(tree) = at else { continue };
        let name = here.rsplit(|&byte| byte == b'/').next().unwrap_or(here);
        let tree = state.store.tree(tree)?;
        at = match tree.get_name_bytes(name) {
            None => None,
            Some(entry) if entry.kind() == Some(ObjectType::Tree) => Some(entry.id()),
            Some(_) if state.removed.contains(here) => None,
            Some(_) => return Ok(true),
        };
    }
    match at {
        Some(directory) => keeps_something(state, path, directory),
        None => Ok(false),
    }
}

/// Whether a directory of the base has anything that the patch does not take away.
fn keeps_something(state: &State<'_>, path: &[u8], directory: Oid) -> Result<bool, StoreError> {
    let mut rest = vec![(path.to_vec(), directory)];
    while let Some((path, tree)) = rest.pop() {
        for entry in &state.store.tree(tree)? {
            let below = [&path, &b"/"[..], entry.name_bytes()].concat();
            if entry.kind() == Some(ObjectType::Tree) {
                rest.push((below, entry.id()));
            } else if !state.removed.contains(&below) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
