//! Which documents of repositories the person trusts, by exact digest.

use std::fs;
use std::path::{Path, PathBuf};

use h5i_export::Digest;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::policy_source::read_document;
use crate::store::replace_file;
use crate::timestamp::Timestamp;
use crate::workspace::HostRepository;

/// The list's name in the configuration directory.
const FILE: &str = "trust.toml";

/// What the person trusts. A document is trusted for one repository, and only as the bytes that were
/// shown: one byte changed, or the same bytes in another repository, and it may only tighten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustList {
    version: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    trust: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The repository's identity.
    repository: String,
    /// Where it was, for a person who reads the list.
    directory: String,
    document: Digest,
    since: Timestamp,
}

impl TrustList {
    /// Reads the list; without one, nothing is trusted.
    ///
    /// # Errors
    /// A failure when it is there and can't be read, or is damaged.
    pub(crate) fn read(config_dir: &Path) -> Result<Self, Failure> {
        let path = config_dir.join(FILE);
        let Some(bytes) = read_document(&path)? else {
            return Ok(Self { version: 1, trust: Vec::new() });
        };
        let list = std::str::from_utf8(&bytes).ok().and_then(|text| toml::from_str(text).ok());
        list.filter(|list: &Self| list.version == 1).ok_or_else(|| {
            let shown = crate::shown::Shown::path(&path).to_string();
            Failure::told(Kind::Corrupt, format!("`{shown}` is no list that this version wrote"))
                .hint("move it away; h5i policy trust begins another one")
                .detail("path", shown)
        })
    }

    /// Whether exactly this document is trusted in this repository.
    pub(crate) fn has(&self, repository: &HostRepository, document: &Digest) -> bool {
        let own = repository.scope().to_string();
        self.trust.iter().any(|entry| entry.repository == own && entry.document == *document)
    }

    /// Trusts a document.
    pub(crate) fn add(&mut self, repository: &HostRepository, document: Digest) {
        if self.has(repository, &document) {
            return;
        }
        self.trust.push(Entry {
            repository: repository.scope().to_string(),
            directory: repository.common_dir().to_string_lossy().into_owned(),
            document,
            since: Timestamp::now(),
        });
    }

    /// Trusts no document of this repository any more; yields how many it were.
    pub(crate) fn withdraw(&mut self, repository: &HostRepository) -> usize {
        let (before, own) = (self.trust.len(), repository.scope().to_string());
        self.trust.retain(|entry| entry.repository != own);
        before - self.trust.len()
    }

    /// Replaces the list on disk.
    ///
    /// # Errors
    /// An I/O failure; the old list stands then.
    pub(crate) fn write(&self, config_dir: &Path) -> Result<PathBuf, Failure> {
        let text = toml::to_string(self).map_err(|e| Failure::new(Kind::Internal, &e))?;
        fs::create_dir_all(config_dir)
            .map_err(PathError::at(Action::CreateDirectory, config_dir))?;
        replace_file(config_dir, FILE, text.as_bytes())?;
        Ok(config_dir.join(FILE))
    }
}
