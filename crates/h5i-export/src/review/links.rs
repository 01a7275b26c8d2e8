//! Where the symbolic links of a tree lead.

use git2::{FileMode, Oid};

use crate::store::{Store, StoreError};

/// The most links that one resolution follows (Linux follows 40).
const MAX_FOLLOWED: u32 = 40;

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    Inside,
    Outside,
}

/// Where the link at `path` with `target` leads in the tree `root`, resolved as a kernel would,
/// through every other link of the tree.
///
/// Absolute targets, those above the root, those into a git directory, those with bytes that are
/// separators elsewhere, and loops count as outside. A component that the tree does not have is
/// taken as a directory, but `..` after one counts as outside, for nobody knows what it will be.
pub(crate) fn resolve(
    store: &Store,
    root: Oid,
    path: &[u8],
    target: &[u8],
) -> Result<Leads, StoreError> {
    let mut at: Vec<Vec<u8>> = path.split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect();
    at.pop();
    let mut rest: Vec<Vec<u8>> = Vec::new();
    let mut missing = false;
    let mut followed = 0;
    if !push_target(&mut rest, target) {
        return Ok(Leads::Outside);
    }
    while let Some(name) = rest.pop() {
        match &name[..] {
            b"" | b"." => continue,
            b".." => {
                if missing || at.pop().is_none() {
                    return Ok(Leads::Outside);
                }
                continue;
            }
            name if crate::path::is_dot_git(name) => return Ok(Leads::Outside),
            _ => at.push(name),
        }
        match lookup(store, root, &at)? {
            None => missing = true,
            Some((id, mode)) if mode == i32::from(FileMode::Link) => {
                followed += 1;
                at.pop();
                if followed > MAX_FOLLOWED || !push_target(&mut rest, store.blob(id)?.content()) {
                    return Ok(Leads::Outside);
                }
            }
            Some(_) => {}
        }
    }
    Ok(Leads::Inside)
}

/// Puts the components of `target` on the stack; false when it is absolute on some system.
fn push_target(rest: &mut Vec<Vec<u8>>, target: &[u8]) -> bool {
    let drive = matches!(target, [letter, b':', ..] if letter.is_ascii_alphabetic());
    if target.is_empty()
        || target.starts_with(b"/")
        || target.contains(&b'\\')
        || drive
        || target.contains(&0)
    {
        return false;
    }
    rest.extend(target.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec));
    true
}

/// The entry at `path`, without following links.
fn lookup(store: &Store, root: Oid, path: &[Vec<u8>]) -> Result<Option<(Oid, i32)>, StoreError> {
    let mut found = (root, i32::from(FileMode::Tree));
    for name in path {
        if found.1 != i32::from(FileMode::Tree) {
            return Ok(None);
        }
        match store.tree(found.0)?.get_name_bytes(name) {
            Some(entry) => found = (entry.id(), entry.filemode()),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// The target of the link at `path`, if there is one.
pub(crate) fn target_at(
    store: &Store,
    root: Oid,
    path: &[u8],
) -> Result<Option<Vec<u8>>, StoreError> {
    let names: Vec<Vec<u8>> = path.split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect();
    match lookup(store, root, &names)? {
        Some((id, mode)) if mode == i32::from(FileMode::Link) => {
            Ok(Some(store.blob(id)?.content().to_vec()))
        }
        _ => Ok(None),
    }
}

/// Whether git reads rules from a file of this name; it refuses links in their place as well.
pub(crate) fn is_rules_file(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    [&b".gitmodules"[..], b".gitattributes", b".gitignore", b".mailmap"]
        .iter()
        .any(|rules| crate::path::fold_name(name) == *rules)
}
