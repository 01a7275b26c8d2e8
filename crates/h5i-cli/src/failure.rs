//! What a person or a program is told when h5i fails.

use std::fmt;

use h5i_export::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::shown::Shown;
use crate::store::{
    BoxNameError, CommitError, DraftError, FindError, GcError, HostIdError, LockError, OpenError,
    RemoveError,
};
use crate::surroundings::SurroundingsError;
use crate::workspace::{
    DiscoverError, ObjectsError, PackError, PinError, WorkingTreeError, WorkspaceError,
};
use crate::{Action, PathError};

/// The kind of a failure: what a program decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// The command line or a document is wrong.
    Usage,
    /// What was named is not there.
    NotFound,
    /// What was to be made is there.
    Exists,
    /// A rule says no.
    Refused,
    /// This host can't do it.
    Unavailable,
    /// Somebody else is using it.
    Busy,
    /// A budget is spent.
    Limit,
    /// What was read is damaged.
    Corrupt,
    /// The kernel refused a file operation.
    Io,
    /// A mistake in h5i.
    Internal,
}

impl Kind {
    /// The exit code of verbs other than `run` and `shell`.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Exists | Self::Refused | Self::Unavailable | Self::Limit => 4,
            Self::Busy => 5,
            Self::Corrupt => 1,
            Self::Io | Self::Internal => 70,
        }
    }

    /// The word that a person sees first.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refused | Self::Unavailable => "refused",
            _ => "error",
        }
    }
}

/// A failure as it is told: one sentence, what to do, and facts for programs.
///
/// The person, the JSON and the record get the same sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// What a program decides by.
    pub kind: Kind,
    /// What was asked and why it did not happen; lower case, one line, inert on a terminal.
    pub message: String,
    /// What to do now.
    pub hint: Option<String>,
    /// Facts by name.
    pub details: Map<String, Value>,
}

impl Failure {
    /// A failure of this kind with the sentence that the error and its sources make.
    #[must_use]
    pub fn new(kind: Kind, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { kind, message: sentence(error), hint: None, details: Map::new() }
    }

    /// A failure of this kind told by this sentence; it is made inert.
    #[must_use]
    pub fn told(kind: Kind, message: impl AsRef<str>) -> Self {
        let message = Shown::text(message.as_ref()).to_string();
        Self { kind, message, hint: None, details: Map::new() }
    }

    /// Says what to do now.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.word(), self.message)?;
        let fact = |name: &str| self.details.get(name).and_then(Value::as_str);
        // The excerpt of a document repeats the sentence in its first line.
        let excerpt = fact("excerpt").unwrap_or_default();
        for line in excerpt.lines().skip(1) {
            write!(f, "\n{line}")?;
        }
        if let Some(place) = fact("in") {
            write!(f, "\n  in        {place}")?;
        }
        // A suggestion for a document stands at its mark.
        if let Some(hint) = self.hint.as_ref().filter(|hint| !excerpt.ends_with(hint.as_str())) {
            write!(f, "\n  try       {hint}")?;
        }
        // What became of a box that was made for one command.
        match (fact("box"), self.details.get("kept").and_then(Value::as_bool)) {
            (Some(name), Some(true)) => write!(f, "\n  kept      box {name}; h5i box rm {name}"),
            (Some(name), Some(false)) => {
                write!(f, "\n  removed   box {name}; its receipt is in the archive")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// The error and its sources, joined by colons; each part once.
fn sentence(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let part = source.to_string();
        if !text.ends_with(&part) {
            text.push_str(": ");
            // What libgit2 and the kernel say may hold bytes of the repository.
            text.push_str(&Shown::text(&part).to_string());
        }
        next = source.source();
    }
    text
}

impl From<PathError> for Failure {
    fn from(e: PathError) -> Self {
        let failure = Self::new(Kind::Io, &e).detail("path", Shown::path(&e.path).to_string());
        match e.source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                failure.hint("make room there, or set XDG_STATE_HOME to another disk")
            }
            std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied
                if e.action != Action::Read =>
            {
                failure.hint("make it writable, or set XDG_STATE_HOME to a directory that is")
            }
            std::io::ErrorKind::NotADirectory => {
                failure.hint("set XDG_STATE_HOME to a directory that can be written")
            }
            std::io::ErrorKind::NotFound if e.action == Action::CreateDirectory => {
                failure.hint("set XDG_STATE_HOME to a directory that can be written")
            }
            _ => failure,
        }
    }
}

impl From<SurroundingsError> for Failure {
    fn from(e: SurroundingsError) -> Self {
        let hint = match e {
            SurroundingsError::NoHome => "export HOME=DIR, an absolute path",
            SurroundingsError::NoDirectory(_) => "cd to a directory that is there",
        };
        Self::new(Kind::Usage, &e).hint(hint)
    }
}

impl From<OpenError> for Failure {
    fn from(e: OpenError) -> Self {
        Self::new(Kind::Usage, &e).hint("set XDG_STATE_HOME to a short absolute path")
    }
}

