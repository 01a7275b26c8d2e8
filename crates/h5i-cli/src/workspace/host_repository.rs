//! The host's repository, read only.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::{Config, ErrorCode, Oid, Repository};

use crate::path_error::{Action, PathError};
use crate::shown::Shown;
use crate::store::{Origin, RepoId, Scope};

/// A repository of the host. It is read, never written, and nothing that its configuration names is
/// run: hooks, filters, fsmonitor and external programs are no part of what is done with it.
///
/// Git refuses repositories of other users, because their configuration could run programs. An
/// ordinary user gets that refusal here too (`safe.directory` lifts it). Root may use any user's
/// repository, since nothing of it is run.
pub struct HostRepository {
    repo: Repository,
    workdir: Option<PathBuf>,
    shallow: BTreeSet<Oid>,
    partial: Partial,
}

/// Whether a repository may lack objects that its remote promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Partial {
    Complete,
    Promised,
}

/// Why no repository could be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// Neither the directory nor one above it is a repository.
    #[error("no git repository at `{}` or above", Shown::path(start))]
    NotFound {
        /// Where the search began.
        start: PathBuf,
    },
    /// It belongs to somebody else, and the caller is neither root nor vouched for it.
    #[error("the repository `{}` belongs to user {owner}, not to you", Shown::path(path))]
    Foreign {
        /// The git directory.
        path: PathBuf,
        /// Its owner's id.
        owner: u32,
    },
    /// Its objects are named by SHA-256.
    #[error(
        "the repository `{}` uses SHA-256 object names, which are not supported",
        Shown::path(path)
    )]
    Sha256 {
        /// The git directory.
        path: PathBuf,
    },
    /// It uses an extension of the repository format that is not supported.
    #[error(
        "the repository `{}` uses the extension `{}`, which is not supported",
        Shown::path(path),
        Shown::text(extension)
    )]
    Extension {
        /// The git directory.
        path: PathBuf,
        /// The extension's name.
        extension: String,
    },
    /// The path of its objects can't be written into an `alternates` file.
    #[error("the repository's path `{}` has a line break", Shown::path(path))]
    Unwritable {
        /// The git directory.
        path: PathBuf,
    },
    /// The repository can't be read.
    #[error("cannot open the repository `{}`", Shown::path(path))]
    Git {
        /// The git directory.
        path: PathBuf,
        /// What libgit2 said.
        #[source]
        source: git2::Error,
    },
    /// A path can't be inspected.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// The extensions that change nothing about reading objects and refs.
const HARMLESS: [&str; 6] = [
    "noop",
    "objectformat",
    "worktreeconfig",
    "preciousobjects",
    "relativeworktrees",
    "partialclone",
];

impl HostRepository {
    /// Finds the repository that `start` lies in: its own directory or the nearest one above.
    ///
    /// # Errors
    /// [`DiscoverError`], one variant for each thing that stands in the way.
    pub fn discover(start: &Path) -> Result<Self, DiscoverError> {
        for dir in start.ancestors() {
            if Self::stands_at(dir)? {
                return Self::open(dir);
            }
        }
        Err(DiscoverError::NotFound { start: start.to_owned() })
    }

