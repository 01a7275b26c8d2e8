//! Collection of what crashes and expired boxes left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use h5i_export::collect_quarantines;
use rustix::fs::FlockOperation;

use super::box_name::BoxName;
use super::draft::lock_directory;
use super::lock::LockError;
use super::objects::{ObjectsKey, are_owned};
use super::removal::{RemoveError, Retain};
use super::scope::Scope;
use super::trees::TreeKey;
use super::{HostId, Store, names, remove_tree};
use crate::path_error::{Action, PathError};
use crate::timestamp::Timestamp;

/// One thing that `gc` removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Collected {
    /// A directory that a crash left half made or half removed, or for its own use.
    Remains(PathBuf),
    /// A box past its expiry.
    Expired(BoxName),
    /// Base objects that no box borrows.
    Objects(ObjectsKey),
    /// A pristine tree that no box uses, over the size that is kept.
    Tree(TreeKey),
}

/// What `gc` did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcReport {
    /// What was removed, in the order of removal.
    pub collected: Vec<Collected>,
    /// Expired boxes that are in use and stay.
    pub busy: Vec<BoxName>,
    /// Boxes whose manifest can't be read; while there are any, no base objects are collected.
    pub damaged: Vec<BoxName>,
}

/// Why a collection stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GcError {
    /// A path can't be listed, locked or removed.
    #[error(transparent)]
    Io(#[from] PathError),
    /// An expired box can't be removed.
    #[error("cannot remove the expired box `{name}`")]
    Remove {
        /// The box.
        name: BoxName,
        /// Why.
        #[source]
        source: RemoveError,
    },
}

impl Store {
    /// Removes what no living process owns and no box needs, as of `now`.
    ///
    /// # Errors
    /// [`GcError`] at the first thing that can't be removed; what was removed before stays removed.
    pub fn gc(&self, now: Timestamp) -> Result<GcReport, GcError> {
        let mut report = GcReport::default();
        for scope in self.scopes()? {
            self.collect_remains(&scope, &mut report)?;
            self.collect_expired(&scope, now, &mut report)?;
            for stored in self.boxes(&scope)? {
                quarantines(&stored.host_dir(), &mut report)?;
            }
        }
        quarantines(&self.objects_dir(), &mut report)?;
        let archive = self.archive_dir();
        for removed in names(&archive)? {
            quarantines(&archive.join(removed), &mut report)?;
        }
        for key in self.collect_objects(None)? {
            report.collected.push(Collected::Objects(key));
        }
        report.collected.extend(self.collect_cut_off()?.into_iter().map(Collected::Remains));
        for key in self.collect_trees(None, Self::TREES_KEPT)? {
            report.collected.push(Collected::Tree(key));
        }
        if self.collect_roots()? {
            report.collected.push(Collected::Remains(self.roots_dir()));
        }
        Ok(report)
    }

    /// Removes the prepared roots when there is no box at all: a session that has one mounted would
    /// lose it, and a session needs a box. True if there were any.
    fn collect_roots(&self) -> Result<bool, PathError> {
        // While somebody makes a box, there is one as good as made.
        let Some(_exclusive) = self.objects_to_collect()? else { return Ok(false) };
        for scope in self.scopes()? {
            if !self.boxes(&scope)?.is_empty() {
                return Ok(false);
            }
        }
        let roots = self.roots_dir();
        let there = roots.try_exists().map_err(PathError::at(Action::Inspect, &roots))?;
        if there {
            remove_tree(&roots)?;
        }
        Ok(there)
    }

    /// The host ids of all boxes whose manifest can be read.
    ///
    /// # Errors
    /// [`PathError`] if a directory can't be listed.
    pub fn living_host_ids(&self) -> Result<BTreeSet<HostId>, PathError> {
        let mut living = BTreeSet::new();
        for scope in self.scopes()? {
            for stored in self.boxes(&scope)? {
                living.extend(stored.manifest().ok().and_then(|manifest| manifest.host_id));
            }
        }
        Ok(living)
    }

