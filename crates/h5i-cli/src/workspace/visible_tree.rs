//! A base tree without its hidden paths.

use git2::{ObjectType, Odb, Oid, Repository};

use super::tree_writer::TreeBytes;

/// Which paths of the base a box does not receive, by their bytes relative to the root, `/` between
/// components. A hidden directory hides what is below.
pub type HiddenPaths<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Writes to `odb` the tree `id`, read from `repo`, without its hidden paths, and gives its name.
/// Directories that end up empty are left out, as Git has none.
pub(super) fn visible_tree(
    repo: &Repository,
    odb: &Odb<'_>,
    id: Oid,
    hidden: HiddenPaths<'_>,
) -> Result<Oid, git2::Error> {
    match filtered(repo, odb, id, hidden, &mut Vec::new())? {
        Some(tree) => Ok(tree),
        None => TreeBytes::default().write(odb),
    }
}

fn filtered(
    repo: &Repository,
    odb: &Odb<'_>,
    id: Oid,
    hidden: HiddenPaths<'_>,
    path: &mut Vec<u8>,
) -> Result<Option<Oid>, git2::Error> {
    let tree = repo.find_tree(id)?;
    let mut kept = TreeBytes::default();
    for entry in &tree {
        let above = path.len();
        path.extend_from_slice(entry.name_bytes());
        if !hidden(path) {
            let mode = u32::try_from(entry.filemode_raw()).unwrap_or(0);
            if entry.kind() == Some(ObjectType::Tree) {
                path.push(b'/');
                if let Some(below) = filtered(repo, odb, entry.id(), hidden, path)? {
                    kept.push(mode, entry.name_bytes(), below);
                }
            } else {
                kept.push(mode, entry.name_bytes(), entry.id());
            }
        }
        path.truncate(above);
    }
    if kept.is_empty() { Ok(None) } else { kept.write(odb).map(Some) }
}
