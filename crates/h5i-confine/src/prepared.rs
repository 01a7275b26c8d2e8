//! A root directory that is made once and mounted by every session of the same shape.
//!
//! A root in memory is some eighty directories, files and links, made at each start and thrown away
//! at each end: a quarter of the cost of a session. They hold nothing that differs from one session
//! to the next, so they can lie on disk and be mounted read-only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::step::{BindKind, Step};

/// What stands in a root before anything is mounted in it, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(BTreeMap<PathBuf, Node>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
}

/// Takes from the steps what can be prepared, and yields it beside the steps that are left.
pub(crate) fn split(steps: Vec<Step>) -> (Shape, Vec<Step>) {
    let mut shape = Shape::default();
    let mut covered: BTreeSet<PathBuf> = BTreeSet::new();
    let mut left = Vec::new();
    for step in steps {
        // Below a mount, what stands there is the mount's.
        let own = |path: &Path| !path.ancestors().skip(1).any(|above| covered.contains(above));
        match &step {
            Step::Directory { path } if own(path) => shape.directory(path),
            Step::File { path, content } if own(path) => {
                shape.put(path, Node::File(content.clone()));
            }
            Step::Link { path, target } if own(path) => {
                shape.put(path, Node::Link(target.clone()));
            }
            Step::Bind { target, kind, .. } => {
                if own(target) {
                    match kind {
                        BindKind::Directory | BindKind::Layer => shape.directory(target),
                        _ => shape.put(target, Node::File(Vec::new())),
                    }
                }
                covered.insert(target.clone());
                left.push(step);
            }
            Step::Scratch { path, .. } | Step::Overlay { target: path, .. } => {
                if own(path) {
                    shape.directory(path);
                }
                covered.insert(path.clone());
                left.push(step);
            }
            Step::Proc => {
                shape.directory(Path::new("/proc"));
                covered.insert("/proc".into());
                left.push(step);
            }
            Step::Terminals => {
                shape.directory(Path::new("/dev/pts"));
                covered.insert("/dev/pts".into());
                left.push(step);
            }
            _ => left.push(step),
        }
    }
    (shape, left)
}

impl Shape {
    fn directory(&mut self, path: &Path) {
        for above in path.ancestors() {
            self.0.entry(above.to_owned()).or_insert(Node::Directory);
        }
    }

    fn put(&mut self, path: &Path, node: Node) {
        if let Some(parent) = path.parent() {
            self.directory(parent);
        }
        self.0.insert(path.to_owned(), node);
    }

    /// The paths that are there.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// A name for this shape: equal names are equal shapes.
    pub(crate) fn name(&self) -> String {
        let mut digest = Sha256::new();
        for (path, node) in &self.0 {
            let (kind, content): (u8, &[u8]) = match node {
                Node::Directory => (0, &[]),
                Node::File(content) => (1, content),
                Node::Link(target) => (2, target.as_os_str().as_bytes()),
            };
            for part in [path.as_os_str().as_bytes(), &[kind], content] {
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
            let place = root.join(path.strip_prefix("/").unwrap_or(path));
            match node {
                // The modes are these, whatever the caller's mask.
                Node::Directory => {
                    fs::create_dir(&place)?;
                    fs::set_permissions(&place, Permissions::from_mode(0o755))?;
                }
                Node::File(content) => {
                    fs::write(&place, content)?;
                    fs::set_permissions(&place, Permissions::from_mode(0o644))?;
                }
                Node::Link(target) => symlink(target, &place)?,
            }
        }
        Ok(())
    }
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
    use crate::layout::Access;

    fn bind(target: &str, kind: BindKind) -> Step {
        Step::Bind { source: target.into(), target: target.into(), access: Access::Read, kind }
    }

    #[test]
    fn what_lies_below_a_mount_is_left_to_the_stage() {
        let steps = vec![
            Step::Scratch { path: "/run".into(), mode: 0o755 },
            bind("/usr", BindKind::Directory),
            bind("/etc/hosts", BindKind::File),
            bind("/run/h5i/spool", BindKind::Directory),
            Step::Directory { path: "/run/x".into() },
            Step::Link { path: "/bin".into(), target: "usr/bin".into() },
        ];
        let (shape, left) = split(steps);
        let paths: Vec<_> = shape.paths().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(paths, ["/", "/bin", "/etc", "/etc/hosts", "/run", "/usr"]);
        assert_eq!(left.len(), 5);
        assert!(left.contains(&Step::Directory { path: "/run/x".into() }));
    }

    #[test]
    fn a_root_is_made_once_with_its_modes_and_named_by_its_content() {
        let file = |content: &[u8]| {
            split(vec![Step::File { path: "/etc/f".into(), content: content.to_vec() }]).0
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
}
