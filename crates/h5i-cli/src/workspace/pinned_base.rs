//! The commit that a box starts on, frozen.

use git2::{Config, ErrorCode, ObjectType, Oid, Reference, Repository};

use super::base_spec::BaseSpec;
use super::host_repository::HostRepository;
use super::nearest::nearest;
use crate::shown::Shown;

/// The base of a box: resolved once, after which no branch that moves changes it.
///
/// Pinning reads the repository and writes nothing anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinnedBase {
    /// What stands on the commit.
    pub kind: BaseKind,
    /// The host repository's commit; none for an empty base.
    pub commit: Option<Oid>,
    /// That commit's tree; none for an empty base.
    pub tree: Option<Oid>,
    /// The branch in the box: the host's, or `main` where it is on none.
    pub branch: String,
    /// What was asked for, in words.
    pub described: String,
    /// The commit's time in seconds since 1970.
    pub committed_at: i64,
}

/// What a base is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BaseKind {
    /// A commit of the host's repository.
    Commit,
    /// The host's working tree on top of that commit.
    WorkingTree,
    /// Nothing.
    Empty,
}

/// Why a base can't be pinned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The repository has no commit yet.
    #[error("the repository has no commit yet: branch `{}` is unborn", Shown::text(branch))]
    Unborn {
        /// The branch that `HEAD` names.
        branch: String,
    },
    /// No commit is meant by the text.
    #[error("no commit is called `{}` in the repository", Shown::text(revision))]
    UnknownRevision {
        /// What was asked for.
        revision: String,
        /// A branch or tag that is spelled nearly like it.
        nearest: Option<String>,
    },
    /// More than one object is meant by the text.
    #[error("`{}` is short for more than one object", Shown::text(revision))]
    Ambiguous {
        /// What was asked for.
        revision: String,
    },
    /// The text means an object that is no commit.
    #[error("`{}` is a {}, not a commit", Shown::text(revision), kind.str())]
    NotACommit {
        /// What was asked for.
        revision: String,
        /// What it is.
        kind: ObjectType,
        /// What libgit2 said when it looked for a commit behind it.
        #[source]
        source: git2::Error,
    },
    /// A bare repository has no working tree to take.
    #[error("a bare repository has no working tree")]
    NoWorkingTree,
    /// A file of the working tree can't be read.
    #[error("can't read `{}`", Shown::path(path))]
    Unreadable {
        /// Which.
        path: std::path::PathBuf,
        /// The failure.
        source: std::io::Error,
    },
    /// A base of that kind needs a repository.
    #[error("this base needs a repository")]
    NoRepository,
    /// The repository can't be read.
    #[error("cannot read the base commit")]
    Git(#[from] git2::Error),
}

/// The branch of boxes whose base is on none.
const NO_BRANCH: &str = "main";

impl PinnedBase {
    /// The base of nothing: an empty tree on branch `main`.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            kind: BaseKind::Empty,
            commit: None,
            tree: None,
            branch: NO_BRANCH.to_owned(),
            described: "empty".to_owned(),
            committed_at: super::base_objects::FIXED_TIME,
        }
    }
}

impl HostRepository {
    /// Resolves what was asked for to a commit of this repository.
    ///
    /// For [`BaseSpec::Clone`] this is the repository that the path names, for
    /// [`BaseSpec::Bundle`] the one that was made of the bundle.
    ///
    /// # Errors
    /// [`PinError`], one variant for each thing that stands in the way.
    pub fn pin(&self, spec: &BaseSpec) -> Result<PinnedBase, PinError> {
        match spec {
            BaseSpec::Empty => Ok(PinnedBase::empty()),
            BaseSpec::Head | BaseSpec::Clone(_) | BaseSpec::Bundle(_) => {
                self.pin_head(BaseKind::Commit)
            }
            BaseSpec::WorkingTree if self.workdir().is_none() => Err(PinError::NoWorkingTree),
            BaseSpec::WorkingTree => self.pin_head(BaseKind::WorkingTree),
            BaseSpec::Revision(revision) => self.pin_revision(revision),
        }
    }

