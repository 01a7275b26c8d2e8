//! Host ids for the boxes of root.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Store, lock, make_private_dirs};
use crate::path_error::{Action, PathError};

/// A user and group id of the host that belongs to one box; never 0.
///
/// When root makes a box, its processes must not be root on the host: kernel files that go by id
/// and not by capability would be open to them, and `RLIMIT_NPROC` does nothing for root. So each
/// such box gets an id of its own from 2,000,000,000 upward: above every range that `useradd`,
/// `subuid` and systemd hand out, below 2^31. Each state directory takes 100,000 ids of a slot that
/// its path selects (one of 1,000), and goes through them in turn, leaving out those of living
/// boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct HostId(u32);

/// Why no id could be allocated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostIdError {
    /// The counter can't be read or written.
    #[error(transparent)]
    Io(#[from] PathError),
    /// All 100,000 are in use.
    #[error("every host id of this state directory belongs to a living box")]
    Exhausted,
    /// A number outside of the range.
    #[error("{0} is not a host id of a box")]
    OutOfRange(u32),
}

const FIRST: u32 = 2_000_000_000;
const PER_STORE: u32 = 100_000;
const STORES: u32 = 1000;

impl HostId {
    /// The first id of all, for plans that are made to be thrown away and for probes.
    #[must_use]
    pub const fn first() -> Self {
        Self(FIRST)
    }

    /// The number, the same for user and group.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for HostId {
    type Error = HostIdError;
    fn try_from(number: u32) -> Result<Self, HostIdError> {
        if (FIRST..FIRST + PER_STORE * STORES).contains(&number) {
            Ok(Self(number))
        } else {
            Err(HostIdError::OutOfRange(number))
        }
    }
}

impl From<HostId> for u32 {
    fn from(id: HostId) -> Self {
        id.0
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Store {
    /// Takes the next id that no living box has. Waits for other processes that do the same.
    ///
    /// # Errors
    /// [`HostIdError::Io`] if the counter file can't be used, [`HostIdError::Exhausted`] if there
    /// are 100,000 living boxes.
    pub fn allocate_host_id(&self, living: &BTreeSet<HostId>) -> Result<HostId, HostIdError> {
        make_private_dirs(self.root())?;
        let path = self.root().join("host-ids");
        let mut file = lock::open(&path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)
            .map_err(PathError::at(Action::Lock, &path))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(PathError::at(Action::Read, &path))?;
        // A counter that a crash cut short starts again: living boxes are left out anyway.
        let next = text.trim().parse::<u32>().unwrap_or(0) % PER_STORE;
        let slot = slot(self.root());
        for step in 0..PER_STORE {
            let place = (next + step) % PER_STORE;
            let id = HostId(FIRST + slot * PER_STORE + place);
            if living.contains(&id) {
                continue;
            }
            file.rewind().map_err(PathError::at(Action::Write, &path))?;
            // Fixed width: a shorter number never leaves digits of a longer one behind.
            let line = format!("{:010}\n", place + 1);
            file.write_all(line.as_bytes()).map_err(PathError::at(Action::Write, &path))?;
            return Ok(id);
        }
        Err(HostIdError::Exhausted)
    }
}

/// Which of the slots a state directory has.
fn slot(root: &Path) -> u32 {
    let digest = Sha256::digest(root.as_os_str().as_bytes());
    (u32::from(digest[0]) << 16 | u32::from(digest[1]) << 8 | u32::from(digest[2])) % STORES
}
