//! Git objects of the host: the pinned base, and a quarantine for what the box proposes.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use git2::{Config, ObjectType, Oid, Repository, Tree};

use crate::quarantine::Quarantine;

/// The most object directories that a base may borrow from.
const MAX_ALTERNATES: usize = 1024;

/// Bytes of objects that are kept in memory. A file for each would cost far more than reading what
/// the box has changed; what is more goes into files.
const IN_MEMORY: usize = 16 << 20;
/// What an object in memory takes beside its bytes.
const EACH: usize = 256;

/// What a box was made from: a commit, its tree and where its objects are.
///
/// `objects` is an object directory that belongs to the host and that the box can't write. It is
/// only read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Base {
    /// The object directory (`…/objects`); its `info/alternates` are followed.
    pub objects: PathBuf,
    /// The commit; for an empty base or a plain tree, none.
    pub commit: Option<Oid>,
    /// The tree.
    pub tree: Oid,
}

impl Base {
    /// The tree of a commit.
    #[must_use]
    pub fn commit(objects: impl Into<PathBuf>, commit: Oid, tree: Oid) -> Self {
        Self { objects: objects.into(), commit: Some(commit), tree }
    }

    /// A tree without a commit.
    #[must_use]
    pub fn tree(objects: impl Into<PathBuf>, tree: Oid) -> Self {
        Self { objects: objects.into(), commit: None, tree }
    }
}

/// Why the objects of a base can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file operation failed.
    #[error("can't {operation} `{}`", path.display())]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// An object directory's path has a line break, which an alternates file can't hold.
    #[error("the object directory `{}` has a line break in its path", path.display())]
    Path {
        /// The directory.
        path: PathBuf,
    },
    /// The base borrows from more object directories than are followed.
    #[error("the base borrows from more than {MAX_ALTERNATES} object directories")]
    TooManyAlternates,
    /// The patch can't be kept.
    #[error("can't write the patch to a temporary file")]
    Patch(#[source] io::Error),
    /// libgit2 failed.
    #[error("can't {operation}")]
    Git {
        /// What was attempted.
        operation: &'static str,
        /// The failure.
        source: git2::Error,
    },
    /// The base's commit has another tree than the one that was pinned.
    #[error("commit {commit} has tree {found}, the box was made from tree {pinned}")]
    OtherTree {
        /// The commit.
        commit: Oid,
        /// The tree that it has.
        found: Oid,
        /// The tree that was pinned.
        pinned: Oid,
    },
}

impl StoreError {
    pub(crate) fn git(operation: &'static str) -> impl FnOnce(git2::Error) -> Self {
        move |source| Self::Git { operation, source }
    }

    fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { operation, path, source }
    }
}

/// The base's objects, read-only, and what takes all that is written: memory, and when that is used
/// up a temporary object directory.
///
/// It is a repository without a git directory: no config of the box, the repository, the user or
/// the system is read, and there are no refs, hooks, index, attributes or filters to find.
pub(crate) struct Store {
    pub(crate) repo: Repository,
    /// The same without the memory.
    directory: Repository,
    /// Bytes in memory.
    kept: Cell<usize>,
    /// Removed with the store.
    _quarantine: Quarantine,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the base and makes the quarantine in `scratch`, a directory of the host.
    pub(crate) fn open(base: &Base, scratch: &Path) -> Result<Self, StoreError> {
        Self::open_beside(base, None, scratch)
    }

    /// The same, with another object directory of the host to read from.
    pub(crate) fn open_beside(
        base: &Base,
        beside: Option<&Path>,
        scratch: &Path,
    ) -> Result<Self, StoreError> {
        let quarantine =
            Quarantine::new(scratch).map_err(StoreError::io("make a quarantine in", scratch))?;
        let root = quarantine.path();
        let info = root.join("objects/info");
        fs::create_dir_all(&info).map_err(StoreError::io("make", &info))?;
        let refs = root.join("refs");
        fs::create_dir(&refs).map_err(StoreError::io("make", &refs))?;
        let write = |name: &str, content: &[u8]| {
            let path = root.join(name);
            fs::write(&path, content).map_err(StoreError::io("write", &path))
        };
        write("HEAD", b"ref: refs/heads/none\n")?;
        write("config", b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
        write("objects/info/alternates", &alternates(&base.objects, beside)?)?;
        // Opened as a repository only for its object database with a place to write.
        let opened = Repository::open_bare(root).map_err(StoreError::git("open the quarantine"))?;
        let odb = opened.odb().map_err(StoreError::git("open the objects of the base"))?;
        // Asked first, and written to.
        odb.add_new_mempack_backend(i32::MAX).map_err(StoreError::git("keep objects in memory"))?;
        let directory =
            Repository::open_bare(root).map_err(StoreError::git("open the quarantine"))?;
        let repo = Repository::from_odb(odb).map_err(StoreError::git("open the objects"))?;
        Config::new()
            .and_then(|empty| repo.set_config(&empty))
            .map_err(StoreError::git("set an empty configuration"))?;
        let store = Self { repo, directory, kept: Cell::new(0), _quarantine: quarantine };
        store.check(base)?;
        Ok(store)
    }

    fn check(&self, base: &Base) -> Result<(), StoreError> {
        if let Some(commit) = base.commit {
            let found = self
                .repo
                .find_commit(commit)
                .map_err(StoreError::git("read the base commit"))?
                .tree_id();
            if found != base.tree {
                return Err(StoreError::OtherTree { commit, found, pinned: base.tree });
            }
        }
        self.tree(base.tree).map(drop)
    }

    /// A tree; the empty one needs no object.
    pub(crate) fn tree(&self, id: Oid) -> Result<Tree<'_>, StoreError> {
        match self.repo.find_tree(id) {
            Err(error) if error.code() == git2::ErrorCode::NotFound && id == empty_tree()? => {
                self.write(ObjectType::Tree, b"")?;
                self.repo.find_tree(id).map_err(StoreError::git("read the empty tree"))
            }
            other => other.map_err(StoreError::git("read a tree of the base")),
        }
    }

