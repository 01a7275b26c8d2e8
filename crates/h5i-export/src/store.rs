//! Git objects of the host: the pinned base, and a quarantine for what the box proposes.

use std::cell::{Cell, OnceCell};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use git2::{Config, ObjectType, Odb, Oid, Repository, Tree};

use crate::quarantine::Quarantine;

/// The most object directories that a base may borrow from.
const MAX_ALTERNATES: usize = 1024;

/// Bytes of objects that are kept in memory. A file for each would cost far more than reading what
/// the box has changed; what is more goes into files.
const IN_MEMORY: usize = 16 << 20;
/// What an object in memory takes beside its bytes.
const EACH: usize = 256;

const OPEN: &str = "open the objects of the base";
/// Where the objects of a repository are.
const OBJECTS: &str = "objects";

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
/// up a temporary object directory, which is made then.
///
/// It is a repository without a git directory: no config of the box, the repository, the user or
/// the system is read, and there are no refs, hooks, index, attributes or filters to find.
pub(crate) struct Store {
    pub(crate) repo: Repository,
    /// Bytes in memory.
    kept: Cell<usize>,
    /// The object directories of the base.
    directories: Vec<PathBuf>,
    /// A directory of the host, for what does not fit.
    scratch: PathBuf,
    directory: OnceCell<Directory>,
}

/// An object directory that is written to.
struct Directory {
    repo: Repository,
    /// Removed with the value.
    quarantine: Quarantine,
}

