//! Copies the configuration of known tools into a box's home.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, open, openat};

use super::beneath::{Found, Links, create, open_directory, read};
use super::table::{SeedFile, Tool, seeds_of};
use super::{Removed, Stripped, strip_to};

/// The most files that are copied.
const MAX_FILES: usize = 200;
/// How deep directories may lie in each other.
const MAX_DEPTH: usize = 8;

/// What was copied into a home, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seeded {
    /// The files, by their paths below the home.
    pub copied: Vec<Copied>,
    /// Files that are there and were not copied.
    pub left: Vec<NotCopied>,
}

/// A file that was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Its path below the home.
    pub path: PathBuf,
    /// What of it was not copied.
    pub removed: Vec<Removed>,
}

/// A file that was not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCopied {
    /// Its path below the home.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// A home can't be seeded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeedError {
    /// The person's home can't be opened.
    #[error("can't open the home directory `{}`", path.display())]
    Home {
        /// The directory.
        path: PathBuf,
        /// The failure.
        #[source]
        source: io::Error,
    },
    /// A file can't be made in the box's home.
    #[error("can't write `{}` in the box's home", path.display())]
    Write {
        /// The file, below the home.
        path: PathBuf,
        /// The failure.
        #[source]
        source: io::Error,
    },
}

/// Copies the files of `tools` from the person's home `from` to the directory `to`, without
/// credentials.
///
/// A file that does not exist is none to tell about. Of each at most 1 MiB is taken, of all 200
/// files. A link is followed to a place inside of `from`, in directories that are taken as a whole
/// not at all. What is in `to` already stays as it is. Files are made for their owner only (0600,
/// directories 0700), never outside of `to`, whatever lies there.
///
/// # Errors
/// [`SeedError`]; what was copied until then stays.
pub fn seed(from: &Path, to: impl AsFd, tools: &[Tool]) -> Result<Seeded, SeedError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let home = open(from, flags, Mode::empty())
        .map_err(|error| SeedError::Home { path: from.to_owned(), source: error.into() })?;
    let mut seeding = Seeding { home, to: to.as_fd(), seeded: Seeded::default(), full: false };
    for file in tools.iter().flat_map(|tool| seeds_of(*tool)) {
        match file.path.strip_suffix('/') {
            Some(directory) => seeding.directory(Path::new(directory), file, MAX_DEPTH)?,
            None => seeding.file(Path::new(file.path), file, Links::Followed)?,
        }
    }
    Ok(seeding.seeded)
}

struct Seeding<'a> {
    home: OwnedFd,
    to: BorrowedFd<'a>,
    seeded: Seeded,
    /// Whether no more is copied.
    full: bool,
}

impl Seeding<'_> {
    fn file(&mut self, path: &Path, file: &SeedFile, links: Links) -> Result<(), SeedError> {
        if self.full {
            return Ok(());
        }
        let clean = match self.cleaned(path, file, links) {
            Ok(Some(clean)) => clean,
            Ok(None) => return Ok(()),
            Err(why) => {
                self.leave(path, why);
                return Ok(());
            }
        };
        if self.seeded.copied.len() == MAX_FILES {
            self.full = true;
            self.leave(
                path,
                "200 files were copied already; this and all others are left".to_owned(),
            );
            return Ok(());
        }
        match create(self.to, path, &clean.bytes) {
            Ok(()) => {
                let removed = clean.removed;
                self.seeded.copied.push(Copied { path: path.to_owned(), removed });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.leave(path, "the box has one already".to_owned());
            }
            Err(source) => return Err(SeedError::Write { path: path.to_owned(), source }),
        }
        Ok(())
    }

    /// What of a file is to be copied, or why nothing is.
    fn cleaned(
        &self,
        path: &Path,
        file: &SeedFile,
        links: Links,
    ) -> Result<Option<Stripped>, String> {
        let bytes = match read(&self.home, path, links).map_err(|error| error.to_string())? {
            Found::Bytes(bytes) => bytes,
            Found::Nothing => return Ok(None),
            Found::TooLarge => return Err("it is larger than 1 MiB".to_owned()),
            Found::Other => return Err("it is no regular file".to_owned()),
            Found::LeadsOut => return Err("it is a link that leads out of the home".to_owned()),
        };
        strip_to(file.format, file.keep, &bytes).map(Some).map_err(|error| error.to_string())
    }

    fn directory(&mut self, path: &Path, file: &SeedFile, depth: usize) -> Result<(), SeedError> {
        let names = match open_directory(&self.home, path).map_err(io::Error::from).and_then(names)
        {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                self.leave(path, error.to_string());
                return Ok(());
            }
        };
        for (name, kind) in names {
            let path = path.join(name);
            match kind {
                FileType::Directory if depth == 0 => {
                    self.leave(&path, "it lies too deep".to_owned())
                }
                FileType::Directory => self.directory(&path, file, depth - 1)?,
                _ => self.file(&path, file, Links::Refused)?,
            }
        }
        Ok(())
    }

    fn leave(&mut self, path: &Path, why: String) {
        self.seeded.left.push(NotCopied { path: path.to_owned(), why });
    }
}

/// The entries of a directory, in the order of their names, with what they are.
fn names(directory: OwnedFd) -> io::Result<Vec<(PathBuf, FileType)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(name));
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let found = openat(&directory, &path, flags, Mode::empty())?;
                FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode)
            }
            known => known,
        };
        names.push((path, kind));
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}
