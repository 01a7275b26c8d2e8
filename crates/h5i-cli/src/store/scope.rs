//! Which repository a box belongs to.

use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::json_bytes::JsonBytes;

/// A repository's identity: the first 16 hexadecimal digits of the SHA-256 of the canonical path of
/// its common git directory. All linked worktrees of a repository share it; a moved repository gets
/// another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepoId(String);

impl RepoId {
    /// The identity of the repository whose common git directory is `common_dir`, which must be
    /// canonical.
    #[must_use]
    pub fn of_common_dir(common_dir: &Path) -> Self {
        // libgit2 and the standard library disagree about a trailing slash; the identity must not.
        let bytes = common_dir.as_os_str().as_bytes();
        let bytes = bytes.strip_suffix(b"/").filter(|b| !b.is_empty()).unwrap_or(bytes);
        let mut text = String::with_capacity(16);
        for byte in &Sha256::digest(bytes)[..8] {
            // Writing to a String can't fail.
            write!(text, "{byte:02x}").ok();
        }
        Self(text)
    }

    /// The 16 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where boxes are looked up: one repository, or none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scope {
    /// Boxes that were made with `--empty` or `--clone`.
    None,
    /// Boxes of one repository.
    Repository(RepoId),
}

impl Scope {
    /// The directory's name below `repos/`.
    pub(crate) fn directory(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Repository(id) => id.as_str(),
        }
    }

    pub(crate) fn from_directory(name: &str) -> Option<Self> {
        if name == "none" {
            return Some(Self::None);
        }
        let hex = |b: u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
        (name.len() == 16 && name.bytes().all(hex))
            .then(|| Self::Repository(RepoId(name.to_owned())))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.directory())
    }
}

/// What `origin.json` beside the boxes of a repository says about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Origin {
    /// Format version, 1.
    pub v: u32,
    /// The canonical common git directory.
    pub common_dir: JsonBytes,
}

impl Origin {
    /// The origin of a repository with this canonical common git directory.
    #[must_use]
    pub fn new(common_dir: &Path) -> Self {
        Self { v: 1, common_dir: JsonBytes::of_path(common_dir) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{RepoId, Scope};

    #[test]
    fn identity_is_the_start_of_the_digest_of_the_path() {
        // printf /srv/app/.git | sha256sum
        let id = RepoId::of_common_dir(Path::new("/srv/app/.git"));
        assert_eq!(id, RepoId::of_common_dir(Path::new("/srv/app/.git/")));
        assert_ne!(id, RepoId::of_common_dir(Path::new("/srv/app2/.git")));
        assert_eq!(id.as_str().len(), 16);
    }

    #[test]
    fn only_names_that_h5i_makes_are_scopes() {
        assert_eq!(Scope::from_directory("none"), Some(Scope::None));
        assert!(Scope::from_directory("0123456789abcdef").is_some());
        for name in ["", "None", "0123456789abcde", "0123456789abcdeF", ".none"] {
            assert_eq!(Scope::from_directory(name), None, "{name}");
        }
    }
}
