//! A set of absolute paths that is asked about by bytes.

use std::collections::BTreeSet;
use std::ops::Bound::Excluded;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Absolute paths without `.`, `..`, doubled or trailing slashes.
///
/// `std::path::Path` compares component by component, which made the comparisons of paths a tenth
/// of what a session costs its supervisor. Paths of this form are equal when their bytes are.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathSet(BTreeSet<Vec<u8>>);

impl PathSet {
    /// Adds a path; `false` if it was there.
    pub(crate) fn insert(&mut self, path: &Path) -> bool {
        let path = bytes(path);
        // Most are there already, and need no copy.
        !self.0.contains(path) && self.0.insert(path.to_vec())
    }

    pub(crate) fn remove(&mut self, path: &Path) {
        self.0.remove(bytes(path));
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.0.contains(bytes(path))
    }

    /// Whether a path strictly above this one is in the set.
    pub(crate) fn holds_above(&self, path: &Path) -> bool {
        let path = bytes(path);
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        path.len() > 1
            && slashes.map(|(at, _)| &path[..at.max(1)]).any(|above| self.0.contains(above))
    }

    /// Whether this path or one above it is in the set.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.contains(path) || self.holds_above(path)
    }

    /// Takes out what is strictly below a path.
    pub(crate) fn remove_below(&mut self, path: &Path) {
        let mut first = bytes(path).to_vec();
        if first != b"/" {
            first.push(b'/');
        }
        // What begins with `first` lies between it and the same with the next byte at its end.
        let mut last = first.clone();
        last.pop();
        last.push(b'/' + 1);
        let range = (Excluded(first.clone()), Excluded(last));
        let below: Vec<Vec<u8>> = self.0.range::<Vec<u8>, _>(range).cloned().collect();
        for path in below {
            self.0.remove(&path);
        }
    }
}

/// Whether `path` is `above` or lies below it; both of the form that [`PathSet`] holds.
pub(crate) fn within(path: &Path, above: &Path) -> bool {
    let (path, above) = (bytes(path), bytes(above));
    match path.strip_prefix(above) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || above == b"/",
        None => false,
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

impl<'a> FromIterator<&'a Path> for PathSet {
    fn from_iter<I: IntoIterator<Item = &'a Path>>(paths: I) -> Self {
        Self(paths.into_iter().map(|path| bytes(path).to_vec()).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path() -> impl Strategy<Value = String> {
        // Bytes below and above the slash stand for all others.
        proptest::collection::vec("[a-]{1,2}|a0", 0..4)
            .prop_map(|parts| format!("/{}", parts.join("/")))
    }

    proptest! {
        #[test]
        fn paths_relate_as_their_components_do(
            all in proptest::collection::vec(path(), 0..8),
            one in path(),
            other in path(),
        ) {
            let (one, other) = (Path::new(&one), Path::new(&other));
            let paths: Vec<&Path> = all.iter().map(Path::new).collect();
            let mut set: PathSet = paths.iter().copied().collect();
            prop_assert_eq!(within(one, other), one.starts_with(other));
            prop_assert_eq!(set.contains(one), paths.contains(&one));
            let above = one.ancestors().skip(1).any(|above| paths.contains(&above));
            prop_assert_eq!(set.holds_above(one), above);
            prop_assert_eq!(set.covers(one), above || paths.contains(&one));
            set.remove_below(one);
            for path in paths {
                let below = path != one && path.starts_with(one);
                prop_assert_eq!(set.contains(path), !below, "{:?} after {:?}", path, one);
            }
        }
    }
}
