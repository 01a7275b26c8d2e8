//! The edits that lead from the base tree to the reviewed tree.

use std::collections::BTreeMap;

use git2::{FileMode, ObjectType, Oid};

use crate::store::{Store, StoreError};

/// What happens at one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Set(Oid, FileMode),
    Remove,
}

/// Edits by path. An edit at a directory replaces the directory as a whole.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    here: Option<Edit>,
    below: BTreeMap<Vec<u8>, Self>,
}

impl Edits {
    /// Adds an edit; `path` has no empty component.
    pub(crate) fn add(&mut self, path: &[u8], edit: Edit) {
        let mut node = self;
        for name in path.split(|&byte| byte == b'/') {
            node = node.below.entry(name.to_vec()).or_default();
        }
        node.here = Some(edit);
    }

    /// The paths that have an edit, sorted within each directory.
    pub(crate) fn paths(&self) -> Vec<Vec<u8>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, above: &mut Vec<u8>, paths: &mut Vec<Vec<u8>>) {
        for (name, edits) in &self.below {
            let length = above.len();
            if length > 0 {
                above.push(b'/');
            }
            above.extend_from_slice(name);
            if edits.here.is_some() {
                paths.push(above.clone());
            }
            edits.collect(above, paths);
            above.truncate(length);
        }
    }

    /// Writes the trees that differ from `base` and returns the new root.
    ///
    /// The depth is bounded by that of the walk.
    pub(crate) fn apply(&self, store: &Store, base: Option<Oid>) -> Result<Oid, StoreError> {
        let tree = base.map(|id| store.tree(id)).transpose()?;
        let mut builder =
            store.repo.treebuilder(tree.as_ref()).map_err(StoreError::git("start a tree"))?;
        for (name, edits) in &self.below {
            let entry = tree.as_ref().and_then(|tree| tree.get_name_bytes(name));
            let (id, mode) = match edits.here {
                Some(Edit::Set(id, mode)) => (id, mode),
                here => {
                    let subtree = match (here, &entry) {
                        (None, Some(entry)) if entry.kind() == Some(ObjectType::Tree) => {
                            Some(entry.id())
                        }
                        _ => None,
                    };
                    (edits.apply(store, subtree)?, FileMode::Tree)
                }
            };
            if mode == FileMode::Tree && store.tree(id)?.is_empty() {
                if entry.is_some() {
                    builder
                        .remove(&name[..])
                        .map_err(StoreError::git("take an entry from a tree"))?;
                }
            } else {
                builder
                    .insert(&name[..], id, mode.into())
                    .map_err(StoreError::git("put an entry into a tree"))?;
            }
        }
        builder.write().map_err(StoreError::git("write a tree"))
    }

    /// The root that [`Edits::apply`] would write, without writing anything: what is new need not be
    /// in the store.
    pub(crate) fn id(&self, store: &Store, base: Option<Oid>) -> Result<Oid, StoreError> {
        let tree = base.map(|id| store.tree(id)).transpose()?;
        let mut entries: BTreeMap<Vec<u8>, (u32, Vec<u8>, Oid)> = BTreeMap::new();
        for entry in tree.iter().flatten() {
            let (mode, name) = (entry.filemode_raw().cast_unsigned(), entry.name_bytes().to_vec());
            entries.insert(place(&name, mode), (mode, name, entry.id()));
        }
        let empty = hash(b"")?;
        for (name, edits) in &self.below {
            let directory = entries.remove(&place(name, TREE)).map(|(_, _, id)| id);
            entries.remove(name);
            let (id, mode) = match edits.here {
                Some(Edit::Set(id, mode)) => (id, u32::from(mode)),
                Some(Edit::Remove) => (edits.id(store, None)?, TREE),
                None => (edits.id(store, directory)?, TREE),
            };
            if (id, mode) != (empty, TREE) {
                entries.insert(place(name, mode), (mode, name.clone(), id));
            }
        }
        let mut bytes = Vec::new();
        for (mode, name, id) in entries.values() {
            bytes.extend_from_slice(format!("{mode:o} ").as_bytes());
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(id.as_bytes());
        }
        hash(&bytes)
    }
}

/// The mode of a directory.
const TREE: u32 = 0o040_000;

/// Where git sorts an entry: the name of a directory counts with a slash at its end.
fn place(name: &[u8], mode: u32) -> Vec<u8> {
    let end = if mode == TREE { &b"/"[..] } else { b"" };
    [name, end].concat()
}

fn hash(tree: &[u8]) -> Result<Oid, StoreError> {
    Oid::hash_object(ObjectType::Tree, tree).map_err(StoreError::git("hash a tree"))
}
