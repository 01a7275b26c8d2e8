//! Directories of one box on the host, gone when the value is.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The host id of the boxes that tests start as root.
pub const HOST_ID: u32 = 2_000_000_001;

/// A workspace and a home of one box, in a temporary directory that any user may walk through.
///
/// For a root caller both belong to [`HOST_ID`], under which the box then runs.
#[derive(Debug)]
pub struct BoxDirs {
    dir: TempDir,
}

impl BoxDirs {
    /// Makes the directories.
    ///
    /// # Errors
    /// When one can't be made or given to the box's id.
    pub fn new() -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("h5i-test-").tempdir()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let dirs = Self { dir };
        for path in [dirs.work(), dirs.home()] {
            fs::create_dir(&path)?;
            dirs.give(&path)?;
        }
        Ok(dirs)
    }

    /// The directory that holds the others; nothing else in it is visible in the box.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The workspace.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The home.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The host id for the box's layout: a root caller's boxes need one.
    #[must_use]
    pub fn host_id(&self) -> Option<u32> {
        rustix::process::geteuid().is_root().then_some(HOST_ID)
    }

    /// Gives a file or directory to the id under which the box runs.
    ///
    /// # Errors
    /// When its owner can't be changed.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        match self.host_id() {
            Some(id) => std::os::unix::fs::lchown(path, Some(id), Some(id)),
            None => Ok(()),
        }
    }
}
