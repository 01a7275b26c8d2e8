//! Whether boxes can have an overlay here.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use h5i_confine::{HostFacts, ProbeError, try_overlay};

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
        let id = host_id.unwrap_or_else(HostId::first).number();
        match Self::attempt(store, facts, id)? {
            Ok(()) => {
                replace_file(store.root(), ANSWER, question.as_bytes())?;
                Ok(Self::Works)
            }
            Err(error) => Ok(Self::Fails(error)),
        }
    }

    fn attempt(
        store: &Store,
        facts: &HostFacts,
        id: u32,
    ) -> Result<Result<(), ProbeError>, PathError> {
        let directory = store.root().join(format!(".overlay.{}.trial", random_hex(4)?));
        make_private_dir(&directory)?;
        let tried = try_overlay(facts, id, &directory).result;
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

/// All that the answer depends on.
fn question(store: &Store, facts: &HostFacts) -> Result<String, PathError> {
    let read = |path: &str| {
        let path = std::path::Path::new(path);
        fs::read_to_string(path).map_err(PathError::at(Action::Read, path))
    };
    let boot = read("/proc/sys/kernel/random/boot_id")?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    let root = store.root();
    let device = fs::metadata(root).map_err(PathError::at(Action::Inspect, root))?.dev();
    Ok(format!("{}{}uid {}\ndevice {device}\n", boot, kernel, facts.uid))
}