impl From<BoxNameError> for Failure {
    fn from(e: BoxNameError) -> Self {
        Self::new(Kind::Usage, &e)
            .hint("a name is like fix-auth: a-z, 0-9, `.`, `_`, `-`, up to 63")
    }
}

impl From<DraftError> for Failure {
    fn from(e: DraftError) -> Self {
        match e {
            DraftError::Exists { ref name } => exists(&e, name.as_str()),
            DraftError::Io(e) => e.into(),
        }
    }
}

impl From<CommitError> for Failure {
    fn from(e: CommitError) -> Self {
        match e {
            CommitError::Exists { ref name } => exists(&e, name.as_str()),
            CommitError::Manifest(_) => Self::new(Kind::Internal, &e),
            CommitError::Io(e) => e.into(),
        }
    }
}

/// A failure of the host at a file operation, with what to do about it: `room` where there is none.
pub(crate) fn io_failure(
    error: &(dyn std::error::Error + 'static),
    source: &std::io::Error,
    room: &str,
) -> Failure {
    use std::io::ErrorKind;
    let failure = Failure::new(Kind::Io, error);
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => failure.hint(room),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            failure.hint("make it writable, then again")
        }
        _ => failure.hint("see what the kernel says of that disk (dmesg), then again"),
    }
}

/// What makes room where h5i keeps its state: a box that is there can't go elsewhere.
pub(crate) const ROOM: &str =
    "make room on the disk of the state directory: h5i box gc, or h5i box rm what is not needed";

