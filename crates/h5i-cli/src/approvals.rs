//! What a person approved: one bundle by its digest, until a moment, for one box.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use h5i_export::Digest;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::shown::Shown;
use crate::store::{BoxId, BoxName, open_lock, random_hex, replace_file};
use crate::timestamp::Timestamp;

/// The list's name in the state directory, and that of the lock under which it is changed.
const FILE: &str = "approvals.json";
const LOCK: &str = "approvals.lock";
/// Version of the list's format.
const VERSION: u32 = 1;
/// Longest list that is read, in bytes, and most approvals that one has.
const MOST_BYTES: u64 = 256 * 1024;
const MOST: usize = 256;
/// For how long an approval that is over is still told of: a day, in milliseconds.
const REMEMBERED: u64 = 86_400_000;

/// A person's word that one bundle may be acted upon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approval {
    /// 12 random hexadecimal digits. A name and no secret: what counts is the list, which is the
    /// person's.
    pub(crate) id: String,
    /// The box that the bundle was exported from.
    pub(crate) name: BoxName,
    pub(crate) box_id: BoxId,
    /// The bundle's digest.
    pub(crate) bundle: Digest,
    pub(crate) since: Timestamp,
    /// From then on it is worth nothing, by the host's clock.
    pub(crate) until: Timestamp,
    /// What it was spent for, once it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spent: Option<Spent>,
}

/// What an approval was spent for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spent {
    pub(crate) at: Timestamp,
    /// The box that it was spent for; it may not have come to be.
    pub(crate) by: BoxName,
}

impl Approval {
    /// Refuses an approval that holds no more, or of something else.
    ///
    /// # Errors
    /// `refused`.
    pub(crate) fn check(&self, bundle: &Digest, now: Timestamp) -> Result<(), Failure> {
        let refused = |why: String| {
            let message = format!("approval {} {why}", self.id);
            Err(Failure::told(Kind::Refused, message).hint(APPROVE))
        };
        if self.bundle != *bundle {
            return refused(format!("is of another bundle: {}, not {bundle}", self.bundle));
        }
        if let Some(Spent { at, by }) = &self.spent {
            return refused(format!("was used at {at}, for box {by}"));
        }
        if now >= self.until {
            return refused(format!("ended at {}", self.until));
        }
        // A clock that was set back makes nothing last longer.
        if now < self.since {
            return refused(format!("was given at {}, which is still to come", self.since));
        }
        Ok(())
    }
}

const APPROVE: &str =
    "h5i box approve NAME --bundle DIR --for 10m, by a person who read the report";

/// The approvals of this state directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approvals {
    v: u32,
    approvals: Vec<Approval>,
}

impl Approvals {
    /// Reads the list; without one, nothing is approved.
    ///
    /// # Errors
    /// `corrupt` when it is there and damaged, or too long: then nothing is approved either.
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        let path = root.join(FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { v: VERSION, approvals: Vec::new() });
            }
            Err(e) => return Err(PathError::at(Action::Open, &path)(e).into()),
        };
        let mut json = Vec::new();
        file.take(MOST_BYTES + 1)
            .read_to_end(&mut json)
            .map_err(PathError::at(Action::Read, &path))?;
        let whole = u64::try_from(json.len()).is_ok_and(|length| length <= MOST_BYTES);
        let list = whole.then(|| serde_json::from_slice(&json).ok()).flatten();
        list.filter(|list: &Self| list.v == VERSION).ok_or_else(|| {
            let shown = Shown::path(&path).to_string();
            let message = format!("`{shown}` is damaged, so nothing is approved");
            Failure::told(Kind::Corrupt, message)
                .hint("move it away; h5i box approve begins another one")
                .detail("path", shown)
        })
    }

    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> &[Approval] {
        &self.approvals
    }

    /// The approval of this id.
    ///
    /// # Errors
    /// `not-found`.
    pub(crate) fn of(&self, id: &str) -> Result<&Approval, Failure> {
        self.approvals.iter().find(|approval| approval.id == id).ok_or_else(|| unknown(id))
    }

    /// Approves a bundle for a time, in milliseconds.
    ///
    /// # Errors
    /// `corrupt` for a damaged list, `limit` for a full one, an I/O failure; nothing is approved then.
    pub(crate) fn add(
        root: &Path,
        (name, box_id): (&BoxName, &BoxId),
        bundle: Digest,
        span: u64,
    ) -> Result<Approval, Failure> {
        let since = Timestamp::now();
        let approval = Approval {
            id: random_hex(6)?,
            name: name.clone(),
            box_id: box_id.clone(),
            bundle,
            since,
            until: since.plus_millis(span),
            spent: None,
        };
        change(root, |list| {
            list.approvals.retain(|old| old.until.plus_millis(REMEMBERED) > since);
            if list.approvals.len() >= MOST {
                let message = format!("{MOST} bundles are approved already");
                return Err(Failure::told(Kind::Limit, message)
                    .hint("h5i box approve --list, then --revoke ID"));
            }
            list.approvals.push(approval.clone());
            Ok(())
        })?;
        Ok(approval)
    }

    /// Spends an approval for a box: of two who try, one succeeds. It is on the disk when this
    /// returns, so that no power cut gives it back.
    ///
    /// # Errors
    /// As [`Approval::check`] and [`Approvals::of`]; `corrupt`, or an I/O failure.
    pub(crate) fn spend(
        root: &Path,
        id: &str,
        bundle: &Digest,
        by: &BoxName,
    ) -> Result<(), Failure> {
        change(root, |list| {
            let found = list.approvals.iter_mut().find(|approval| approval.id == id);
            let approval = found.ok_or_else(|| unknown(id))?;
            let at = Timestamp::now();
            approval.check(bundle, at)?;
            approval.spent = Some(Spent { at, by: by.clone() });
            Ok(())
        })
    }

    /// Takes an approval back. What it was spent for stays as it is.
    ///
    /// # Errors
    /// `not-found`, `corrupt`, or an I/O failure.
    pub(crate) fn revoke(root: &Path, id: &str) -> Result<Approval, Failure> {
        change(root, |list| {
            let place = list.approvals.iter().position(|approval| approval.id == id);
            place.map(|place| list.approvals.remove(place)).ok_or_else(|| unknown(id))
        })
    }
}

fn unknown(id: &str) -> Failure {
    Failure::told(Kind::NotFound, format!("there is no approval `{}`", Shown::text(id)))
        .hint("h5i box approve --list")
}

/// Changes the list, one process after the other. An error leaves it as it was.
fn change<T>(
    root: &Path,
    with: impl FnOnce(&mut Approvals) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let lock = root.join(LOCK);
    let held = open_lock(&lock)?;
    rustix::fs::flock(&held, FlockOperation::LockExclusive)
        .map_err(PathError::at(Action::Lock, &lock))?;
    let mut list = Approvals::read(root)?;
    let result = with(&mut list)?;
    let json = serde_json::to_vec_pretty(&list).map_err(|e| Failure::new(Kind::Internal, &e))?;
    replace_file(root, FILE, &json)?;
    sync(&root.join(FILE))?;
    sync(root)?;
    Ok(result)
}

/// Has a file, or a directory's names, reach the disk.
pub(crate) fn sync(path: &Path) -> Result<(), PathError> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(PathError::at(Action::Write, path))
}
