//! Base objects in the making.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::ancestor::Ancestor;
use super::base_objects::ObjectsError;
use super::host_git::HostGit;
use super::host_repository::HostRepository;
use crate::path_error::{Action, PathError};
use crate::store::{OBJECTS_OWNER, Store, make_private_dir, own_objects, random_hex, remove_tree};

/// Bytes that must be free for a failed pack to have another reason than a full disk.
const ROOM: u64 = 1 << 20;

/// How far back the objects go.
pub(super) enum Past {
    /// To the roots, or to these commits.
    Reachable(Vec<Oid>),
    /// To wherever the host's objects go.
    Borrowed,
}

/// A bare repository in the making, removed when dropped.
pub(super) struct Staging {
    dir: PathBuf,
    /// Locked, and shared with the `git` that packs: while either lives, `gc` leaves the directory
    /// alone. A `git` outlives a killed h5i until it has written its pack.
    owner: File,
}

impl Staging {
    /// Begins with no object; what is written is h5i's own.
    pub(super) fn begin(store: &Store) -> Result<Self, ObjectsError> {
        let dir = store.objects_dir().join(format!(".{}.new", random_hex(8)?));
        make_private_dir(&dir)?;
        let staging = Self { owner: own_objects(&dir)?, dir };
        for name in ["objects", "objects/info", "objects/pack", "refs", "refs/heads"] {
            make_private_dir(&staging.dir.join(name))?;
        }
        staging.write("HEAD", b"ref: refs/heads/none\n")?;
        staging.write("config", b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
        Ok(staging)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lets the host's objects be seen. Nothing may be written through a repository opened after
    /// this: libgit2 would touch the times of the host's objects.
    pub(super) fn borrow_from(&self, host: Option<&HostRepository>) -> Result<(), PathError> {
        if let Some(host) = host {
            let mut line = host.objects_dir().as_os_str().as_bytes().to_vec();
            line.push(b'\n');
            self.write("objects/info/alternates", &line)?;
            let ends: String = host.shallow().iter().map(|end| format!("{end}\n")).collect();
            if !ends.is_empty() {
                self.write("shallow", ends.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Names every object directory that is borrowed, also those that others borrow from: a box
    /// sees each at a place of its own, and not where they name each other.
    pub(super) fn borrow_all(&self, directories: &[PathBuf]) -> Result<(), PathError> {
        let mut lines = Vec::new();
        for directory in directories {
            lines.extend_from_slice(directory.as_os_str().as_bytes());
            lines.push(b'\n');
        }
        self.write("objects/info/alternates", &lines)
    }

    /// The repository as it is now.
    pub(super) fn open(&self) -> Result<Repository, git2::Error> {
        Repository::open_bare(&self.dir)
    }

    /// Packs what is reachable and leaves nothing else. What an ancestor's objects have of it is
    /// shared with them, and not packed again.
    pub(super) fn finish(
        &self,
        (tip, past): (Oid, &Past),
        ancestor: Option<&Ancestor>,
        git: &HostGit,
    ) -> Result<(), ObjectsError> {
        for transient in
            ["index", "shallow", "info/exclude", "info/attributes", "info/sparse-checkout"]
        {
            self.remove(transient)?;
        }
        self.write("config", b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
        self.write("HEAD", format!("{tip}\n").as_bytes())?;
        if let Past::Reachable(ends) = past {
            if !ends.is_empty() {
                let lines: String = ends.iter().map(|end| format!("{end}\n")).collect();
                self.write("shallow", lines.as_bytes())?;
            }
            let known = ancestor.filter(|known| self.share(&known.packs)).map(|known| known.tip);
            if let Err(e) = git.pack(&self.dir, (tip, known), &self.owner) {
                self.check_room()?;
                return Err(ObjectsError::Pack(e));
            }
            self.remove("objects/info/alternates")?;
            self.remove_loose()?;
        }
        self.remove(OBJECTS_OWNER)?;
        publish(&self.dir.join("objects"))?;
        Ok(())
    }

    /// Gives the packs of a directory, which nobody writes to again, a second name here. Where that
    /// does not work nothing is shared.
    fn share(&self, packs: &Path) -> bool {
        let Ok(found) = crate::store::names(packs) else { return false };
        let own = self.dir.join("objects/pack");
        let linked =
            found.iter().all(|name| fs::hard_link(packs.join(name), own.join(name)).is_ok());
        if !linked {
            for name in &found {
                // One that is not there was not linked.
                fs::remove_file(own.join(name)).ok();
            }
        }
        linked
    }

    /// Fails if the file system has no room: `git` says why it failed in words only, so the same is
    /// tried again where the kernel's answer can be seen.
    fn check_room(&self) -> Result<(), PathError> {
        let path = self.dir.join("room");
        let file = File::create(&path).map_err(PathError::at(Action::Write, &path))?;
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, ROOM) {
            Err(e @ (Errno::NOSPC | Errno::DQUOT)) => {
                Err(PathError::at(Action::Write, &self.dir)(e))
            }
            // Room enough, or a file system that can't tell.
            _ => Ok(()),
        }
    }

    /// Removes loose objects: all that is needed of them is in the pack.
    fn remove_loose(&self) -> Result<(), PathError> {
        let objects = self.dir.join("objects");
        for name in crate::store::names(&objects)? {
            if name.len() == 2 {
                remove_tree(&objects.join(name))?;
            }
        }
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), PathError> {
        let path = self.dir.join(name);
        fs::write(&path, bytes).map_err(PathError::at(Action::Write, &path))
    }

    fn remove(&self, name: &str) -> Result<(), PathError> {
        let path = self.dir.join(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(PathError::at(Action::Remove, &path)(e)),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Absent after the rename; else the error that led here is the one to tell.
        remove_tree(&self.dir).ok();
    }
}

/// Makes an object directory readable for whoever it is shown to (a box of root has an id of its
/// own), and its files unwritable. The directories above stay closed.
fn publish(objects: &Path) -> Result<(), PathError> {
    let mut waiting = vec![objects.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).map_err(PathError::at(Action::List, &dir))? {
            let path = entry.map_err(PathError::at(Action::List, &dir))?.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                fs::set_permissions(&path, Permissions::from_mode(0o444))
                    .map_err(PathError::at(Action::ChangeMode, &path))?;
            }
        }
        fs::set_permissions(&dir, Permissions::from_mode(0o755))
            .map_err(PathError::at(Action::ChangeMode, &dir))?;
    }
    Ok(())
}
