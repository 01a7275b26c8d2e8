//! Whether boxes can have an overlay here.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use h5i_confine::{HostFacts, Probe, ProbeError, try_overlay};

use crate::path_error::{Action, PathError};
use crate::store::{HostId, Store, make_private_dir, random_hex, remove_tree, replace_file};

/// Whether the state directory's boxes can have an overlay.
#[derive(Debug)]
#[non_exhaustive]
pub enum OverlaySupport {
    /// It was tried, now or earlier since the host started.
    Works,
    /// It was tried now and failed.
    Fails(ProbeError),
}

/// Where a yes is kept.
const ANSWER: &str = "overlay-works";

impl OverlaySupport {
    /// Tries an overlay in the state directory as a box has it, unless that worked before on this
    /// boot, kernel and file system for this user. A no is asked again every time.
    ///
    /// # Errors
    /// [`PathError`] when the state directory can't be written.
    pub fn of(
        store: &Store,
        facts: &HostFacts,
        host_id: Option<HostId>,
    ) -> Result<Self, PathError> {
        let question = question(store, facts)?;
        let known = fs::read_to_string(store.root().join(ANSWER));
        if known.is_ok_and(|known| known == question) {
            return Ok(Self::Works);
        }
        let id = host_id.unwrap_or_else(HostId::first);
        match Self::probe(store, facts, id)?.result {
            Ok(()) => {
                replace_file(store.root(), ANSWER, question.as_bytes())?;
                Ok(Self::Works)
            }
            Err(error) => Ok(Self::Fails(error)),
        }
    }

    /// Tries an overlay in the state directory, or where that would be made, whatever is known. A root caller's trial runs under
    /// `id`, as its boxes do.
    ///
    /// # Errors
    /// [`PathError`] when the state directory can't be written.
    pub fn probe(store: &Store, facts: &HostFacts, id: HostId) -> Result<Probe, PathError> {
        let directory =
            nearest_directory(store.root()).join(format!(".overlay.{}.trial", random_hex(4)?));
        make_private_dir(&directory)?;
        let tried = try_overlay(facts, id.number(), &directory);
        remove_tree(&directory)?;
        Ok(tried)
    }

    /// Why a box has an overlay or has none, for a person.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Works => "tried on this host".to_owned(),
            Self::Fails(error) => {
                let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                format!("an overlay does not work in the state directory: {error}{cause}")
            }
        }
    }
}

fn nearest_directory(path: &Path) -> &Path {
    path.ancestors().find(|path| path.is_dir()).unwrap_or(path)
}

/// All that the answer depends on.
fn question(store: &Store, facts: &HostFacts) -> Result<String, PathError> {
    let read = |path: &str| {
        let path = Path::new(path);
        fs::read_to_string(path).map_err(PathError::at(Action::Read, path))
    };
    let boot = read("/proc/sys/kernel/random/boot_id")?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    let root = store.root();
    let device = fs::metadata(root).map_err(PathError::at(Action::Inspect, root))?.dev();
    Ok(format!("{}{}uid {}\ndevice {device}\n", boot, kernel, facts.uid))
}