/// A failure of the host that keeps objects from being used; none where they are damaged.
pub(crate) fn objects_failure(
    error: &(dyn std::error::Error + 'static),
    source: &StoreError,
) -> Option<Failure> {
    match source {
        StoreError::Io { source, .. } | StoreError::Patch(source) => {
            Some(io_failure(error, source, ROOM))
        }
        StoreError::Git { source, .. } => {
            let failure = git_failure(error, source);
            (failure.kind == Kind::Io).then(|| failure.hint(ROOM))
        }
        _ => None,
    }
}

/// A failure that libgit2 reports: of the kernel's making, or of what it read.
fn git_failure(error: &(dyn std::error::Error + 'static), source: &git2::Error) -> Failure {
    match source.class() {
        git2::ErrorClass::Os | git2::ErrorClass::Filesystem => Failure::new(Kind::Io, error)
            .hint("see that the state directory is writable and has room (XDG_STATE_HOME)"),
        // Of git's own configuration, which may be the person's, or of nobody's repository.
        git2::ErrorClass::Config => Failure::new(Kind::Io, error)
            .hint("see that git's configuration can be read: git config --list --show-origin"),
        _ => Failure::new(Kind::Corrupt, error).hint("git fsck"),
    }
}

fn exists(error: &(dyn std::error::Error + 'static), name: &str) -> Failure {
    Failure::new(Kind::Exists, error)
        .hint(format!("another name, or h5i box rm {name}"))
        .detail("name", name)
}

impl From<FindError> for Failure {
    fn from(e: FindError) -> Self {
        match e {
            FindError::NotFound { ref name, ref names } => {
                let known = names.iter().map(crate::store::BoxName::as_str);
                let hint = match crate::workspace::nearest(name.as_str(), known) {
                    Some(near) => format!("did you mean {near}? h5i box ls shows all"),
                    None => "h5i box ls".to_owned(),
                };
                Self::new(Kind::NotFound, &e).hint(hint).detail("name", name.as_str())
            }
            FindError::Corrupt { ref name, .. } => Self::new(Kind::Corrupt, &e)
                .hint(format!("h5i box rm {name} keeps its receipt"))
                .detail("name", name.as_str()),
            FindError::Io(e) => e.into(),
        }
    }
}

impl From<LockError> for Failure {
    fn from(e: LockError) -> Self {
        match e {
            LockError::Busy => {
                Self::new(Kind::Busy, &e).hint("wait for its runs to end, or h5i box stop it")
            }
            LockError::Io(e) => e.into(),
        }
    }
}

impl From<RemoveError> for Failure {
    fn from(e: RemoveError) -> Self {
        match e {
            RemoveError::Busy => {
                Self::new(Kind::Busy, &e).hint("wait for its runs to end, or h5i box stop it")
            }
            RemoveError::Left(_) => Self::new(Kind::Io, &e).hint("h5i box gc"),
            RemoveError::Io(e) => e.into(),
        }
    }
}

impl From<GcError> for Failure {
    fn from(e: GcError) -> Self {
        match e {
            GcError::Io(e) => e.into(),
            GcError::Remove { .. } => Self::new(Kind::Io, &e),
        }
    }
}

impl From<HostIdError> for Failure {
    fn from(e: HostIdError) -> Self {
        match e {
            HostIdError::Io(e) => e.into(),
            HostIdError::Exhausted => {
                Self::new(Kind::Limit, &e).hint("h5i box rm what is not needed")
            }
            HostIdError::OutOfRange(_) => Self::new(Kind::Corrupt, &e),
        }
    }
}

impl From<DiscoverError> for Failure {
    fn from(e: DiscoverError) -> Self {
        match e {
            DiscoverError::NotFound { .. } => Self::new(Kind::NotFound, &e)
                .hint("-C DIR with a repository, --clone PATH, or --empty for a box without one"),
            DiscoverError::Foreign { ref path, .. } => {
                let place = path.parent().filter(|_| path.ends_with(".git")).unwrap_or(path);
                let hint =
                    format!("git config --global --add safe.directory {}", Shown::path(place));
                Self::new(Kind::Refused, &e).hint(hint)
            }
            DiscoverError::Sha256 { .. } | DiscoverError::Extension { .. } => {
                Self::new(Kind::Unavailable, &e)
                    .hint("clone it into a plain repository, then --clone PATH")
            }
            DiscoverError::Unwritable { .. } => {
                Self::new(Kind::Unavailable, &e).hint("move the repository")
            }
            DiscoverError::Git { ref source, .. } => git_failure(&e, source),
            DiscoverError::Io(e) => e.into(),
        }
    }
}

impl From<PinError> for Failure {
    fn from(e: PinError) -> Self {
        match e {
            PinError::Unborn { .. } => {
                Self::new(Kind::NotFound, &e).hint("make a first commit, or --empty")
            }
            PinError::UnknownRevision { ref nearest, .. } => {
                let hint = nearest.as_ref().map_or_else(
                    || "git log --oneline --all shows what there is".to_owned(),
                    |near| format!("did you mean {}?", Shown::text(near)),
                );
                Self::new(Kind::NotFound, &e).hint(hint)
            }
            PinError::Ambiguous { .. } => Self::new(Kind::Usage, &e).hint("give more digits"),
            PinError::NotACommit { .. } => Self::new(Kind::Usage, &e).hint("name a commit"),
            PinError::NoWorkingTree => {
                Self::new(Kind::Usage, &e).hint("leave --dirty out, or use a working tree")
            }
            PinError::NoRepository => Self::new(Kind::Usage, &e),
            PinError::Unreadable { .. } => Self::new(Kind::Io, &e),
            PinError::Git(ref source) => git_failure(&e, source),
        }
    }
}

impl From<PackError> for Failure {
    fn from(e: PackError) -> Self {
        match e {
            PackError::NoGit => Self::new(Kind::Unavailable, &e).hint("install git"),
            PackError::Spawn { .. } => Self::new(Kind::Io, &e),
            PackError::Failed { .. } => Self::new(Kind::Corrupt, &e).hint("git fsck"),
        }
    }
}

impl From<WorkingTreeError> for Failure {
    fn from(e: WorkingTreeError) -> Self {
        match e {
            WorkingTreeError::Unmerged => {
                Self::new(Kind::Refused, &e).hint("finish or abort it (git status), or leave --dirty out")
            }
            WorkingTreeError::NestedRepository { .. } => Self::new(Kind::Refused, &e)
                .hint("add it to .gitignore, make it a submodule, or leave --dirty out"),
            WorkingTreeError::Index(_) => Self::new(Kind::Unavailable, &e)
                .hint("git update-index --no-split-index, git sparse-checkout reapply --no-sparse-index, or leave --dirty out"),
            WorkingTreeError::Git(ref source) => git_failure(&e, source),
            WorkingTreeError::Io(e) => e.into(),
        }
    }
}

impl From<ObjectsError> for Failure {
    fn from(e: ObjectsError) -> Self {
        match e {
            ObjectsError::NoRepository => Self::new(Kind::Usage, &e),
            ObjectsError::PartialClone(_) => {
                Self::new(Kind::Unavailable, &e).hint("git fetch --refetch --no-filter, then again")
            }
            ObjectsError::BorrowHidden => {
                Self::new(Kind::Refused, &e).hint("history = \"none\", or hide nothing")
            }
            ObjectsError::Pack(e) => e.into(),
            ObjectsError::WorkingTree(e) => e.into(),
            ObjectsError::Git(ref source) => git_failure(&e, source),
            ObjectsError::Key(_) => Self::new(Kind::Internal, &e),
            ObjectsError::Io(e) => e.into(),
        }
    }
}

impl From<WorkspaceError> for Failure {
    fn from(e: WorkspaceError) -> Self {
        use crate::workspace::{CheckoutError, GitDirError};
        match e {
            WorkspaceError::Checkout(CheckoutError::Io(e))
            | WorkspaceError::GitDir(GitDirError::Io(e))
            | WorkspaceError::Io(e) => e.into(),
            WorkspaceError::Checkout(
                CheckoutError::Name { .. } | CheckoutError::TooDeep { .. },
            ) => Self::new(Kind::Refused, &e).hint("the base commit itself has it: name another"),
            WorkspaceError::Checkout(CheckoutError::Git { ref source, .. })
            | WorkspaceError::Git(ref source) => git_failure(&e, source),
            // A tree is laid over another one only where that works.
            WorkspaceError::Layer(_) | WorkspaceError::Checkout(CheckoutError::Hide { .. }) => {
                Self::new(Kind::Internal, &e)
            }
            WorkspaceError::GitDir(GitDirError::Config(ref source)) => git_failure(&e, source),
        }
    }
}

#[cfg(test)]
mod tests;
