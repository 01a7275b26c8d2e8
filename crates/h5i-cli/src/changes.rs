//! What a box changed against its base, as the gate sees it.

use h5i_export::{
    Base, Change, ChangeKind, Closed, Export, LeftBehind, PlantedValues, Refusal, RefusalRule,
    ReviewError, Reviewed, Secrets, TreeError, When, attention_of,
};
use h5i_policy::{Pattern, ResolvedPolicy};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::canary::Planted;
use crate::failure::{Failure, Kind, ROOM, io_failure, objects_failure};
use crate::json_bytes::JsonBytes;
use crate::shown::Shown;
use crate::store::{BoxName, Manifest, Store, StoredBox};
use crate::workspace::Standing;

/// What a box changed: a reviewed patch, or why there is none.
#[derive(Debug)]
pub(crate) struct Changes {
    name: BoxName,
    review: Result<Reviewed, ReviewError>,
}

impl Changes {
    /// Whether the box's tree is the base's.
    pub(crate) fn is_empty(&self) -> bool {
        self.review.as_ref().is_ok_and(|reviewed| reviewed.changes.is_empty())
    }

    /// The reviewed patch.
    ///
    /// # Errors
    /// Why the gate refuses.
    pub(crate) fn reviewed(self) -> Result<Reviewed, Failure> {
        let Self { name, review } = self;
        review.map_err(|error| review_failure(&name, &error))
    }

    /// What is left out because its mode keeps its owner from reading it, and what opens it.
    pub(crate) fn closed(&self) -> Option<(Vec<&[u8]>, String)> {
        let left = self.review.as_ref().ok()?.left.iter();
        let closed = left.filter(|(_, why)| **why == LeftBehind::Closed);
        let paths: Vec<&[u8]> = closed.map(|(path, _)| path.as_slice()).collect();
        let opens = opens(&self.name, &paths)?;
        Some((paths, opens))
    }

    /// `3 files (+41 −2), 1 of them runs on build: build.rs`
    pub(crate) fn summary(&self) -> String {
        let reviewed = match &self.review {
            Ok(reviewed) => reviewed,
            Err(error) => {
                let Failure { message, hint, .. } = review_failure(&self.name, error);
                let hint = hint.filter(|_| is_closed(error)).map(|hint| format!("; {hint}"));
                return format!("not exportable: {message}{}", hint.unwrap_or_default());
            }
        };
        let changes = &reviewed.changes;
        let sum = |of: fn(&Change) -> Option<u64>| changes.iter().filter_map(of).sum::<u64>();
        let (added, removed) = (sum(|c| c.added), sum(|c| c.removed));
        let mut text = match changes.len() {
            1 => format!("1 file (+{added} −{removed})"),
            n => format!("{n} files (+{added} −{removed})"),
        };
        let executing: Vec<&Change> = changes
            .iter()
            .filter(|change| change.new_mode != 0 && attention_of(&change.path).is_some())
            .collect();
        if let Some(first) = executing.first() {
            let when = attention_of(&first.path).map_or("use", |found| moment(found.when));
            let path = Shown::bytes(&first.path);
            text.push_str(&match executing.len() {
                1 => format!(", 1 of them runs on {when}: {path}"),
                n => format!(", {n} of them run on open, build or review: {path}, …"),
            });
        }
        text
    }

    /// The changed files for programs.
    pub(crate) fn files(&self) -> Value {
        match &self.review {
            Ok(reviewed) => Value::Array(reviewed.changes.iter().map(file).collect()),
            Err(error) => json!({ "refused": review_failure(&self.name, error).message }),
        }
    }
}

fn file(change: &Change) -> Value {
    json!({
        "kind": kind_name(change.kind),
        "path": JsonBytes(change.path.clone()),
        "old_path": change.old_path.clone().map(JsonBytes),
        "added": change.added,
        "removed": change.removed,
        "bytes": change.bytes,
    })
}

/// The word for a kind of change.
pub(crate) fn kind_name(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Mode => "mode",
        ChangeKind::Type => "type",
        ChangeKind::Renamed => "renamed",
        ChangeKind::Deleted => "deleted",
        _ => "changed",
    }
}

fn moment(when: When) -> &'static str {
    match when {
        When::Sandbox => "making a box",
        When::Open => "opening",
        When::Git => "use of git",
        When::Build => "install or build",
        When::Test => "test",
        _ => "another machine",
    }
}

/// Reads the box's tree and compares it with its base; nothing of the box is executed or believed.
///
/// # Errors
/// Only what keeps the base from being read; what the gate refuses is part of the result.
pub(crate) fn changes_of(
    store: &Store,
    stored: &StoredBox,
    manifest: &Manifest,
    policy: &ResolvedPolicy,
    secrets: Secrets,
) -> Result<Changes, Failure> {
    read_changes(store, (stored, manifest, policy), secrets, Closed::Refuse)
}

/// The same, for looking at: what can't be read is left out, and told by [`Changes::closed`].
///
/// # Errors
/// As [`changes_of`].
pub(crate) fn visible_changes_of(
    store: &Store,
    stored: &StoredBox,
    manifest: &Manifest,
    policy: &ResolvedPolicy,
) -> Result<Changes, Failure> {
    read_changes(store, (stored, manifest, policy), Secrets::Flag, Closed::LeaveOut)
}

