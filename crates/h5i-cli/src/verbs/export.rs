//! `h5i box export`

use std::path::{Path, PathBuf};

use h5i_confine::State;
use h5i_export::{
    BundleError, BundleInput, Digest, Event, Existing, HomeFinding, Lane, Mechanism,
    MechanismState, ReportInput, Secrets, WholeLog, home_findings, write_bundle,
};
use h5i_policy::{NetMode, ResolvedPolicy, Tier};
use serde_json::json;

use super::run::frozen_policy;
use super::status::enforcement;
use super::{Answer, find};
use crate::args::ExportArgs;
use crate::caller::Caller;
use crate::changes::changes_of;
use crate::failure::{Failure, Kind, io_failure};
use crate::log_tail::tail_of;
use crate::path_error::{Action, PathError};
use crate::payload::PAYLOADS;
use crate::receipt_log::{LOG, ReceiptLog};
use crate::session::Still;
use crate::shown::Shown;
use crate::store::{BoxLock, LockError, StoredBox};

pub(super) fn export(caller: &Caller, args: &ExportArgs) -> Result<Answer, Failure> {
    crate::inside::refuse("export")?;
    let stored = find(caller, &args.name)?;
    let hold = Hold::take(&stored)?;
    let manifest = stored.manifest()?;
    crate::session::check_export(&stored.host_dir(), manifest.name.as_str())?;
    let policy = frozen_policy(&stored, &manifest)?;
    let secrets = if args.allow_secrets { Secrets::Flag } else { Secrets::Refuse };
    let changes = changes_of(&caller.store, &stored, &manifest, &policy, secrets)?;
    let (summary, files) = (changes.summary(), changes.files());
    let reviewed = changes.reviewed()?;
    let home = home_of(&stored)?;
    let (mechanisms, not_enforced) = match enforcement(caller, &stored, &manifest, &policy)? {
        Some(found) => (found.mechanisms.iter().map(mechanism).collect(), Vec::new()),
        None => (Vec::new(), vec!["everything: tier workspace has no boundary".to_owned()]),
    };
    let manifest_path = stored.host_dir().join("manifest.json");
    let manifest_bytes =
        std::fs::read(&manifest_path).map_err(PathError::at(Action::Read, &manifest_path))?;
    let log = whole_log(&stored.host_dir(), Digest::of(&manifest_bytes))?;
    let input = BundleInput {
        report: ReportInput {
            name: manifest.name.as_str(),
            base_name: &manifest.base.described,
            tier: manifest.tier,
            profile: &manifest.profile,
            policy: &manifest.policy_digest.to_string(),
            purpose: manifest.purpose.as_deref(),
            network: reach(&policy),
            home: &home,
            history: log.history(),
            enforcement: &mechanisms,
            not_enforced: &not_enforced,
            reviewed: &reviewed,
        },
        log: &log,
        policy_text: &policy.to_toml(),
        payloads: &stored.host_dir().join(PAYLOADS),
    };
    let directory = args.bundle.as_ref().map_or_else(
        || caller.directory.join(format!("{}.export", manifest.name)),
        |directory| caller.directory.join(directory),
    );
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let bundle = write_bundle(&directory, &input, existing).map_err(bundle_failure)?;
    let tree = reviewed.tree.to_string();
    hold.record(Event::Export { bundle, tree: tree.clone() })?;
    answer(&manifest.name.to_string(), directory, bundle, &tree, (summary, files))
}

fn answer(
    name: &str,
    directory: PathBuf,
    bundle: Digest,
    tree: &str,
    (summary, files): (String, serde_json::Value),
) -> Result<Answer, Failure> {
    let shown = Shown::path(&directory).to_string();
    let data = json!({
        "name": name,
        "directory": crate::json_bytes::JsonBytes::of_path(&directory),
        "bundle": bundle.to_string(),
        "tree": tree,
        "changed": files,
    });
    let changed = if summary.starts_with("0 files") { "nothing".to_owned() } else { summary };
    Ok(Answer::new(data, format!("{shown}\n"))?
        .note(format!("changed  {changed}"))
        .note(format!("bundle   {bundle}"))
        .note(format!("read     {shown}/report.md, or report.html in a browser"))
        .note(format!("apply    h5i box apply {name} --bundle {shown}")))
}

