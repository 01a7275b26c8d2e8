//! What finding toolchains asks about the host.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The facts about the host's files that the readable set depends on.
pub trait HostFacts: fmt::Debug {
    /// The path with all links resolved; `None` if nothing is there or it may not be seen.
    fn real(&self, path: &Path) -> Option<PathBuf>;

    /// Whether a directory is there.
    fn is_dir(&self, path: &Path) -> bool;

    /// The names in a directory that are UTF-8; none if it can't be listed.
    fn names(&self, dir: &Path) -> Vec<String>;
}

/// The facts of this host; where a path leads is looked up once.
#[derive(Debug, Default)]
pub struct HostFiles {
    real: RefCell<BTreeMap<PathBuf, Option<PathBuf>>>,
}

impl HostFacts for HostFiles {
    fn real(&self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.real.borrow().get(path) {
            return known.clone();
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the result is what gets granted, not a check of something else"
        )]
        let real = fs::canonicalize(path).ok();
        self.real.borrow_mut().insert(path.to_owned(), real.clone());
        real
    }

    fn is_dir(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|meta| meta.is_dir())
    }

    fn names(&self, dir: &Path) -> Vec<String> {
        crate::store::names(dir).unwrap_or_default()
    }
}
