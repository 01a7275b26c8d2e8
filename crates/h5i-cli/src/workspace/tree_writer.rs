//! Trees and commits of h5i's own making, written as they are.
//!
//! libgit2's own writers check that all that is named exists, and touch the time of an object that
//! they would write and find: in the host's repository, if that is where they look. Here the only
//! repository they see is h5i's own, so the objects are put together by hand.

use git2::{ObjectType, Odb, Oid};

/// One file of a tree to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileEntry {
    /// Its path, bytes.
    pub(super) path: Vec<u8>,
    /// Its mode as a tree has it.
    pub(super) mode: u32,
    /// Its object.
    pub(super) id: Oid,
}

/// The bytes of one tree object.
#[derive(Default)]
pub(super) struct TreeBytes(Vec<u8>);

impl TreeBytes {
    /// Adds an entry. Entries come in Git's order: by name, a directory's as if it ended with `/`.
    pub(super) fn push(&mut self, mode: u32, name: &[u8], id: Oid) {
        self.0.extend_from_slice(format!("{mode:o} ").as_bytes());
        self.0.extend_from_slice(name);
        self.0.push(0);
        self.0.extend_from_slice(id.as_bytes());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn write(&self, odb: &Odb<'_>) -> Result<Oid, git2::Error> {
        odb.write(ObjectType::Tree, &self.0)
    }
}

/// Writes the trees of files that are sorted by the bytes of their paths, and gives the root's
/// name. That order, taken directory by directory, is the order of tree entries as well: the byte
/// after a directory's name is its `/`.
pub(super) fn write_trees(odb: &Odb<'_>, files: &[FileEntry]) -> Result<Oid, git2::Error> {
    write_level(odb, files, 0)
}

fn write_level(odb: &Odb<'_>, files: &[FileEntry], above: usize) -> Result<Oid, git2::Error> {
    let mut tree = TreeBytes::default();
    let mut rest = files;
    while let Some(first) = rest.first() {
        let below = &first.path[above..];
        match below.iter().position(|&b| b == b'/') {
            None => {
                tree.push(first.mode, below, first.id);
                rest = &rest[1..];
            }
            Some(slash) => {
                let prefix = &first.path[..=above + slash];
                let inside = rest.iter().take_while(|file| file.path.starts_with(prefix)).count();
                let id = write_level(odb, &rest[..inside], prefix.len())?;
                tree.push(0o040_000, &below[..slash], id);
                rest = &rest[inside..];
            }
        }
    }
    tree.write(odb)
}

/// Writes a commit by `h5i <h5i@localhost>` at `time`, seconds since 1970, UTC. Equal input gives
/// an equal commit.
pub(super) fn write_commit(
    odb: &Odb<'_>,
    tree: Oid,
    parent: Option<Oid>,
    time: i64,
) -> Result<Oid, git2::Error> {
    let subject = if parent.is_some() { "Working tree" } else { "Base" };
    write_commit_of(odb, tree, parent, time, subject)
}

/// The same with a subject of its own.
pub(crate) fn write_commit_of(
    odb: &Odb<'_>,
    tree: Oid,
    parent: Option<Oid>,
    time: i64,
    subject: &str,
) -> Result<Oid, git2::Error> {
    let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
    let who = format!("h5i <h5i@localhost> {time} +0000");
    let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{subject}\n");
    odb.write(ObjectType::Commit, text.as_bytes())
}