fn read_changes(
    store: &Store,
    (stored, manifest, policy): (&StoredBox, &Manifest, &ResolvedPolicy),
    secrets: Secrets,
    closed: Closed,
) -> Result<Changes, Failure> {
    stored.open_own_roots()?;
    let hidden =
        |path: &[u8]| policy.fs.hide.iter().any(|pattern: &Pattern| pattern.matches(path, false));
    let binaries = |path: &[u8]| {
        policy.export.binaries.iter().any(|pattern: &Pattern| pattern.matches(path, false))
    };
    let base = base_of(store, manifest)?;
    let scratch = stored.host_dir();
    let planted = planted_in(stored)?;
    // What killed verbs left. Where it can't be removed now, gc says why.
    h5i_export::collect_quarantines(&scratch).ok();
    let export = Export::new(base, policy.export.clone(), &scratch)
        .planted(&planted)
        .hidden(&hidden)
        .binaries(&binaries)
        .secrets(secrets)
        .closed(closed);
    let tree = Standing::of(store, &stored.box_dir(), &manifest.layers)
        .tree_source()
        .map_err(|e| Failure::new(Kind::Io, &e))?;
    let review = export.read(tree).and_then(h5i_export::Proposal::review);
    let failed = review.as_ref().err().map(|error| review_failure(&manifest.name, error));
    match failed.filter(|failure| matches!(failure.kind, Kind::Io | Kind::Corrupt)) {
        Some(failure) => Err(failure),
        None => Ok(Changes { name: manifest.name.clone(), review }),
    }
}

/// What was planted in a box, to be known again.
fn planted_in(stored: &StoredBox) -> Result<PlantedValues, Failure> {
    let planted = Planted::of(stored)?;
    let values = planted.files.iter().flat_map(|file| file.secrets.iter().map(String::as_str));
    PlantedValues::new(values).map_err(|e| Failure::new(Kind::Corrupt, &e))
}

/// The pinned base of a box, in h5i's own objects.
///
/// # Errors
/// `corrupt` when the manifest names no object.
pub(crate) fn base_of(store: &Store, manifest: &Manifest) -> Result<Base, Failure> {
    let corrupt = || Failure::told(Kind::Corrupt, "the box's manifest names no base objects");
    let key = manifest.objects.first().ok_or_else(corrupt)?;
    let id = |text: &str| git2::Oid::from_str(text).map_err(|_invalid| corrupt());
    let objects = store.objects_path(key).join("objects");
    Ok(Base::commit(objects, id(&manifest.base.commit)?, id(&manifest.base.tree)?))
}

/// Whether the first thing that is refused is closed by its mode.
fn is_closed(error: &ReviewError) -> bool {
    let ReviewError::Refused { refusals } = error else { return false };
    refusals.first().is_some_and(|refusal| refusal.rule == RefusalRule::Closed)
}

/// Closed paths that one command opens; a person does not read more.
const OPENED: usize = 8;

/// What opens closed paths of a box's workspace; none where there are none.
fn opens(name: &BoxName, paths: &[&[u8]]) -> Option<String> {
    // Relative to the workspace, in which a run begins; none is an option of chmod then.
    let quoted = |path: &&[u8]| match path
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(b))
    {
        true => format!("./{}", Shown::bytes(path)),
        false => format!("'./{}'", Shown::bytes(path).to_string().replace('\'', r"'\''")),
    };
    let paths: Vec<String> = paths.iter().take(OPENED).map(quoted).collect();
    (!paths.is_empty()).then(|| format!("h5i box run {name} -- chmod u+rwx {}", paths.join(" ")))
}

/// Says why the gate refuses.
fn review_failure(name: &BoxName, error: &ReviewError) -> Failure {
    match error {
        ReviewError::Refused { refusals } => {
            let list: Vec<Value> = refusals
                .iter()
                .map(|r| json!({ "path": JsonBytes(r.path.clone()), "why": r.to_string() }))
                .collect();
            let secrets = refusals.iter().all(|r| matches!(r.rule, RefusalRule::Secret { .. }));
            let closed = refusals.iter().filter(|r| r.rule == RefusalRule::Closed);
            let closed: Vec<&[u8]> = closed.map(|r: &Refusal| r.path.as_slice()).collect();
            let hint = if secrets {
                "remove them in the box, or --allow-secrets if they are meant to leave".to_owned()
            } else if let Some(opens) = opens(name, &closed).filter(|_| is_closed(error)) {
                opens
            } else {
                "change or remove them in the box, then export again; --json lists them. What git \
                 is to ignore, the base's .gitignore has to name"
                    .to_owned()
            };
            Failure::new(Kind::Refused, error).hint(hint).detail("refused", list)
        }
        ReviewError::TooManyFiles { .. } | ReviewError::TooManyBytes { .. } => {
            Failure::new(Kind::Limit, error)
                .hint("remove what is not meant to leave, or make the box with a larger export.*")
        }
        ReviewError::PatchDiffers { .. } | ReviewError::PatchFails(_) => {
            Failure::new(Kind::Internal, error)
        }
        ReviewError::Store(store) | ReviewError::Tree(TreeError::Store(store)) => {
            objects_failure(error, store)
                .unwrap_or_else(|| Failure::new(Kind::Corrupt, error).hint(keeps_receipt(name)))
        }
        ReviewError::Tree(TreeError::Io { source, .. }) if is_of_host(source) => {
            io_failure(error, source, ROOM)
        }
        ReviewError::Tree(_) => {
            Failure::new(Kind::Refused, error).hint("remove it in the box, then export again")
        }
        _ => Failure::new(Kind::Corrupt, error).hint(keeps_receipt(name)),
    }
}

fn keeps_receipt(name: &BoxName) -> String {
    format!("h5i box rm --force {name} keeps its receipt")
}

/// Whether a failure to read a box's tree is the host's: a box can't bring these about.
fn is_of_host(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::IO
                | Errno::NOSPC
                | Errno::DQUOT
                | Errno::ROFS
                | Errno::NOMEM
                | Errno::MFILE
                | Errno::NFILE
        )
    )
}

#[cfg(test)]
mod tests;