    /// Writes one object into the quarantine.
    pub(crate) fn write(&self, kind: ObjectType, bytes: &[u8]) -> Result<Oid, StoreError> {
        let kept = self.kept.get().saturating_add(bytes.len() + EACH);
        let repo = if kept <= IN_MEMORY {
            self.kept.set(kept);
            &self.repo
        } else {
            &self.directory
        };
        repo.odb()
            .and_then(|odb| odb.write(kind, bytes))
            .map_err(StoreError::git("write an object into the quarantine"))
    }

    /// Where a large object is written part by part: never to memory.
    pub(crate) fn directory(&self) -> Result<git2::Odb<'_>, StoreError> {
        self.directory.odb().map_err(StoreError::git("open the quarantine"))
    }

    /// A blob's content.
    pub(crate) fn blob(&self, id: Oid) -> Result<git2::Blob<'_>, StoreError> {
        self.repo.find_blob(id).map_err(StoreError::git("read a file of the base"))
    }

    /// A blob's size in bytes, without reading it whole.
    pub(crate) fn blob_size(&self, id: Oid) -> Result<u64, StoreError> {
        let header = self.repo.odb().and_then(|odb| odb.read_header(id));
        Ok(header.map_err(StoreError::git("read the size of a file of the base"))?.0 as u64)
    }
}

/// The id of the tree without entries.
fn empty_tree() -> Result<Oid, StoreError> {
    Oid::hash_object(ObjectType::Tree, b"").map_err(StoreError::git("hash the empty tree"))
}

/// The object directories that `objects` and `beside` reach, one a line. Flat, because libgit2 follows a
/// chain of alternates only five deep.
fn alternates(objects: &Path, beside: Option<&Path>) -> Result<Vec<u8>, StoreError> {
    let mut found: Vec<PathBuf> = vec![objects.to_owned()];
    found.extend(beside.filter(|beside| *beside != objects).map(Path::to_owned));
    let mut lines = Vec::new();
    let mut next = 0;
    while let Some(directory) = found.get(next).cloned() {
        next += 1;
        if next > MAX_ALTERNATES {
            return Err(StoreError::TooManyAlternates);
        }
        if directory.as_os_str().as_bytes().contains(&b'\n') {
            return Err(StoreError::Path { path: directory });
        }
        lines.extend_from_slice(directory.as_os_str().as_bytes());
        lines.push(b'\n');
        let file = directory.join("info/alternates");
        let content = match fs::read(&file) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::io("read", &file)(error)),
        };
        for line in content.split(|&byte| byte == b'\n') {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let path = directory.join(PathBuf::from(std::ffi::OsString::from_vec(line.to_vec())));
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use git2::ObjectType;

    use super::{IN_MEMORY, Store};
    use crate::fixture::Fixture;

    /// Files of objects in the quarantine.
    fn files(store: &Store) -> usize {
        let objects = store._quarantine.path().join("objects");
        let directories = std::fs::read_dir(objects).expect("reads").flatten();
        let of_objects = directories.filter(|entry| entry.file_name().len() == 2);
        of_objects.map(|entry| std::fs::read_dir(entry.path()).expect("reads").count()).sum()
    }

    #[test]
    fn what_fits_is_kept_in_memory_and_all_of_it_is_found_again() {
        let fixture = Fixture::new(|_| ());
        let store = Store::open(&fixture.base, fixture.path()).expect("opens");
        let contents = [1, 2, 3].map(|byte| vec![byte; IN_MEMORY / 2 - 1024]);
        let ids = contents.each_ref().map(|content| {
            let id = store.write(ObjectType::Blob, content).expect("writes");
            (id, files(&store))
        });
        assert_eq!(ids.map(|(_, files)| files), [0, 0, 1]);
        for ((id, _), content) in ids.iter().zip(&contents) {
            assert_eq!(store.blob(*id).expect("reads").content(), content);
            assert_eq!(store.blob_size(*id).expect("reads"), content.len() as u64);
        }
    }
}
