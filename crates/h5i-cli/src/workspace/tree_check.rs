//! Whether a pristine tree is what its index says.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use git2::{Index, ObjectType, Oid};

/// The files of a tree: a layer, and the files of the tree that it is laid over, if it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'a> {
    pub(super) layer: &'a Path,
    pub(super) below: Option<&'a Path>,
}

impl Files<'_> {
    /// Whether every file has the content that the index has for it, and the tree below shows
    /// nothing else. `index_below` is that tree's.
    pub(super) fn are_as_in(self, index: &Path, index_below: Option<&Path>) -> bool {
        let Ok(index) = Index::open(index) else { return false };
        let as_indexed = !index.is_empty() && index.iter().all(|entry| self.has(&entry));
        as_indexed && index_below.is_none_or(|below| self.hide_the_rest(&index, below))
    }

    fn has(self, entry: &git2::IndexEntry) -> bool {
        let Some(path) = self.place(&entry.path) else { return false };
        match entry.mode {
            0o160_000 => fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()),
            0o120_000 => fs::read_link(&path)
                .is_ok_and(|target| is_blob(target.as_os_str().as_bytes(), entry.id)),
            mode => {
                let bit = |meta: Metadata| meta.mode() & 0o100 == mode & 0o100;
                fs::symlink_metadata(&path).is_ok_and(bit)
                    && read_file(&path).is_ok_and(|content| is_blob(&content, entry.id))
            }
        }
    }

    fn hide_the_rest(self, index: &Index, below: &Path) -> bool {
        let Ok(below) = Index::open(below) else { return false };
        below.iter().all(|entry| {
            let kept = index.get_path(Path::new(OsStr::from_bytes(&entry.path)), 0).is_some();
            let shown = || self.place(&entry.path).filter(|place| !place.starts_with(self.layer));
            kept || shown().is_none_or(|place| fs::symlink_metadata(place).is_err())
        })
    }

    /// Where what is seen at a path stands; `None` if the layer hides it.
    fn place(self, path: &[u8]) -> Option<PathBuf> {
        let whole = Path::new(OsStr::from_bytes(path));
        let Some(below) = self.below else { return Some(self.layer.join(whole)) };
        let ends = (0..=path.len()).filter(|&end| path.get(end).is_none_or(|&byte| byte == b'/'));
        for end in ends {
            let here = self.layer.join(OsStr::from_bytes(&path[..end]));
            match fs::symlink_metadata(&here) {
                Err(_) => return Some(below.join(whole)),
                Ok(meta) if meta.is_dir() => {}
                Ok(meta) if meta.file_type().is_char_device() && meta.rdev() == 0 => return None,
                Ok(_) => return (end == path.len()).then_some(here),
            }
        }
        Some(self.layer.join(whole))
    }
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    fs::File::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

fn is_blob(content: &[u8], id: Oid) -> bool {
    Oid::hash_object(ObjectType::Blob, content).is_ok_and(|found| found == id)
}
