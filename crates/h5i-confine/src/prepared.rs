//! A root directory that is made once and mounted by every session of the same shape.
//!
//! A root in memory is some eighty directories, files and links, made at each start and thrown away
//! at each end: a quarter of the cost of a session. They hold nothing that differs from one session
//! to the next, so they can lie on disk and be mounted read-only. Small public files of the host
//! lie there as copies, made anew when one of them changed: a mount each would cost more.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::layout::Access;
use crate::path_set::PathSet;
use crate::step::{BindKind, Step};

/// The largest file of the host that is copied, in bytes.
pub(crate) const LARGEST_COPY: u64 = 256 * 1024;

/// What stands in a root before anything is mounted in it, by path in the order of bytes: what is
/// above comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(BTreeMap<OsString, Node>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
    /// The host's file at the same path, as it was then.
    Copy(Stamp),
}

/// By what a changed file is told from the one that was planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(found: &fs::Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    fn bytes(self) -> [u8; 56] {
        let [(a, b), (c, d)] = [self.modified, self.changed];
        let times = [a, b, c, d].map(i64::cast_unsigned);
        let mut bytes = [0; 56];
        let words = [self.device, self.inode, self.size].into_iter().chain(times);
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Takes from the steps what can be prepared, and yields it beside the steps that are left.
pub(crate) fn split(steps: Vec<Step>, copies: &BTreeMap<PathBuf, Stamp>) -> (Shape, Vec<Step>) {
    let mut shape = Shape::default();
    let mut covered = PathSet::default();
    let mut left = Vec::new();
    for step in steps {
        // Below a mount, what stands there is the mount's.
        let own = |path: &Path| !covered.holds_above(path);
        match &step {
            Step::Directory { path } if own(path) => shape.directory(path),
            Step::File { path, content } if own(path) => {
                shape.put(path, Node::File(content.clone()));
            }
            Step::Link { path, target } if own(path) => {
                shape.put(path, Node::Link(target.clone()));
            }
            Step::Bind { source, target, kind: BindKind::File, access: Access::Read }
                if source == target && own(target) && copies.contains_key(target) =>
            {
                shape.put(target, Node::Copy(copies[target]));
            }
            Step::Bind { target, kind, .. } => {
                if own(target) {
                    match kind {
                        BindKind::Directory | BindKind::Layer => shape.directory(target),
                        _ => shape.put(target, Node::File(Vec::new())),
                    }
                }
                covered.insert(target);
                left.push(step);
            }
            Step::Scratch { path, .. } | Step::Overlay { target: path, .. } => {
                if own(path) {
                    shape.directory(path);
                }
                covered.insert(path);
                left.push(step);
            }
            Step::Proc => {
                shape.directory(Path::new("/proc"));
                covered.insert(Path::new("/proc"));
                left.push(step);
            }
            Step::Terminals => {
                shape.directory(Path::new("/dev/pts"));
                covered.insert(Path::new("/dev/pts"));
                left.push(step);
            }
            _ => left.push(step),
        }
    }
    (shape, left)
}

impl Shape {
    fn directory(&mut self, path: &Path) {
        let mut above = Some(path);
        while let Some(path) = above.filter(|path| !self.0.contains_key(path.as_os_str())) {
            self.0.insert(path.into(), Node::Directory);
            above = path.parent();
        }
    }

    fn put(&mut self, path: &Path, node: Node) {
        if let Some(parent) = path.parent() {
            self.directory(parent);
        }
        self.0.insert(path.into(), node);
    }

    /// The paths that are there.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(Path::new)
    }

    /// How many of them are copies of the host's files.
    pub(crate) fn copies(&self) -> usize {
        self.0.values().filter(|node| matches!(node, Node::Copy(_))).count()
    }

    /// A name for this shape: equal names are equal shapes.
    pub(crate) fn name(&self) -> String {
        let mut digest = Sha256::new();
        for (path, node) in &self.0 {
            let stamp;
            let (kind, content): (u8, &[u8]) = match node {
                Node::Directory => (0, &[]),
                Node::File(content) => (1, content),
                Node::Link(target) => (2, target.as_os_str().as_bytes()),
                Node::Copy(of) => {
                    stamp = of.bytes();
                    (3, &stamp)
                }
            };
            for part in [path.as_bytes(), &[kind], content] {
                digest.update((part.len() as u64).to_le_bytes());
                digest.update(part);
            }
        }
        let mut name = String::new();
        for byte in &digest.finalize()[..16] {
            // Writing to a String can't fail.
            write!(name, "{byte:02x}").ok();
        }
        name
    }

    /// Makes the root below `cache` unless it is there. It is there as a whole or not at all.
    pub(crate) fn ensure(&self, cache: &Path, name: &str) -> io::Result<()> {
        let place = cache.join(name);
        match fs::symlink_metadata(&place) {
            Ok(_) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
        let making = cache.join(format!(".{name}.{}.new", std::process::id()));
        let made = self.make(&making).and_then(|()| fs::rename(&making, &place));
        match made {
            // Another session of the same shape was quicker.
            Err(_) if fs::symlink_metadata(&place).is_ok() => {
                fs::remove_dir_all(&making).ok();
                Ok(())
            }
            Err(e) => {
                fs::remove_dir_all(&making).ok();
                Err(e)
            }
            Ok(()) => Ok(()),
        }
    }

    fn make(&self, root: &Path) -> io::Result<()> {
        for (path, node) in &self.0 {
            let path = Path::new(path);
            let place = root.join(path.strip_prefix("/").unwrap_or(path));
            match node {
                // The modes are these, whatever the caller's mask.
                Node::Directory => {
                    fs::create_dir(&place)?;
                    fs::set_permissions(&place, Permissions::from_mode(0o755))?;
                }
                Node::File(content) => put_file(&place, content)?,
                Node::Copy(stamp) => put_file(&place, &copied(path, *stamp)?)?,
                Node::Link(target) => symlink(target, &place)?,
            }
        }
        Ok(())
    }
}

