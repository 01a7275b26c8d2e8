//! The box's own git directory.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Config, Oid};

use super::host_repository::HostRepository;
use super::pinned_base::configured;
use crate::path_error::{Action, PathError};

/// Who commits in the box: the host user's own name and address, where Git knows them. Nothing else
/// of the host's configuration is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// `user.name`.
    pub name: Option<String>,
    /// `user.email`.
    pub email: Option<String>,
}

/// Why the git directory could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitDirError {
    /// The configuration can't be written.
    #[error("cannot write the box's git configuration")]
    Config(#[from] git2::Error),
    /// A file can't be written.
    #[error(transparent)]
    Io(#[from] PathError),
}

impl Identity {
    /// What the host's Git configuration says, seen from the repository if there is one.
    #[must_use]
    pub fn of_host(host: Option<&HostRepository>) -> Self {
        Self { name: configured(host, "user.name"), email: configured(host, "user.email") }
    }
}

/// What goes into a git directory.
pub(super) struct GitDir<'a> {
    /// Where it is made.
    pub(super) path: &'a Path,
    /// The branch it is on, and the only ref it has.
    pub(super) branch: &'a str,
    /// The commit of that branch.
    pub(super) tip: Oid,
    /// The object directories it borrows, as they are seen where it is used.
    pub(super) alternates: &'a [PathBuf],
    /// The bare repository whose `shallow` file applies.
    pub(super) objects: &'a Path,
    /// Who commits.
    pub(super) identity: &'a Identity,
}

impl GitDir<'_> {
    /// Writes everything but the index: no hook, no remote, no other ref.
    pub(super) fn write(&self) -> Result<(), GitDirError> {
        for dir in ["", "objects", "objects/info", "objects/pack", "info", "refs", "refs/tags"] {
            self.make_dir(Path::new(dir))?;
        }
        let reference = Path::new("refs/heads").join(self.branch);
        if let Some(parent) = reference.parent() {
            let path = self.path.join(parent);
            fs::create_dir_all(&path).map_err(PathError::at(Action::CreateDirectory, &path))?;
        }
        self.write_file("HEAD", format!("ref: refs/heads/{}\n", self.branch).as_bytes())?;
        let path = self.path.join(&reference);
        fs::write(&path, format!("{}\n", self.tip)).map_err(PathError::at(Action::Write, &path))?;
        let mut lines = Vec::new();
        for dir in self.alternates {
            lines.extend_from_slice(dir.as_os_str().as_bytes());
            lines.push(b'\n');
        }
        self.write_file("objects/info/alternates", &lines)?;
        let shallow = self.objects.join("shallow");
        match fs::read(&shallow) {
            Ok(ends) => self.write_file("shallow", &ends)?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(PathError::at(Action::Read, &shallow)(e).into()),
        }
        self.write_config()
    }

    fn write_config(&self) -> Result<(), GitDirError> {
        self.write_file("config", b"")?;
        let mut config = Config::open(&self.path.join("config"))?;
        config.set_i32("core.repositoryformatversion", 0)?;
        config.set_bool("core.filemode", true)?;
        config.set_bool("core.bare", false)?;
        config.set_bool("core.logallrefupdates", true)?;
        if let Some(name) = &self.identity.name {
            config.set_str("user.name", name)?;
        }
        if let Some(email) = &self.identity.email {
            config.set_str("user.email", email)?;
        }
        Ok(())
    }

    fn make_dir(&self, name: &Path) -> Result<(), PathError> {
        let path = self.path.join(name);
        fs::create_dir(&path).map_err(PathError::at(Action::CreateDirectory, &path))
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), PathError> {
        let path = self.path.join(name);
        fs::write(&path, bytes).map_err(PathError::at(Action::Write, &path))
    }
}
