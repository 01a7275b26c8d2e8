//! Who asked, from where: what every verb starts from.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Kind};
use crate::path_error::PathError;
use crate::shown::Shown;
use crate::store::{Scope, Store};
use crate::surroundings::Surroundings;
use crate::workspace::{DiscoverError, HostRepository, scope_of};

/// The caller's surroundings, the store, and the directory that verbs act on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Caller {
    /// What was read of the environment.
    pub surroundings: Surroundings,
    /// Where boxes are kept.
    pub store: Store,
    /// The working directory, or what `-C` names.
    pub directory: PathBuf,
}

impl Caller {
    /// Reads the surroundings; opens nothing.
    ///
    /// # Errors
    /// A usage failure when there is no home, no working directory, or no way to the state
    /// directory; `not-found` when the directory to act on is none.
    pub fn new(directory: Option<&Path>) -> Result<Self, Failure> {
        let surroundings = Surroundings::read()?;
        let store = Store::open(&surroundings.state_dir)?;
        let directory = directory
            .map_or_else(|| surroundings.directory.clone(), |dir| surroundings.directory.join(dir));
        // Git would look above a directory that is not there, and act on what it finds.
        match std::fs::metadata(&directory) {
            Ok(found) if found.is_dir() => Ok(Self { surroundings, store, directory }),
            found => {
                let why = found.err().map_or_else(String::new, |e| format!(": {e}"));
                let message = format!("`{}` is no directory{why}", Shown::path(&directory));
                Err(Failure::told(Kind::NotFound, message).hint("-C DIR of one that is there"))
            }
        }
    }

    /// Whether the caller is root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.surroundings.uid == 0
    }

    /// A directory for temporary files: h5i's own where it is there, else the system's.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        let own = self.store.objects_dir();
        if own.is_dir() {
            return own;
        }
        self.surroundings.absolute("TMPDIR").unwrap_or_else(|| Path::new("/tmp")).to_owned()
    }

    /// The repository that the directory lies in.
    ///
    /// # Errors
    /// [`DiscoverError`].
    pub fn repository(&self) -> Result<HostRepository, DiscoverError> {
        HostRepository::discover(&self.directory)
    }

    /// Where boxes are looked up from here: the repository's, and those of none.
    ///
    /// # Errors
    /// [`PathError`] when what is there can't be looked at; no repository is no error.
    pub fn scopes(&self) -> Result<Vec<Scope>, PathError> {
        let of_repository = scope_of(&self.directory)?;
        Ok(of_repository.into_iter().chain([Scope::None]).collect())
    }
}
