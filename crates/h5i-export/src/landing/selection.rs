//! Some of a bundle's files.

use std::collections::BTreeSet;

use git2::FileMode;

use super::{LandError, Landing};
use crate::apply::{Edit, Edits};
use crate::review::ChangeKind;
use crate::review::patch::{self, Where};

impl Landing {
    /// Takes only what changes at these paths or below them; a renamed file is taken by either of
    /// its names.
    ///
    /// # Errors
    /// [`LandError::NotChanged`] for a path at which nothing changes, [`LandError::LinkEscapes`] for
    /// a link that was reviewed together with what keeps it inside.
    pub fn only(mut self, paths: &[Vec<u8>]) -> Result<Self, LandError> {
        let (changes, _) =
            patch::make(&self.store, (self.base, self.tree), Where::All, &mut std::io::sink())?;
        let mut matched: BTreeSet<usize> = BTreeSet::new();
        let mut edits = Edits::default();
        for change in &changes {
            let old = change.old_path.as_deref().unwrap_or(&change.path);
            let chosen: Vec<usize> = (0..paths.len())
                .filter(|&at| covers(&paths[at], &change.path) || covers(&paths[at], old))
                .collect();
            if chosen.is_empty() {
                continue;
            }
            matched.extend(chosen);
            if matches!(change.kind, ChangeKind::Renamed | ChangeKind::Deleted) {
                edits.add(old, Edit::Remove);
            }
            if let Some(mode) = mode(change.new_mode) {
                edits.add(&change.path, Edit::Set(change.new_id, mode));
            }
        }
        if let Some(at) = (0..paths.len()).find(|at| !matched.contains(at)) {
            return Err(LandError::NotChanged { path: paths[at].clone() });
        }
        self.tree = edits.apply(&self.store, Some(self.base))?;
        super::checks::check(&self.store, self.base, self.tree)?;
        Ok(self)
    }
}

/// Whether `path` is `chosen` or below it.
fn covers(chosen: &[u8], path: &[u8]) -> bool {
    let chosen = chosen.strip_suffix(b"/").unwrap_or(chosen);
    path.strip_prefix(chosen).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

fn mode(bits: u32) -> Option<FileMode> {
    [FileMode::Blob, FileMode::BlobExecutable, FileMode::Link]
        .into_iter()
        .find(|&mode| u32::from(mode) == bits)
}