    /// Opens the repository at exactly `dir`: a working tree, a linked one, or a bare repository.
    ///
    /// # Errors
    /// [`DiscoverError`], one variant for each thing that stands in the way.
    pub fn open(dir: &Path) -> Result<Self, DiscoverError> {
        if !Self::stands_at(dir)? {
            return Err(DiscoverError::NotFound { start: dir.to_owned() });
        }
        let ceiling: Vec<&Path> = dir.parent().into_iter().collect();
        // A `.git` that leads nowhere is a broken repository, not none.
        let git_dir = match Repository::discover_path(dir, ceiling) {
            Ok(git_dir) => git_dir,
            Err(source) => {
                let inner = dir.join(".git");
                let git_dir = if is_there(&inner)? { inner } else { dir.to_owned() };
                return Err(explain_open(&git_dir, source));
            }
        };
        let caller = rustix::process::geteuid().as_raw();
        let config = Config::open_default()
            .map_err(|source| DiscoverError::Git { path: git_dir.clone(), source })?;
        check_owner(&git_dir, dir, caller, &config)?;
        // Opened bare: libgit2 then neither checks the owner (done above, and differently for
        // root) nor looks at a working tree.
        let repo = match Repository::open_bare(&git_dir) {
            Ok(repo) => repo,
            Err(source) => return Err(explain_open(&git_dir, source)),
        };
        check_format(&git_dir, repo.commondir())?;
        if repo.commondir().as_os_str().as_encoded_bytes().contains(&b'\n') {
            return Err(DiscoverError::Unwritable { path: repo.commondir().to_owned() });
        }
        let linked = is_there(&dir.join(".git"))?;
        let shallow = shallow_commits(repo.commondir())?;
        let partial = promises(&repo);
        let workdir = linked.then(|| dir.to_owned());
        Ok(Self { repo, workdir, shallow, partial })
    }

    /// The canonical git directory that all linked worktrees share.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        self.repo.commondir()
    }

    /// The git directory of this worktree.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        self.repo.path()
    }

    /// The working tree; none for a bare repository.
    #[must_use]
    pub fn workdir(&self) -> Option<&Path> {
        self.workdir.as_deref()
    }

    /// Where boxes of this repository are kept.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::Repository(RepoId::of_common_dir(self.common_dir()))
    }

    /// What `origin.json` says about it.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin::new(self.common_dir())
    }

    /// The repository as libgit2 has it, opened bare.
    pub(super) fn git(&self) -> &Repository {
        &self.repo
    }

    /// The commits whose parents the repository does not have.
    pub(super) fn shallow(&self) -> &BTreeSet<Oid> {
        &self.shallow
    }

    pub(super) fn partial(&self) -> Partial {
        self.partial
    }

    /// Where its objects are.
    pub(super) fn objects_dir(&self) -> PathBuf {
        self.repo.commondir().join("objects")
    }

    /// Whether a repository or a working tree of one stands at exactly this directory.
    fn stands_at(dir: &Path) -> Result<bool, DiscoverError> {
        if is_there(&dir.join(".git"))? {
            return Ok(true);
        }
        // What Git itself takes for a bare repository.
        for part in ["HEAD", "objects", "refs"] {
            if !is_there(&dir.join(part))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl std::fmt::Debug for HostRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostRepository")
            .field("git_dir", &self.git_dir())
            .field("workdir", &self.workdir)
            .finish_non_exhaustive()
    }
}

fn is_there(path: &Path) -> Result<bool, PathError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        // A directory above that may not be searched holds no repository of the caller's.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(e) => Err(PathError::at(Action::Inspect, path)(e)),
    }
}

/// Refuses another user's repository to an ordinary caller, unless `safe.directory` in the caller's
/// own configuration names it.
fn check_owner(
    git_dir: &Path,
    dir: &Path,
    caller: u32,
    config: &Config,
) -> Result<(), DiscoverError> {
    let owner = fs::metadata(git_dir).map_err(PathError::at(Action::Inspect, git_dir))?.uid();
    if caller == 0 || owner == caller || is_vouched(config, dir) {
        Ok(())
    } else {
        Err(DiscoverError::Foreign { path: git_dir.to_owned(), owner })
    }
}

/// Whether `safe.directory` covers the directory: `*`, the path itself, or `above/*`; an empty value
/// takes back what came before it.
fn is_vouched(config: &Config, dir: &Path) -> bool {
    let dir = dir.as_os_str().as_encoded_bytes();
    let mut vouched = false;
    let listed = config.multivar("safe.directory", None).and_then(|entries| {
        entries.for_each(|entry| match entry.value_bytes() {
            b"" => vouched = false,
            b"*" => vouched = true,
            value => {
                let below = value.strip_suffix(b"*").filter(|above| above.ends_with(b"/"));
                vouched |= value == dir || below.is_some_and(|above| dir.starts_with(above));
            }
        })
    });
    listed.is_ok() && vouched
}