    /// Reads a file of the pinned base, of at most `most` bytes; `None` if there is none (a
    /// directory, a link and an empty base are none). The base of a box of the working tree is the
    /// working tree.
    ///
    /// # Errors
    /// [`PinError::Git`] if the object can't be read, [`PinError::Unreadable`] for a file of the
    /// working tree.
    pub fn read_base_file(
        &self,
        base: &PinnedBase,
        path: &std::path::Path,
        most: usize,
    ) -> Result<Option<Vec<u8>>, PinError> {
        if base.kind == BaseKind::WorkingTree {
            return self.read_working_file(path, most);
        }
        let Some(tree) = base.tree else { return Ok(None) };
        let entry = match self.git().find_tree(tree)?.get_path(path) {
            Ok(entry) => entry,
            Err(e) if e.code() == ErrorCode::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        if !matches!(entry.filemode(), 0o100_644 | 0o100_755 | 0o100_664) {
            return Ok(None);
        }
        let blob = self.git().find_blob(entry.id())?;
        Ok((blob.size() <= most).then(|| blob.content().to_vec()))
    }

    /// Reads a file of the working tree, unless it is one that git ignores.
    fn read_working_file(
        &self,
        path: &std::path::Path,
        most: usize,
    ) -> Result<Option<Vec<u8>>, PinError> {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
        use std::io::Read as _;
        let Some(workdir) = self.workdir() else { return Ok(None) };
        let tracked = self.git().index()?.get_path(path, 0).is_some();
        if !tracked && self.git().status_should_ignore(path)? {
            return Ok(None);
        }
        let failed = |source| PinError::Unreadable { path: workdir.join(path), source };
        let errno = |e: rustix::io::Errno| failed(e.into());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let root =
            openat2(CWD, workdir, flags | OFlags::DIRECTORY, Mode::empty(), ResolveFlags::empty())
                .map_err(errno)?;
        // A link on the way is a link of the base, with nothing below it.
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = match openat2(&root, path, flags, Mode::empty(), beneath) {
            Ok(file) => std::fs::File::from(file),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {
                return Ok(None);
            }
            Err(e) => return Err(errno(e)),
        };
        if !file.metadata().map_err(failed)?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        file.take(bound).read_to_end(&mut bytes).map_err(failed)?;
        Ok((bytes.len() <= most).then_some(bytes))
    }

    fn pin_head(&self, kind: BaseKind) -> Result<PinnedBase, PinError> {
        let head = match self.git().head() {
            Ok(head) => head,
            Err(e) if e.code() == ErrorCode::UnbornBranch => {
                return Err(PinError::Unborn { branch: unborn_branch(self.git()) });
            }
            Err(e) => return Err(e.into()),
        };
        let branch = branch_name(&head);
        let at = branch.clone().unwrap_or_else(|| "detached HEAD".to_owned());
        let described = match kind {
            BaseKind::WorkingTree => format!("working tree on {at}"),
            _ => at,
        };
        let commit = head.peel_to_commit()?;
        Ok(PinnedBase {
            kind,
            commit: Some(commit.id()),
            tree: Some(commit.tree_id()),
            branch: branch.unwrap_or_else(|| NO_BRANCH.to_owned()),
            described,
            committed_at: commit.time().seconds(),
        })
    }

    fn pin_revision(&self, revision: &str) -> Result<PinnedBase, PinError> {
        let (object, reference) = match self.git().revparse_ext(revision) {
            Ok(found) => found,
            Err(e) if e.code() == ErrorCode::Ambiguous => {
                return Err(PinError::Ambiguous { revision: revision.to_owned() });
            }
            Err(e) if matches!(e.code(), ErrorCode::NotFound | ErrorCode::InvalidSpec) => {
                if self.git().head().is_err_and(|e| e.code() == ErrorCode::UnbornBranch) {
                    return Err(PinError::Unborn { branch: unborn_branch(self.git()) });
                }
                let names = self.ref_names();
                let nearest = nearest(revision, names.iter().map(String::as_str));
                return Err(PinError::UnknownRevision {
                    revision: revision.to_owned(),
                    nearest: nearest.map(str::to_owned),
                });
            }
            Err(e) => return Err(e.into()),
        };
        let kind = object.kind().unwrap_or(ObjectType::Any);
        let commit = object.peel_to_commit().map_err(|source| PinError::NotACommit {
            revision: revision.to_owned(),
            kind,
            source,
        })?;
        // `HEAD` resolves to the branch it names.
        let branch = reference.as_ref().and_then(branch_name);
        Ok(PinnedBase {
            kind: BaseKind::Commit,
            commit: Some(commit.id()),
            tree: Some(commit.tree_id()),
            branch: branch.unwrap_or_else(|| NO_BRANCH.to_owned()),
            described: revision.to_owned(),
            committed_at: commit.time().seconds(),
        })
    }

    /// Short names of branches and tags.
    fn ref_names(&self) -> Vec<String> {
        let Ok(references) = self.git().references() else { return Vec::new() };
        references
            .filter_map(Result::ok)
            .filter(|r| r.is_branch() || r.is_tag())
            .filter_map(|r| std::str::from_utf8(r.shorthand_bytes()).ok().map(str::to_owned))
            .collect()
    }
}

/// The short name of a local branch; none for other references and for names that are not UTF-8.
fn branch_name(reference: &Reference<'_>) -> Option<String> {
    let short = reference.name_bytes().strip_prefix(b"refs/heads/")?;
    std::str::from_utf8(short).ok().map(str::to_owned)
}

fn unborn_branch(repo: &Repository) -> String {
    let target = repo.find_reference("HEAD").ok().and_then(|head| {
        head.symbolic_target_bytes().map(|name| String::from_utf8_lossy(name).into_owned())
    });
    target.as_deref().map_or("HEAD", |t| t.strip_prefix("refs/heads/").unwrap_or(t)).to_owned()
}

/// A value of the user's own Git configuration, as seen from a repository if there is one.
pub(super) fn configured(host: Option<&HostRepository>, key: &str) -> Option<String> {
    let config = match host {
        Some(host) => host.git().config(),
        None => Config::open_default(),
    };
    config.ok()?.snapshot().ok()?.get_string(key).ok().filter(|value| !value.is_empty())
}
