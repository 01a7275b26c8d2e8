//! What a box's home begins with: configuration from the person's home, without credentials, and a
//! runtime that believes it is logged in.

use std::fs::File;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use h5i_broker::home::{Runtime, Seeded, Tool, seed, seeds_of, set_up};
use h5i_confine::WORKSPACE;
use h5i_policy::{Grant, Login, ResolvedPolicy, SecretRef, Seed, Via};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::store::{HostId, StoredBox};

/// Where a box's host directory says what its home began with.
pub(crate) const FILE: &str = "seeded.json";

/// What a home began with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeededHome {
    /// The files.
    pub(crate) copied: Vec<CopiedFile>,
    /// Files that are there and were not copied.
    pub(crate) left: Vec<LeftFile>,
}

/// A file that was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CopiedFile {
    /// Its path below the home.
    pub(crate) path: String,
    /// What of it was not copied: where it stood, and why. Never the value.
    pub(crate) removed: Vec<RemovedEntry>,
}

/// An entry of a file that was not copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemovedEntry {
    pub(crate) place: String,
    pub(crate) why: String,
}

/// A file that was not copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeftFile {
    pub(crate) path: String,
    pub(crate) why: String,
}

impl SeededHome {
    /// How many entries were removed.
    pub(crate) fn removed(&self) -> usize {
        self.copied.iter().map(|file| file.removed.len()).sum()
    }

    /// `4 files copied, 9 entries removed, 1 file left`; none where the person has none of them.
    pub(crate) fn words(&self) -> Option<String> {
        if self.copied.is_empty() && self.left.is_empty() {
            return None;
        }
        let counted = |n: usize, one: &str, more: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {more}"),
        };
        let mut words = format!(
            "{} copied, {} removed",
            counted(self.copied.len(), "file", "files"),
            counted(self.removed(), "entry", "entries")
        );
        if !self.left.is_empty() {
            words.push_str(&format!(", {} left", counted(self.left.len(), "file", "files")));
        }
        Some(words)
    }
}

impl From<Seeded> for SeededHome {
    fn from(seeded: Seeded) -> Self {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let copied = seeded.copied.into_iter().map(|file| CopiedFile {
            path: shown(&file.path),
            removed: file
                .removed
                .into_iter()
                .map(|one| RemovedEntry { place: one.place, why: one.why.to_owned() })
                .collect(),
        });
        let left = seeded.left.into_iter();
        let left = left.map(|file| LeftFile { path: shown(&file.path), why: file.why });
        Self { copied: copied.collect(), left: left.collect() }
    }
}