    fn collect_remains(&self, scope: &Scope, report: &mut GcReport) -> Result<(), PathError> {
        let boxes = self.boxes_dir(scope);
        for hidden in names(&boxes)?.into_iter().filter(|name| name.starts_with('.')) {
            let path = boxes.join(&hidden);
            let mut parts = hidden[1..].rsplitn(3, '.');
            let (kind, _random, name) = (parts.next(), parts.next(), parts.next().unwrap_or(""));
            // Against drafts between their directory's creation and its lock.
            let guard = lock_directory(&boxes, FlockOperation::LockExclusive)?;
            let owner = match lock_directory(&path, FlockOperation::NonBlockingLockExclusive) {
                Ok(owner) => owner,
                Err(e) if is_passing(&e) => continue,
                Err(e) => return Err(e),
            };
            drop(guard);
            match kind {
                Some("new") => remove_tree(&path)?,
                Some("gone") => drop(self.finish_removal(&path, name, Retain::Receipt)?),
                Some("purged") => drop(self.finish_removal(&path, name, Retain::Nothing)?),
                // Not h5i's.
                _ => continue,
            }
            drop(owner);
            report.collected.push(Collected::Remains(path));
        }
        Ok(())
    }

    fn collect_expired(
        &self,
        scope: &Scope,
        now: Timestamp,
        report: &mut GcReport,
    ) -> Result<(), GcError> {
        for stored in self.boxes(scope)? {
            let name = stored.name().clone();
            let Ok(manifest) = stored.manifest() else {
                report.damaged.push(name);
                continue;
            };
            if manifest.expires.is_none_or(|end| end > now) {
                continue;
            }
            let lock = match stored.lock() {
                Ok(lock) => lock,
                Err(LockError::Busy) => {
                    report.busy.push(name);
                    continue;
                }
                Err(LockError::Io(e)) => return Err(e.into()),
            };
            match self.remove_locked(&stored, lock, Retain::Receipt) {
                Ok(_) => report.collected.push(Collected::Expired(name)),
                Err(source) => return Err(GcError::Remove { name, source }),
            }
        }
        Ok(())
    }

    /// Removes the object directories (only those of `among`, where given) that no box borrows.
    /// None while somebody holds a lease or a manifest can't be read.
    pub(super) fn collect_objects(
        &self,
        among: Option<&[ObjectsKey]>,
    ) -> Result<Vec<ObjectsKey>, PathError> {
        let Some(_exclusive) = self.objects_to_collect()? else { return Ok(Vec::new()) };
        let mut borrowed = BTreeSet::new();
        for scope in self.scopes()? {
            for stored in self.boxes(&scope)? {
                let Ok(manifest) = stored.manifest() else { return Ok(Vec::new()) };
                borrowed.extend(manifest.objects);
            }
        }
        let mut collected = Vec::new();
        for name in names(&self.objects_dir())? {
            if among.is_none() && name.starts_with('.') && name.ends_with(".new") {
                let dir = self.objects_dir().join(&name);
                if !are_owned(&dir)? {
                    remove_tree(&dir)?;
                }
                continue;
            }
            let Ok(key) = ObjectsKey::try_from(name) else { continue };
            let asked = among.is_none_or(|among| among.contains(&key));
            if asked && !borrowed.contains(&key) {
                remove_tree(&self.objects_path(&key))?;
                collected.push(key);
            }
        }
        Ok(collected)
    }
}

/// Collects the copies of what boxes changed that killed verbs left in a directory.
fn quarantines(host: &Path, report: &mut GcReport) -> Result<(), PathError> {
    let left = collect_quarantines(host).map_err(PathError::at(Action::Remove, host))?;
    report.collected.extend(left.into_iter().map(Collected::Remains));
    Ok(())
}

/// Whether a lock was not taken because the directory has an owner, is gone, or is a plain file.
fn is_passing(error: &PathError) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.source.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotFound | ErrorKind::NotADirectory
    )
}
