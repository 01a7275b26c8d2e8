//! The box that a bundle comes from, alive or removed.

use std::fs;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use git2::Repository;
use h5i_export::{Base, Digest, Event, Lane, Verified, verify_chain};

use crate::archive::archived_as;
use crate::caller::Caller;
use crate::changes::base_of;
use crate::failure::{Failure, Kind};
use crate::log_tail::tail_of;
use crate::path_error::{Action, PathError};
use crate::receipt_log::{LOG, ReceiptLog};
use crate::store::{BoxLock, BoxName, LockError, Manifest, Store, StoredBox};

/// The box whose log has the bundle's digest.
#[derive(Debug)]
pub(crate) enum Origin {
    /// It is there.
    Living {
        /// Where it stands.
        stored: StoredBox,
        /// Its manifest.
        manifest: Box<Manifest>,
        /// Held until the bundle is applied, for the log has one writer; none where the box is
        /// alive, and the holder of its session writes.
        lock: Option<BoxLock>,
    },
    /// It was removed; its log is in the archive.
    Removed {
        /// Its manifest.
        manifest: Box<Manifest>,
    },
}

impl Origin {
    /// Finds the box of that name, and checks that its log is whole and knows the bundle.
    ///
    /// # Errors
    /// `not-found` without such a box, `refused` when its log does not know
    /// the bundle, `corrupt` when the log is not whole.
    pub(crate) fn find(
        caller: &Caller,
        name: &BoxName,
        verified: &Verified,
    ) -> Result<Self, Failure> {
        let missing = match crate::verbs::find(caller, name) {
            Ok(stored) => {
                let lock = match stored.lock() {
                    Ok(lock) => Some(lock),
                    Err(LockError::Busy) => None,
                    Err(error) => return Err(error.into()),
                };
                let manifest = Box::new(stored.manifest()?);
                if knows(&stored.host_dir(), verified)? {
                    return Ok(Self::Living { stored, manifest, lock });
                }
                None
            }
            Err(failure) if failure.kind == Kind::NotFound => Some(failure),
            Err(failure) => return Err(failure),
        };
        let removed = archived_as(&caller.store, name)?;
        let any = !removed.is_empty();
        for found in removed {
            if knows(&found.dir, verified)?
                && let Some(manifest) = found.manifest
            {
                return Ok(Self::Removed { manifest: Box::new(manifest) });
            }
        }
        match missing {
            Some(failure) if !any => Err(failure),
            _ => Err(changed(&format!(
                "the log of box `{name}` does not know the bundle {}",
                verified.bundle
            ))),
        }
    }

    /// The box's manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        match self {
            Self::Living { manifest, .. } | Self::Removed { manifest } => manifest,
        }
    }

    /// The base of the box, in h5i's own objects or, once they are collected, in a repository's.
    ///
    /// # Errors
    /// `corrupt` when the manifest names no objects.
    pub(crate) fn base(
        &self,
        store: &Store,
        repository: Option<&Repository>,
    ) -> Result<Base, Failure> {
        let own = base_of(store, self.manifest())?;
        if own.objects.try_exists().unwrap_or(false) {
            return Ok(own);
        }
        match repository.filter(|repository| repository.find_tree(own.tree).is_ok()) {
            Some(there) => Ok(Base::tree(there.commondir().join("objects"), own.tree)),
            None => Ok(own),
        }
    }

    /// Puts an intention on the box's record before anything is done; of a removed box there is no
    /// log to go on.
    ///
    /// # Errors
    /// An I/O failure, or `busy` when the session that writes the log ended meanwhile.
    pub(crate) fn record(&self, event: Event) -> Result<(), Failure> {
        let Self::Living { stored, lock, .. } = self else { return Ok(()) };
        if lock.is_none() {
            return crate::session::record(stored, event);
        }
        let log = ReceiptLog::open(stored)?;
        log.append(Lane::Host, None, event)?;
        log.sync()
    }

    /// A directory of the host for a quarantine.
    pub(crate) fn scratch(&self, caller: &Caller) -> PathBuf {
        match self {
            Self::Living { stored, .. } => stored.host_dir(),
            Self::Removed { .. } => caller.store.objects_dir(),
        }
    }
}

/// A bundle that is not the one that was reviewed.
pub(crate) fn changed(message: &str) -> Failure {
    Failure::told(Kind::Refused, message)
        .hint("it was changed after the export, or is another box's: export the box again")
}

/// Whether the whole log in `host_dir` has an export with the bundle's digest.
fn knows(host_dir: &Path, verified: &Verified) -> Result<bool, Failure> {
    let path = host_dir.join("manifest.json");
    let manifest = Digest::of(&fs::read(&path).map_err(PathError::at(Action::Read, &path))?);
    let path = host_dir.join(LOG);
    let file = fs::File::open(&path).map_err(PathError::at(Action::Open, &path))?;
    // What has no end yet is being written, or was cut off: no record.
    let end = tail_of(&file, 0).map_err(PathError::at(Action::Read, &path))?;
    let mut exported = false;
    // No head is expected: a bundle of another box is unknown here, the log is not broken by it.
    verify_chain(BufReader::new(file.take(end)), manifest, None, |record| {
        exported |=
            matches!(record.event, Event::Export { bundle, .. } if bundle == verified.bundle);
    })
    .map_err(|e| {
        Failure::new(Kind::Corrupt, &e).hint("the log was changed; do not apply what comes of it")
    })?;
    Ok(exported)
}