/// What a box's home began with.
///
/// # Errors
/// An I/O failure, or a file that is none.
pub(crate) fn of(stored: &StoredBox) -> Result<SeededHome, Failure> {
    let path = stored.host_dir().join(FILE);
    match std::fs::read(&path) {
        Ok(json) => serde_json::from_slice(&json).map_err(|e| Failure::new(Kind::Corrupt, &e)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(SeededHome::default()),
        Err(error) => Err(PathError::at(Action::Read, &path)(error).into()),
    }
}

const fn tool(seed: Seed) -> Option<Tool> {
    Some(match seed {
        Seed::Cargo => Tool::Cargo,
        Seed::Claude => Tool::Claude,
        Seed::Codex => Tool::Codex,
        Seed::Git => Tool::Git,
        Seed::Npm => Tool::Npm,
        Seed::Pip => Tool::Pip,
        _ => return None,
    })
}

/// Copies what the policy names into the home of a box in the making. Its files are those of
/// `owner`, where the box has a user of its own.
///
/// # Errors
/// An I/O failure.
pub(crate) fn fill(
    home: &Path,
    from: &Path,
    policy: &ResolvedPolicy,
    owner: Option<HostId>,
) -> Result<SeededHome, Failure> {
    let tools: Vec<Tool> = policy.seed.iter().filter_map(|seed| tool(*seed)).collect();
    if tools.is_empty() {
        return Ok(SeededHome::default());
    }
    let to = File::open(home).map_err(PathError::at(Action::Open, home))?;
    let seeded = seed(from, &to, &tools).map_err(|e| Failure::new(Kind::Io, &e))?;
    let seeded = SeededHome::from(seeded);
    let files = seeded.copied.iter().map(|file| file.path.as_str());
    hand_over(home, files, owner)?;
    Ok(seeded)
}

/// Stands where a runtime looks for a key, and is none.
const NO_KEY: &str = "the-key-stays-on-the-host";

/// The runtime of a grant by the person's login, and the variable in which it looks for a key.
const fn runtime_of(grant: &Grant) -> Option<(Tool, &'static str)> {
    match grant.secret {
        Some(SecretRef::Login(Login::Claude)) => Some((Tool::Claude, "ANTHROPIC_AUTH_TOKEN")),
        Some(SecretRef::Login(Login::Codex)) => Some((Tool::Codex, "OPENAI_API_KEY")),
        _ => None,
    }
}

/// Variables without which a runtime would not even ask, where its grant is by `intercept`.
pub(crate) fn placeholders(policy: &ResolvedPolicy) -> impl Iterator<Item = (String, String)> {
    let intercepted = policy.grants.values().filter(|grant| grant.via == Via::Intercept);
    let runtimes = intercepted.filter_map(runtime_of);
    runtimes.map(|(_, variable)| (variable.to_owned(), NO_KEY.to_owned()))
}

/// Has the runtimes in a box start without questions and find the broker, where the policy gives
/// them a grant by the person's login. `base_url` tells where the broker is for a grant of that
/// name; none for one by `intercept`, whose runtime speaks to the service itself.
///
/// # Errors
/// An I/O failure.
pub(crate) fn log_in(
    home: &Path,
    policy: &ResolvedPolicy,
    owner: Option<HostId>,
    base_url: impl Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let to = File::open(home).map_err(PathError::at(Action::Open, home))?;
    for (name, grant) in &policy.grants {
        let Some((tool, variable)) = runtime_of(grant) else { continue };
        let token = grant.variables.token.iter().next();
        // Codex speaks plain requests to a provider that is named, and other things to its own.
        let own = || format!("https://{}:{}", grant.host, grant.port);
        let base_url = base_url(name).unwrap_or_else(own);
        // Its own paths are known to who sets it up.
        let path = &grant.variables.base_path;
        let base_url = base_url.strip_suffix(path.as_str()).unwrap_or(&base_url);
        let runtime = Runtime {
            workspace: WORKSPACE,
            host: grant.host.as_str(),
            base_url: Some(base_url),
            token_variable: token.map_or(variable, String::as_str),
        };
        let written = set_up(&to, tool, &runtime).map_err(|e| Failure::new(Kind::Io, &e))?;
        hand_over(home, written.into_iter(), owner)?;
    }
    Ok(())
}

/// Paths below the home where a policy has something written, each with what of the policy it is. A
/// directory's ends with a slash.
pub(crate) fn claims(policy: &ResolvedPolicy) -> Vec<(&'static str, String)> {
    let seeds = policy.seed.iter().flat_map(|seed| {
        let files = tool(*seed).map(seeds_of).unwrap_or_default();
        files.iter().map(move |file| (file.path, format!("seed = \"{seed}\"")))
    });
    let set_up = policy.grants.iter().flat_map(|(name, grant)| {
        let files: &[&str] = match runtime_of(grant) {
            Some((Tool::Claude, _)) => &[".claude.json"],
            Some((Tool::Codex, _)) => &[".codex/config.toml", ".codex/auth.json"],
            _ => &[],
        };
        files.iter().map(move |file| (*file, format!("what grant `{name}` sets up")))
    });
    seeds.chain(set_up).collect()
}

/// Makes files, and the directories they lie in, the box's own.
fn hand_over<'a>(
    home: &Path,
    files: impl Iterator<Item = &'a str>,
    owner: Option<HostId>,
) -> Result<(), PathError> {
    let Some(id) = owner else { return Ok(()) };
    for file in files {
        let path = home.join(file);
        let parents: Vec<PathBuf> =
            path.ancestors().take_while(|dir| *dir != home).map(PathBuf::from).collect();
        for path in parents {
            lchown(&path, Some(id.number()), Some(id.number()))
                .map_err(PathError::at(Action::ChangeOwner, &path))?;
        }
    }
    Ok(())
}
