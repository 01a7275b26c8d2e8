//! Which files of a large workspace git has to look at: the answer to its `core.fsmonitor`.
//!
//! A session begins with a mount that knows no file yet, and `git status` asks it for each one. In an
//! overlay what differs from the base stands in the upper layer, so a box of many files sees that
//! layer, its index says that nothing differs from the base, and git asks h5i for what may.
//!
//! The answer keeps no state: it names each entry of the index that the base may not answer for,
//! whether it changed or not. Git looks at those as it always does.

mod index_mark;
mod index_paths;

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

pub(crate) use index_mark::{TOKEN, mark_unchanged};
pub(crate) use index_paths::{has_untracked, index_paths};

/// Where such a box sees its upper layer.
pub(crate) const UPPER_IN_BOX: &str = "/run/h5i/upper";
/// Entries from which on a box is such a one. Asking takes about as long as looking at so many.
pub(crate) const MANY: usize = 5_000;

/// Which layer has what is at a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// The upper one has the directory: what is in it may be the box's or, where the upper one says
    /// nothing of it, the base's.
    Upper,
    /// The base has it, and all below it.
    Base,
    /// It is no directory any more.
    Gone,
}

/// The two views of a workspace.
#[derive(Clone, Debug)]
pub(crate) struct Views {
    /// The workspace.
    pub(crate) merged: PathBuf,
    /// The box's own layer of it.
    pub(crate) upper: PathBuf,
}

impl Views {
    /// Those of the index's entries, in its order, that the base does not answer for.
    pub(crate) fn changed<'e>(
        &self,
        entries: impl Iterator<Item = &'e [u8]>,
    ) -> io::Result<Vec<&'e [u8]>> {
        let mut changed = Vec::new();
        // The directories above the last entry: where the name of each ends, and who has it.
        let mut way: Vec<(usize, Layer)> = Vec::new();
        let mut last: &[u8] = b"";
        for entry in entries {
            while let Some((end, _)) = way.last()
                && (entry.get(..=*end) != last.get(..=*end))
            {
                way.pop();
            }
            let from = way.last().map_or(0, |(end, _)| end + 1);
            let slashes = entry.iter().enumerate().skip(from).filter(|(_, byte)| **byte == b'/');
            for (end, _) in slashes {
                let above = way.last().map_or(Layer::Upper, |(_, layer)| *layer);
                way.push((end, self.layer_of(&entry[..end], above)?));
            }
            if way.last().is_none_or(|(_, layer)| *layer != Layer::Base) {
                changed.push(entry);
            }
            last = entry;
        }
        Ok(changed)
    }

    fn layer_of(&self, directory: &[u8], above: Layer) -> io::Result<Layer> {
        if above != Layer::Upper {
            return Ok(above);
        }
        let directory = Path::new(std::ffi::OsStr::from_bytes(directory));
        let kind = |root: &Path| match fs::symlink_metadata(root.join(directory)) {
            Ok(found) => Ok(Some(found.is_dir())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        Ok(match kind(&self.upper)? {
            Some(true) => Layer::Upper,
            // A file, a link, or what hides the base's directory.
            Some(false) => Layer::Gone,
            // What is there nevertheless is the base's.
            None if kind(&self.merged)? == Some(true) => Layer::Base,
            None => Layer::Gone,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A base, a layer over it, and what both are together, for these entries.
    fn changed(base: &[&str], upper: &[&str], merged: &[&str], entries: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let make = |root: &str, paths: &[&str]| {
            let root = dir.path().join(root);
            fs::create_dir(&root).unwrap();
            for path in paths {
                let at = root.join(path);
                match path.strip_suffix('/') {
                    Some(_) => fs::create_dir_all(at).unwrap(),
                    None => {
                        fs::create_dir_all(at.parent().unwrap()).unwrap();
                        fs::write(at, "").unwrap();
                    }
                }
            }
            root
        };
        let views = Views { upper: make("upper", upper), merged: make("merged", merged) };
        assert!(base.iter().all(|path| !path.is_empty()));
        let entries: Vec<&[u8]> = entries.iter().map(|entry| entry.as_bytes()).collect();
        let found = views.changed(entries.into_iter()).unwrap();
        found.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect()
    }

    const BASE: [&str; 6] = ["a", "d/e/f", "d/e/g", "d/h", "d.x", "i/j"];

    #[test]
    fn of_a_box_that_changed_nothing_only_the_root_is_looked_at() {
        assert_eq!(changed(&BASE, &[], &BASE, &BASE), ["a", "d.x"]);
    }

    #[test]
    fn beside_a_change_the_files_of_its_directory_are_looked_at_and_no_others() {
        assert_eq!(changed(&BASE, &["d/h"], &BASE, &BASE), ["a", "d/h", "d.x"]);
        assert_eq!(changed(&BASE, &["d/e/f"], &BASE, &BASE), ["a", "d/e/f", "d/e/g", "d/h", "d.x"]);
    }

    #[test]
    fn all_below_a_directory_that_is_gone_or_something_else_is_looked_at() {
        // What hides a directory of the base is no directory.
        let without = ["a", "d.x", "i/j"];
        assert_eq!(changed(&BASE, &["d"], &without, &BASE), ["a", "d/e/f", "d/e/g", "d/h", "d.x"]);
        let file = ["a", "d", "d.x", "i/j"];
        assert_eq!(changed(&BASE, &["d"], &file, &BASE), ["a", "d/e/f", "d/e/g", "d/h", "d.x"]);
        // One that was made again hides the base's as well.
        let again = ["a", "d/h", "d.x", "i/j"];
        let all = ["a", "d/e/f", "d/e/g", "d/h", "d.x"];
        assert_eq!(changed(&BASE, &["d/h"], &again, &BASE), all);
    }

    #[test]
    fn what_was_added_to_the_index_and_went_again_leaves_no_trace_and_is_looked_at() {
        let entries = ["a", "d/e/f", "d/e/new", "d/h", "new/x/y", "z"];
        let all = ["a", "d/e/f", "d/e/new", "d/h", "new/x/y", "z"];
        // `d/e` was written to; `new` is gone without a trace but that the root was.
        assert_eq!(changed(&BASE, &["d/e/"], &BASE, &entries), all);
    }

    #[test]
    fn a_name_that_only_begins_alike_is_another_directory() {
        let entries = ["d/e/f", "d/ee/f", "dd/e/f"];
        assert_eq!(
            changed(&BASE, &["d/", "dd/e/f"], &["d/e/f", "dd/e/f"], &entries),
            ["d/ee/f", "dd/e/f"]
        );
    }
}
