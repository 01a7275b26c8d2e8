//! What is planted in a box's home, as the host remembers it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use h5i_export::{CanaryLoss, Digest};
use h5i_policy::{Canaries, HomePath, ResolvedPolicy};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::bait::Bait;
use super::beneath::{self, Found};
use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::seeded_home;
use crate::shown::Shown;
use crate::store::{HostId, StoredBox, replace_file};

/// Where a box's host directory says what is planted.
pub(crate) const FILE: &str = "canaries.json";
/// The most that is read of what stands at a path, in bytes; what is planted is smaller.
const LARGEST: u64 = 64 << 10;
/// Secrets that are remembered of one path, newest first.
const SECRETS: usize = 64;

/// What is planted in a box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Planted {
    v: u32,
    pub(crate) files: Vec<PlantedFile>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlantedFile {
    pub(crate) path: HomePath,
    digest: Digest,
    /// What of it is nowhere else. None of it is a secret of anything.
    pub(crate) secrets: Vec<String>,
    /// Why it is not watched, where that is on record.
    pub(crate) lost: Option<CanaryLoss>,
}

/// Refuses a policy that would have something else stand where a credential is planted: a file of the
/// person's that is copied, or one that a runtime is set up with.
///
/// # Errors
/// A refusal that names both.
pub(crate) fn check_claims(policy: &ResolvedPolicy) -> Result<(), Failure> {
    for (claimed, by) in seeded_home::claims(policy) {
        let below = |top: &str, path: &str| {
            path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let taken = |path: &&HomePath| {
            let (own, other) = (path.below_home(), claimed.trim_end_matches('/'));
            below(own, other) || below(other, own)
        };
        if let Some(path) = policy.fs.canaries.iter().find(taken) {
            let path = Shown::text(path.as_str()).to_string();
            let message =
                format!("fs.canaries: {path} can't be planted, because {by} may be there");
            return Err(Failure::told(Kind::Refused, message)
                .hint(format!("leave {path} out of fs.canaries")));
        }
    }
    Ok(())
}

/// Plants what the policy names in the home of a box in the making.
///
/// # Errors
/// A refusal where something stands there already; an I/O failure.
pub(crate) fn plant(
    home: &Path,
    canaries: &Canaries,
    owner: Option<HostId>,
) -> Result<Planted, Failure> {
    let opened = beneath::open_home(home).map_err(PathError::at(Action::Open, home))?;
    let mut files = Vec::new();
    for path in canaries.iter() {
        let bait = Bait::of(path)?;
        match beneath::create(&opened, Path::new(path.below_home()), &bait.bytes, owner) {
            Ok(()) => files.push(PlantedFile::new(path, &bait)),
            Err(Errno::EXIST | Errno::NOTDIR | Errno::LOOP) => {
                let path = Shown::text(path.as_str()).to_string();
                let message = format!("fs.canaries: {path} can't be planted over what is there");
                return Err(Failure::told(Kind::Refused, message)
                    .hint(format!("leave {path} out of fs.canaries")));
            }
            Err(error) => {
                let path = home.join(path.below_home());
                return Err(PathError::at(Action::Create, &path)(error).into());
            }
        }
    }
    Ok(Planted { v: 1, files })
}

/// What was found at the start of a session.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Files as they were planted, open: their place in the list, and the file.
    pub(super) files: Vec<(usize, File)>,
    /// Those that are not, and are told for the first time.
    pub(super) lost: Vec<(HomePath, CanaryLoss)>,
}

impl PlantedFile {
    fn new(path: &HomePath, bait: &Bait) -> Self {
        let (path, digest) = (path.clone(), Digest::of(&bait.bytes));
        Self { path, digest, secrets: bait.secrets.clone(), lost: None }
    }

    /// What stood there before is looked for in what leaves, too.
    fn remember(&mut self, before: Vec<String>) {
        let room = SECRETS.saturating_sub(self.secrets.len());
        self.secrets.extend(before.into_iter().take(room));
    }

    /// Whether a file is this one, byte for byte.
    fn is(&self, file: &File) -> io::Result<bool> {
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes)?;
        Ok(Digest::of(&bytes) == self.digest)
    }

    /// The file as it was planted, planted again where it is missing; or why it is not there.
    fn stand(
        &mut self,
        home: &OwnedFd,
        owner: Option<HostId>,
        lost: &mut Vec<(HomePath, CanaryLoss)>,
    ) -> Result<Result<File, CanaryLoss>, PathError> {
        let below = self.path.clone();
        let below = Path::new(below.below_home());
        match beneath::look(home, below) {
            Ok(Found::File(file)) => {
                let own = self.is(&file).map_err(PathError::at(Action::Read, below))?;
                Ok(if own { Ok(file) } else { Err(CanaryLoss::Changed) })
            }
            Ok(Found::Other) => Ok(Err(CanaryLoss::Replaced)),
            Ok(Found::Closed) => Ok(Err(CanaryLoss::Closed)),
            Err(_told_as_lost) => Ok(Err(CanaryLoss::NotPlanted)),
            Ok(Found::Nothing) => {
                if self.lost.is_none() {
                    lost.push((self.path.clone(), CanaryLoss::Removed));
                    self.lost = Some(CanaryLoss::Removed);
                }
                let bait = Bait::of(&self.path)?;
                Ok(match beneath::create(home, below, &bait.bytes, owner) {
                    Ok(()) => {
                        // It is the next one that may be lost.
                        let before = std::mem::replace(self, Self::new(&self.path, &bait));
                        self.remember(before.secrets);
                        match beneath::look(home, below) {
                            Ok(Found::File(file)) => Ok(file),
                            _ => Err(CanaryLoss::NotPlanted),
                        }
                    }
                    Err(Errno::EXIST | Errno::NOTDIR | Errno::LOOP) => Err(CanaryLoss::Replaced),
                    Err(Errno::ACCESS | Errno::PERM) => Err(CanaryLoss::Closed),
                    Err(_) => Err(CanaryLoss::NotPlanted),
                })
            }
        }
    }
}

