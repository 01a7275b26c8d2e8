//! What a box changed against its base, as the gate sees it.

use h5i_export::{
    Base, Change, ChangeKind, Export, PlantedValues, RefusalRule, ReviewError, Reviewed, Secrets,
    When, attention_of,
};
use h5i_policy::{Pattern, ResolvedPolicy};
use serde_json::{Value, json};

use crate::canary::Planted;
use crate::failure::{Failure, Kind};
use crate::json_bytes::JsonBytes;
use crate::shown::Shown;
use crate::store::{Manifest, Store, StoredBox};
use crate::workspace::Standing;

/// What a box changed: a reviewed patch, or why there is none.
#[derive(Debug)]
pub(crate) struct Changes {
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
        self.review.map_err(|error| review_failure(&error))
    }

    /// `3 files (+41 −2), 1 of them runs on build: build.rs`
    pub(crate) fn summary(&self) -> String {
        let reviewed = match &self.review {
            Ok(reviewed) => reviewed,
            Err(error) => return format!("not exportable: {}", review_failure(error).message),
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
            Err(error) => json!({ "refused": review_failure(error).message }),
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
    let hidden =
        |path: &[u8]| policy.fs.hide.iter().any(|pattern: &Pattern| pattern.matches(path, false));
    let binaries = |path: &[u8]| {
        policy.export.binaries.iter().any(|pattern: &Pattern| pattern.matches(path, false))
    };
    let base = base_of(store, manifest)?;
    let scratch = stored.host_dir();
    let planted = planted_in(stored)?;
    let export = Export::new(base, policy.export.clone(), &scratch)
        .planted(&planted)
        .hidden(&hidden)
        .binaries(&binaries)
        .secrets(secrets);
    let tree = Standing::of(store, &stored.box_dir(), &manifest.layers)
        .tree_source()
        .map_err(|e| Failure::new(Kind::Io, &e))?;
    let review = export.read(tree).and_then(h5i_export::Proposal::review);
    match review {
        Err(error @ ReviewError::Store(_)) => Err(review_failure(&error)),
        review => Ok(Changes { review }),
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

/// Says why the gate refuses.
pub(crate) fn review_failure(error: &ReviewError) -> Failure {
    match error {
        ReviewError::Refused { refusals } => {
            let list: Vec<Value> = refusals
                .iter()
                .map(|r| json!({ "path": JsonBytes(r.path.clone()), "why": r.to_string() }))
                .collect();
            let secrets = refusals.iter().all(|r| matches!(r.rule, RefusalRule::Secret { .. }));
            let hint = if secrets {
                "remove them in the box, or --allow-secrets if they are meant to leave"
            } else {
                "change or remove them in the box, then export again; --json lists them. What git \
                 is to ignore, the base's .gitignore has to name"
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
        ReviewError::Tree(_) => {
            Failure::new(Kind::Refused, error).hint("remove it in the box, then export again")
        }
        _ => Failure::new(Kind::Corrupt, error),
    }
}
