//! The box's own git directory.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Config, Oid};
use sha2::{Digest as _, Sha256};

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

/// What the configuration of every box begins with.
const FIXED: &str = "[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
";
/// What git asks in the box of a large base, a shell's command.
const CHANGED_PATHS: &str = "/run/h5i/bin/h5i changed-paths";

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
    /// Whether git asks h5i what to look at; only an overlay can tell.
    pub(super) asks: bool,
}

impl GitDir<'_> {
    /// Writes everything but the index: no hook, no remote, no other ref.
    pub(super) fn write(&self) -> Result<(), GitDirError> {
        self.write_to(self.path)
    }

    /// A name for what would be written: 16 hexadecimal digits, equal for equal content.
    pub(super) fn digest(&self) -> Result<String, PathError> {
        let mut digest = Sha256::new();
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        add(self.branch.as_bytes());
        add(self.tip.as_bytes());
        add(&self.shallow()?.unwrap_or_default());
        for value in [&self.identity.name, &self.identity.email] {
            add(&[u8::from(value.is_some())]);
            add(value.as_deref().unwrap_or_default().as_bytes());
        }
        for dir in self.alternates {
            add(dir.as_os_str().as_bytes());
        }
        if self.asks {
            add(CHANGED_PATHS.as_bytes());
        }
        Ok(digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// As [`GitDir::write`], at another place.
    pub(super) fn write_to(&self, path: &Path) -> Result<(), GitDirError> {
        GitDir { path, ..*self }.write_all()
    }

    fn write_all(&self) -> Result<(), GitDirError> {
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
        if let Some(ends) = self.shallow()? {
            self.write_file("shallow", &ends)?;
        }
        self.write_config()
    }

    fn shallow(&self) -> Result<Option<Vec<u8>>, PathError> {
        let path = self.objects.join("shallow");
        match fs::read(&path) {
            Ok(ends) => Ok(Some(ends)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(PathError::at(Action::Read, &path)(e)),
        }
    }

    fn write_config(&self) -> Result<(), GitDirError> {
        let mut text = FIXED.to_owned();
        if self.asks {
            text.push_str(&format!("\tfsmonitor = {CHANGED_PATHS}\n\tfsmonitorHookVersion = 2\n"));
            // What it caches of files that are in no index, h5i could not tell from those that went.
            text.push_str("\tuntrackedCache = false\n");
        }
        self.write_file("config", text.as_bytes())?;
        if self.identity.name.is_none() && self.identity.email.is_none() {
            return Ok(());
        }
        // What a person chose is quoted by the library.
        let mut config = Config::open(&self.path.join("config"))?;
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