fn put_file(place: &Path, content: &[u8]) -> io::Result<()> {
    fs::write(place, content)?;
    fs::set_permissions(place, Permissions::from_mode(0o644))
}

/// Reads a file of the host that must still be the one that was planned for.
fn copied(path: &Path, stamp: Stamp) -> io::Result<Vec<u8>> {
    let changed = || io::Error::other(format!("{} changed meanwhile", path.display()));
    let mut file = fs::File::open(path)?;
    let mut content = Vec::new();
    (&mut file).take(LARGEST_COPY + 1).read_to_end(&mut content)?;
    // After the reading: a change during it shows as well.
    let same = Stamp::of(&file.metadata()?) == stamp && content.len() as u64 == stamp.size;
    if same { Ok(content) } else { Err(changed()) }
}

/// Whether a name below a cache of roots is one that a crash left half made.
#[must_use]
pub fn is_half_made_root(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".") && name.ends_with(b".new")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(target: &str, kind: BindKind) -> Step {
        Step::Bind { source: target.into(), target: target.into(), access: Access::Read, kind }
    }

    #[test]
    fn what_lies_below_a_mount_is_left_to_the_stage() {
        let steps = vec![
            Step::Scratch { path: "/run".into(), mode: 0o755, bound: None },
            bind("/usr", BindKind::Directory),
            bind("/etc/hosts", BindKind::File),
            bind("/run/h5i/spool", BindKind::Directory),
            Step::Directory { path: "/run/x".into() },
            Step::Link { path: "/bin".into(), target: "usr/bin".into() },
        ];
        let (shape, left) = split(steps, &BTreeMap::new());
        let paths: Vec<_> = shape.paths().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(paths, ["/", "/bin", "/etc", "/etc/hosts", "/run", "/usr"]);
        assert_eq!(left.len(), 5);
        assert!(left.contains(&Step::Directory { path: "/run/x".into() }));
    }

    #[test]
    fn a_root_is_made_once_with_its_modes_and_named_by_its_content() {
        let file = |content: &[u8]| {
            let steps = vec![Step::File { path: "/etc/f".into(), content: content.to_vec() }];
            split(steps, &BTreeMap::new()).0
        };
        let (one, two) = (file(b"one"), file(b"two"));
        assert_ne!(one.name(), two.name());
        assert_eq!(one.name(), file(b"one").name());
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path().join("roots");
        one.ensure(&cache, &one.name()).unwrap();
        one.ensure(&cache, &one.name()).unwrap();
        let made = cache.join(one.name()).join("etc/f");
        assert_eq!(fs::read(&made).unwrap(), b"one");
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
        assert!(is_half_made_root(OsStr::new(".x.1.new")) && !is_half_made_root(OsStr::new("x")));
    }

    #[test]
    fn a_copy_is_of_the_file_that_was_planned_for_or_there_is_no_root() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("services");
        let shape = |stamp| {
            let step = Step::Bind {
                source: file.clone(),
                target: file.clone(),
                access: Access::Read,
                kind: BindKind::File,
            };
            let (shape, left) = split(vec![step], &BTreeMap::from([(file.clone(), stamp)]));
            assert!(left.is_empty(), "{left:?}");
            assert_eq!(shape.copies(), 1);
            shape
        };
        let stamp = || Stamp::of(&fs::symlink_metadata(&file).unwrap());
        fs::write(&file, "one").unwrap();
        let one = shape(stamp());
        let cache = dir.path().join("roots");
        one.ensure(&cache, &one.name()).unwrap();
        let place = |shape: &Shape| cache.join(shape.name()).join(file.strip_prefix("/").unwrap());
        assert_eq!(fs::read(place(&one)).unwrap(), b"one");
        // Another file at the same path is another root; the first one stays as it was.
        fs::write(dir.path().join("new"), "two").unwrap();
        fs::rename(dir.path().join("new"), &file).unwrap();
        let two = shape(stamp());
        assert_ne!(one.name(), two.name());
        two.ensure(&cache, &two.name()).unwrap();
        assert_eq!(fs::read(place(&two)).unwrap(), b"two");
        assert_eq!(fs::read(place(&one)).unwrap(), b"one");
        // Changed between the plan and the copy: nothing is made of it.
        let planned = stamp();
        fs::write(&file, "three").unwrap();
        let stale = Shape([(file.clone().into(), Node::Copy(planned))].into());
        fs::remove_dir_all(&cache).unwrap();
        fs::create_dir_all(cache.join("x")).unwrap();
        stale.make(&cache.join("made")).expect_err("changed");
    }
}