impl Directory {
    /// Makes one in `scratch` that borrows from these.
    fn new(scratch: &Path, borrowed: &[PathBuf]) -> Result<Self, StoreError> {
        let quarantine =
            Quarantine::new(scratch).map_err(StoreError::io("make a quarantine in", scratch))?;
        let root = quarantine.path();
        for name in ["objects", "objects/info", "refs"] {
            let path = root.join(name);
            fs::create_dir(&path).map_err(StoreError::io("make", &path))?;
        }
        let write = |name: &str, content: &[u8]| {
            let path = root.join(name);
            fs::write(&path, content).map_err(StoreError::io("write", &path))
        };
        write("HEAD", b"ref: refs/heads/none\n")?;
        write("config", b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
        let lines = borrowed.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\n"]);
        write("objects/info/alternates", &lines.collect::<Vec<_>>().concat())?;
        Ok(Self { repo: open(root)?, quarantine })
    }

    /// The same once more, to be given other backends.
    fn open(&self) -> Result<Repository, StoreError> {
        open(self.quarantine.path())
    }
}

/// Opens a quarantine as a repository, which is only for its object database with a place to write.
fn open(root: &Path) -> Result<Repository, StoreError> {
    Repository::open_bare(root).map_err(StoreError::git("open the quarantine"))
}

/// Has an object database read from another directory as well.
fn read_from(odb: &Odb<'_>, objects: &Path) -> Result<(), StoreError> {
    // libgit2's function takes UTF-8, its file of alternates any bytes: a path that is none is not
    // brought here.
    let name = objects.to_string_lossy();
    odb.add_disk_alternate(&name).map_err(StoreError::git(OPEN))
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the base; a quarantine, where one is needed, is made in `scratch`, a directory of the
    /// host.
    pub(crate) fn open(base: &Base, scratch: &Path) -> Result<Self, StoreError> {
        Self::open_beside(base, None, scratch)
    }

    /// The same, with another object directory of the host to read from.
    pub(crate) fn open_beside(
        base: &Base,
        beside: Option<&Path>,
        scratch: &Path,
    ) -> Result<Self, StoreError> {
        let directories = directories(&base.objects, beside)?;
        let directory = OnceCell::new();
        let opened;
        let odb = if scratch.to_str().is_some() && directories.iter().all(|d| d.to_str().is_some())
        {
            let odb = Odb::new().map_err(StoreError::git(OPEN))?;
            directories.iter().try_for_each(|path| read_from(&odb, path))?;
            odb
        } else {
            let made = Directory::new(scratch, &directories)?;
            opened = made.open()?;
            let odb = opened.odb().map_err(StoreError::git(OPEN))?;
            directory.get_or_init(|| made);
            odb
        };
        // Asked first, and written to.
        odb.add_new_mempack_backend(i32::MAX).map_err(StoreError::git("keep objects in memory"))?;
        let repo = Repository::from_odb(odb).map_err(StoreError::git("open the objects"))?;
        Config::new()
            .and_then(|empty| repo.set_config(&empty))
            .map_err(StoreError::git("set an empty configuration"))?;
        let (kept, scratch) = (Cell::new(0), scratch.to_owned());
        let store = Self { repo, kept, directories, scratch, directory };
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

    /// Writes one object, to memory or into the quarantine.
    pub(crate) fn write(&self, kind: ObjectType, bytes: &[u8]) -> Result<Oid, StoreError> {
        let kept = self.kept.get().saturating_add(bytes.len() + EACH);
        let repo = if kept <= IN_MEMORY {
            self.kept.set(kept);
            &self.repo
        } else {
            &self.quarantined()?.repo
        };
        repo.odb()
            .and_then(|odb| odb.write(kind, bytes))
            .map_err(StoreError::git("write an object into the quarantine"))
    }

    /// Where a large object is written part by part: never to memory.
    pub(crate) fn directory(&self) -> Result<Odb<'_>, StoreError> {
        self.quarantined()?.repo.odb().map_err(StoreError::git("open the quarantine"))
    }

    /// The quarantine, made when it is first needed. What is in it is found by the store.
    fn quarantined(&self) -> Result<&Directory, StoreError> {
        if let Some(made) = self.directory.get() {
            return Ok(made);
        }
        let made = Directory::new(&self.scratch, &self.directories)?;
        let odb = self.repo.odb().map_err(StoreError::git(OPEN))?;
        read_from(&odb, &made.quarantine.path().join(OBJECTS))?;
        Ok(self.directory.get_or_init(|| made))
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

/// The object directories that `objects` and `beside` reach. Flat, because libgit2 follows a chain of
/// alternates only five deep.
fn directories(objects: &Path, beside: Option<&Path>) -> Result<Vec<PathBuf>, StoreError> {
    let mut found: Vec<PathBuf> = vec![objects.to_owned()];
    found.extend(beside.filter(|beside| *beside != objects).map(Path::to_owned));
    let mut next = 0;
    while let Some(directory) = found.get(next).cloned() {
        next += 1;
        if next > MAX_ALTERNATES {
            return Err(StoreError::TooManyAlternates);
        }
        if directory.as_os_str().as_bytes().contains(&b'\n') {
            return Err(StoreError::Path { path: directory });
        }
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
    Ok(found)
}

#[cfg(test)]
mod tests {
    use git2::ObjectType;

    use super::{IN_MEMORY, OBJECTS, Store};
    use crate::fixture::Fixture;

    /// Files of objects in the quarantine, none where there is none.
    fn files(store: &Store) -> usize {
        let Some(directory) = store.directory.get() else { return 0 };
        let objects = directory.quarantine.path().join(OBJECTS);
        let directories = std::fs::read_dir(objects).expect("reads").flatten();
        let of_objects = directories.filter(|entry| entry.file_name().len() == 2);
        of_objects.map(|entry| std::fs::read_dir(entry.path()).expect("reads").count()).sum()
    }

    #[test]
    fn what_fits_is_kept_in_memory_and_all_of_it_is_found_again() {
        let fixture = Fixture::new(|_| ());
        let scratch = fixture.path().join("own");
        std::fs::create_dir(&scratch).expect("makes");
        let quarantines = || std::fs::read_dir(&scratch).expect("reads").count();
        let store = Store::open(&fixture.base, &scratch).expect("opens");
        let contents = [1, 2, 3].map(|byte| vec![byte; IN_MEMORY / 2 - 1024]);
        let ids = contents.each_ref().map(|content| {
            let id = store.write(ObjectType::Blob, content).expect("writes");
            (id, files(&store), quarantines())
        });
        assert_eq!(ids.map(|(_, files, made)| (files, made)), [(0, 0), (0, 0), (1, 1)]);
        for ((id, ..), content) in ids.iter().zip(&contents) {
            assert_eq!(store.blob(*id).expect("reads").content(), content);
            assert_eq!(store.blob_size(*id).expect("reads"), content.len() as u64);
        }
        drop(store);
        assert_eq!(quarantines(), 0, "it goes with the store");
    }

    #[test]
    fn a_path_that_is_not_utf_8_takes_what_any_other_takes() {
        use std::os::unix::ffi::OsStrExt as _;

        let fixture = Fixture::new(|_| ());
        let scratch = fixture.path().join(std::ffi::OsStr::from_bytes(b"scratch-\xff"));
        std::fs::create_dir(&scratch).expect("makes");
        let store = Store::open(&fixture.base, &scratch).expect("opens");
        for size in [1024, IN_MEMORY] {
            let content = vec![7; size];
            let id = store.write(ObjectType::Blob, &content).expect("writes");
            assert_eq!(store.blob(id).expect("reads").content(), content);
        }
        assert_eq!(files(&store), 1);
        drop(store);
        assert_eq!(std::fs::read_dir(&scratch).expect("reads").count(), 0);
    }
}