/// Why a repository could not be opened: what its format says, or else what libgit2 said.
fn explain_open(git_dir: &Path, source: git2::Error) -> DiscoverError {
    match check_format(git_dir, git_dir) {
        Err(named) => named,
        Ok(()) => DiscoverError::Git { path: git_dir.to_owned(), source },
    }
}

/// Refuses what the configuration in `common_dir` says about the repository's format, unless it is
/// known to change nothing here.
fn check_format(git_dir: &Path, common_dir: &Path) -> Result<(), DiscoverError> {
    let path = || git_dir.to_owned();
    let failed = |source| DiscoverError::Git { path: path(), source };
    let config = match Config::open(&common_dir.join("config")) {
        Ok(config) => config,
        Err(e) if e.code() == ErrorCode::NotFound => return Ok(()),
        Err(e) => return Err(failed(e)),
    };
    if config.get_string("extensions.objectformat").is_ok_and(|format| format != "sha1") {
        return Err(DiscoverError::Sha256 { path: path() });
    }
    let mut found = Ok(());
    config
        .entries(Some("^extensions\\."))
        .and_then(|entries| {
            entries.for_each(|entry| {
                let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
                let extension = name.strip_prefix("extensions.").unwrap_or(&name).to_owned();
                // `refstorage = files` is what there always was.
                let plain_refs = extension == "refstorage" && entry.value_bytes() == b"files";
                if found.is_ok() && !plain_refs && !HARMLESS.contains(&extension.as_str()) {
                    found = Err(DiscoverError::Extension { path: path(), extension });
                }
            })
        })
        .map_err(failed)?;
    found
}

fn promises(repo: &Repository) -> Partial {
    let promised = repo.config().and_then(|config| {
        let mut promised = config.get_string("extensions.partialclone").is_ok();
        config.entries(Some("^remote\\..*\\.promisor$"))?.for_each(|_| promised = true)?;
        Ok(promised)
    });
    if matches!(promised, Ok(true)) { Partial::Promised } else { Partial::Complete }
}

fn shallow_commits(common_dir: &Path) -> Result<BTreeSet<Oid>, PathError> {
    let path = common_dir.join("shallow");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(e) => return Err(PathError::at(Action::Read, &path)(e)),
    };
    Ok(text.lines().filter_map(|line| Oid::from_str(line.trim()).ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use git2::Config;

    use super::{DiscoverError, check_owner};

    #[test]
    fn anothers_repository_is_refused_unless_one_is_root_or_vouches_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let owner = fs::metadata(dir.path()).unwrap().uid();
        let config_file = dir.path().join("config");
        let check = |caller: u32, text: &str| {
            fs::write(&config_file, text).unwrap();
            let config = Config::open(&config_file).unwrap();
            check_owner(dir.path(), dir.path(), caller, &config)
        };
        let refused = check(owner + 1, "").unwrap_err();
        assert!(matches!(refused, DiscoverError::Foreign { owner: o, .. } if o == owner));
        check(owner, "").unwrap();
        check(0, "").unwrap();
        let path = dir.path().display();
        let above = dir.path().parent().unwrap().display();
        check(owner + 1, &format!("[safe]\n directory = {path}\n")).unwrap();
        check(owner + 1, &format!("[safe]\n directory = {above}/*\n")).unwrap();
        check(owner + 1, "[safe]\n directory = *\n").unwrap();
        check(owner + 1, "[safe]\n directory = *\n directory =\n").unwrap_err();
        check(owner + 1, &format!("[safe]\n directory = {path}x\n")).unwrap_err();
    }
}