/// What in the box's home acts at the next start of something in the box.
///
/// # Errors
/// An I/O failure.
pub(super) fn home_of(stored: &StoredBox) -> Result<Vec<HomeFinding>, Failure> {
    stored.open_own_roots()?;
    home_findings(&stored.box_dir().join("home")).map_err(|e| Failure::new(Kind::Io, &e))
}

/// What keeps a box from changing while it is read.
enum Hold {
    /// Nothing runs in it, and nothing will.
    Lock(BoxLock, Box<ReceiptLog>),
    /// It is alive, and stands still.
    Still(Still),
}

impl Hold {
    fn take(stored: &StoredBox) -> Result<Self, Failure> {
        match stored.lock() {
            Ok(lock) => Ok(Self::Lock(lock, Box::new(ReceiptLog::open(stored)?))),
            Err(LockError::Busy) if stored.manifest()?.tier != Tier::Workspace => {
                Still::hold(stored).map(Self::Still)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts the export on record, and lets go.
    fn record(self, event: Event) -> Result<(), Failure> {
        match self {
            Self::Lock(_lock, log) => {
                log.append(Lane::Host, None, event)?;
                log.sync()
            }
            Self::Still(still) => still.record(event),
        }
    }
}

/// The log with every record. What has no end yet is being written: no record.
fn whole_log(host_dir: &Path, manifest: Digest) -> Result<WholeLog, Failure> {
    let path = host_dir.join(LOG);
    let file = std::fs::File::open(&path).map_err(PathError::at(Action::Open, &path))?;
    let end = tail_of(&file, 0).map_err(PathError::at(Action::Read, &path))?;
    WholeLog::read(file, end, manifest).map_err(|e| Failure::new(Kind::Corrupt, &e))
}

fn mechanism(found: &h5i_confine::Mechanism) -> Mechanism {
    Mechanism {
        name: found.name.to_owned(),
        state: match found.state {
            State::On => MechanismState::On,
            State::OffByChoice => MechanismState::OffByChoice,
            _ => MechanismState::Absent,
        },
        detail: found.detail.clone(),
    }
}

/// What the box could reach, in words that follow "the box could reach".
fn reach(policy: &ResolvedPolicy) -> &'static str {
    match policy.net.mode {
        NetMode::None if !policy.grants.is_empty() => {
            "the services of its grants, and nothing else"
        }
        NetMode::Allow if !policy.grants.is_empty() => {
            "what its policy lists and the services of its grants, and nothing else"
        }
        NetMode::None => "nothing but itself",
        NetMode::Allow => "what its policy lists, and nothing else",
        NetMode::Open => "every public address, and no private one",
        NetMode::Host => "whatever the host reaches",
        _ => "what its policy says",
    }
}

fn bundle_failure(error: BundleError) -> Failure {
    match &error {
        BundleError::NotEmpty { .. } => Failure::new(Kind::Exists, &error)
            .hint("--force to replace it, or -o another directory"),
        BundleError::NotDirectory { .. } | BundleError::NotBundle { .. } => {
            Failure::new(Kind::Refused, &error).hint("-o another directory")
        }
        BundleError::NoName { .. } => Failure::new(Kind::Usage, &error),
        BundleError::LogChanged | BundleError::Payload { .. } => {
            Failure::new(Kind::Corrupt, &error)
        }
        BundleError::Json { .. } => Failure::new(Kind::Internal, &error),
        BundleError::Io { source, .. } => {
            io_failure(&error, source, "make room there, or -o another directory")
        }
        _ => Failure::new(Kind::Io, &error),
    }
}