impl Planted {
    /// What is planted in a box.
    ///
    /// # Errors
    /// An I/O failure, or `corrupt`.
    pub(crate) fn of(stored: &StoredBox) -> Result<Self, Failure> {
        let path = stored.host_dir().join(FILE);
        match std::fs::read(&path) {
            Ok(json) => serde_json::from_slice(&json).map_err(|e| Failure::new(Kind::Corrupt, &e)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { v: 1, files: Vec::new() })
            }
            Err(error) => Err(PathError::at(Action::Read, &path)(error).into()),
        }
    }

    /// As it is written down.
    ///
    /// # Errors
    /// None in practice: every field is text.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, Failure> {
        serde_json::to_vec(self).map_err(|e| Failure::new(Kind::Internal, &e))
    }

    /// Writes it down in a box's host directory.
    ///
    /// # Errors
    /// An I/O failure.
    pub(super) fn write(&self, host_dir: &Path) -> Result<(), Failure> {
        Ok(replace_file(host_dir, FILE, &self.to_json()?)?)
    }

    /// Looks at each file, and plants again what is missing. Nothing of the box runs meanwhile.
    ///
    /// # Errors
    /// An I/O failure that is not of one file alone.
    pub(super) fn stand(
        &mut self,
        home: &Path,
        owner: Option<HostId>,
    ) -> Result<Standing, Failure> {
        let opened = beneath::open_home(home).map_err(PathError::at(Action::Open, home))?;
        let mut standing = Standing::default();
        for (at, planted) in self.files.iter_mut().enumerate() {
            match planted.stand(&opened, owner, &mut standing.lost)? {
                Ok(file) => {
                    planted.lost = None;
                    standing.files.push((at, file));
                }
                Err(why) if planted.lost != Some(why) => {
                    planted.lost = Some(why);
                    standing.lost.push((planted.path.clone(), why));
                }
                Err(_told_before) => {}
            }
        }
        Ok(standing)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn ground() -> (tempfile::TempDir, Planted) {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["~/.aws/credentials", "~/.netrc"].map(|text| HomePath::new(text).unwrap());
        let planted = plant(dir.path(), &Canaries::new(paths.into()).unwrap(), None).unwrap();
        (dir, planted)
    }

    fn lost(planted: &mut Planted, home: &Path) -> (usize, Vec<(String, CanaryLoss)>) {
        let standing = planted.stand(home, None).unwrap();
        let told = |(path, why): (HomePath, CanaryLoss)| (path.as_str().to_owned(), why);
        (standing.files.len(), standing.lost.into_iter().map(told).collect())
    }

    #[test]
    fn what_stands_as_it_was_planted_is_known_again() {
        let (dir, mut planted) = ground();
        assert_eq!(lost(&mut planted, dir.path()), (2, vec![]));
        let json = planted.to_json().unwrap();
        assert_eq!(serde_json::from_slice::<Planted>(&json).unwrap(), planted);
    }

    #[test]
    fn what_the_box_did_to_it_is_told_once_and_what_is_missing_is_planted_anew() {
        let (dir, mut planted) = ground();
        let (aws, netrc) = (dir.path().join(".aws/credentials"), dir.path().join(".netrc"));
        let before = fs::read(&netrc).unwrap();
        fs::remove_file(&netrc).unwrap();
        fs::write(&aws, "of the box").unwrap();
        let told = |path: &str, why| (path.to_owned(), why);
        assert_eq!(
            lost(&mut planted, dir.path()),
            (
                1,
                vec![
                    told("~/.aws/credentials", CanaryLoss::Changed),
                    told("~/.netrc", CanaryLoss::Removed)
                ]
            )
        );
        assert_ne!(fs::read(&netrc).unwrap(), before, "a secret of its own");
        assert_eq!(lost(&mut planted, dir.path()), (1, vec![]), "told once");
        fs::remove_file(&aws).unwrap();
        symlink("../.netrc", &aws).unwrap();
        let replaced = vec![told("~/.aws/credentials", CanaryLoss::Replaced)];
        assert_eq!(lost(&mut planted, dir.path()), (1, replaced));
        fs::remove_dir_all(dir.path().join(".aws")).unwrap();
        fs::write(dir.path().join(".aws"), "a file").unwrap();
        assert_eq!(lost(&mut planted, dir.path()), (1, vec![]), "in the way still");
        fs::remove_file(dir.path().join(".aws")).unwrap();
        assert_eq!(lost(&mut planted, dir.path()), (2, vec![]), "planted again");
    }

    #[test]
    fn nothing_is_planted_over_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".netrc"), "a person's").unwrap();
        let canaries = Canaries::new([HomePath::new("~/.netrc").unwrap()].into()).unwrap();
        let failure = plant(dir.path(), &canaries, None).unwrap_err();
        assert_eq!(failure.kind, Kind::Refused);
        assert_eq!(fs::read(dir.path().join(".netrc")).unwrap(), b"a person's");
    }
}
