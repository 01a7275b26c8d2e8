//! Names that only some file systems can tell apart.

use std::collections::BTreeMap;

use super::{ExportPath, fold_name};
use crate::escape::Escaped;

/// The names of one tree, kept to find two that a folding file system takes for one.
///
/// Every directory on the way to a path counts, so `Docs/a` and `docs/b` clash. Memory is
/// proportional to the number of names that it was told.
#[derive(Clone, Debug, Default)]
pub struct NameSet {
    /// From the folded prefix to the prefix as it was spelt first.
    spelt: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Two names that are equal under case folding or Unicode normalisation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` and `{}` are one name where case or Unicode normalisation is folded",
    Escaped::new(first),
    Escaped::new(second)
)]
#[non_exhaustive]
pub struct NameClash {
    /// The name that was there first.
    pub first: Vec<u8>,
    /// The name that clashes with it.
    pub second: Vec<u8>,
}

impl NameSet {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a path that is there already, such as one of the base; it can't clash.
    pub fn know(&mut self, path: &[u8]) {
        for end in prefix_ends(path) {
            let prefix = &path[..end];
            self.spelt.entry(fold_name(prefix)).or_insert_with(|| prefix.to_vec());
        }
    }

    /// Adds a path that is to be exported.
    ///
    /// # Errors
    /// [`NameClash`] with the shortest prefixes that are spelt differently and fold to one; the
    /// set is then as before for everything below that prefix.
    pub fn add(&mut self, path: &ExportPath) -> Result<(), NameClash> {
        let path = path.as_bytes();
        for end in prefix_ends(path) {
            let prefix = &path[..end];
            let first = self.spelt.entry(fold_name(prefix)).or_insert_with(|| prefix.to_vec());
            if first != prefix {
                return Err(NameClash { first: first.clone(), second: prefix.to_vec() });
            }
        }
        Ok(())
    }
}

/// Where each component of `path` ends.
fn prefix_ends(path: &[u8]) -> impl Iterator<Item = usize> {
    path.iter()
        .enumerate()
        .filter(|&(_, &byte)| byte == b'/')
        .map(|(at, _)| at)
        .chain(std::iter::once(path.len()))
}
