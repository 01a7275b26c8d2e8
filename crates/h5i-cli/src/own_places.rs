//! The directories of h5i's own, which no box may be granted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use h5i_policy::ResolvedPolicy;

use crate::failure::{Failure, Kind};
use crate::shown::Shown;
use crate::surroundings::Surroundings;
use crate::toolchains::HostFacts;

/// Where h5i keeps boxes and the user's policy, with all links resolved. A box that could write
/// there could change what other boxes are made of; one that could read there has all of them.
#[derive(Clone, Debug)]
pub(crate) struct OwnPlaces(Vec<PathBuf>);

impl OwnPlaces {
    pub(crate) fn of(surroundings: &Surroundings, facts: &dyn HostFacts) -> Self {
        let own = [&surroundings.state_dir, &surroundings.config_dir];
        Self(own.map(|path| real(facts, path)).into())
    }

    /// The directories themselves.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.0
    }

    /// Refuses a policy with a grant that holds one of them, lies in it, or leads there.
    ///
    /// # Errors
    /// `refused`, with the path.
    pub(crate) fn check(
        &self,
        policy: &ResolvedPolicy,
        facts: &dyn HostFacts,
    ) -> Result<(), Failure> {
        let read = policy.fs.read.keys().map(|path| ("read", path));
        let write = policy.fs.write.iter().map(|path| ("write", path));
        for (field, path) in read.chain(write) {
            let place = real(facts, path.as_path());
            if self.0.iter().any(|own| touches(own, &place)) {
                let shown = Shown::path(path.as_path());
                let message = format!(
                    "fs.{field} grants `{shown}`, where h5i keeps its boxes or its configuration"
                );
                return Err(Failure::told(Kind::Refused, message)
                    .hint("grant directories that neither hold them nor lie in them")
                    .detail("path", shown.to_string()));
            }
        }
        Ok(())
    }
}

/// Whether one of the two holds the other.
pub(crate) fn touches(own: &Path, place: &Path) -> bool {
    own.starts_with(place) || place.starts_with(own)
}

/// The path with all links resolved, also of what is not there yet.
fn real(facts: &dyn HostFacts, path: &Path) -> PathBuf {
    let mut missing: Vec<OsString> = Vec::new();
    let mut there = path;
    loop {
        if let Some(real) = facts.real(there) {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        let (Some(above), Some(name)) = (there.parent(), there.file_name()) else {
            return path.to_owned();
        };
        missing.push(name.to_owned());
        there = above;
    }
}
