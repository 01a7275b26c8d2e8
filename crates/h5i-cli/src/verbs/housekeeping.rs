//! `h5i box rm` and `h5i box gc`

use h5i_export::Secrets;
use serde_json::{Value, json};

use super::run::frozen_policy;
use super::{Answer, find};
use crate::args::RmArgs;
use crate::caller::Caller;
use crate::changes::changes_of;
use crate::failure::{Failure, Kind};
use crate::receipt_log::records;
use crate::session::{Ending, end};
use crate::shown::Shown;
use crate::store::{BoxLock, Collected, LockError, Manifest, Retain, StoredBox};
use crate::timestamp::Timestamp;

pub(super) fn remove(caller: &Caller, args: &RmArgs) -> Result<Answer, Failure> {
    // All are looked up first: a slip in the last name removes nothing.
    let found: Vec<StoredBox> =
        args.names.iter().map(|name| find(caller, name)).collect::<Result<_, _>>()?;
    let retain = if args.purge { Retain::Nothing } else { Retain::Receipt };
    let mut removed = Vec::new();
    let mut notes = Vec::new();
    for stored in found {
        let lock = take(&stored, args.force)?;
        if !args.force {
            refuse_unexported(caller, &stored)?;
        }
        let gone = caller.store.remove_locked(&stored, lock, retain)?;
        let archive = gone.archive.map(|path| path.display().to_string());
        notes.push(match &archive {
            Some(_) => format!("removed  box {}; its receipt is in the archive", stored.name()),
            None => format!("removed  box {}, and its receipt", stored.name()),
        });
        removed.push(json!({ "name": stored.name(), "archive": archive }));
    }
    let answer = Answer::new(json!({ "removed": removed }), String::new())?;
    Ok(notes.iter().fold(answer, Answer::note))
}

/// The lock of a box that is to go. What runs in it is ended by force only.
fn take(stored: &StoredBox, force: bool) -> Result<BoxLock, Failure> {
    match stored.lock() {
        Ok(lock) => Ok(lock),
        Err(LockError::Busy) if force => match end(stored, Ending::Killed)? {
            Some(lock) => Ok(lock),
            None => Ok(stored.lock()?),
        },
        Err(LockError::Busy) => {
            let name = stored.name();
            Err(Failure::told(Kind::Busy, format!("box `{name}` is in use"))
                .hint(format!("wait for its runs to end, h5i box stop {name}, or --force")))
        }
        Err(error) => Err(error.into()),
    }
}

/// A box whose changes were never exported is removed by force only.
fn refuse_unexported(caller: &Caller, stored: &StoredBox) -> Result<(), Failure> {
    // A damaged box has nothing that could be exported.
    let Ok(manifest) = stored.manifest() else { return Ok(()) };
    let Ok(policy) = frozen_policy(stored, &manifest) else { return Ok(()) };
    let changes = changes_of(&caller.store, stored, &manifest, &policy, Secrets::Flag)?;
    if changes.is_empty() || exported_since_last_run(stored, &manifest)? {
        return Ok(());
    }
    let message = format!("box `{}` has changes that were not exported", manifest.name);
    Err(Failure::told(Kind::Refused, format!("{message}: {}", changes.summary()))
        .hint(format!("h5i box export {0}, or h5i box rm --force {0}", manifest.name))
        .detail("name", manifest.name.to_string()))
}

fn exported_since_last_run(stored: &StoredBox, _: &Manifest) -> Result<bool, Failure> {
    let mut exported = false;
    for line in records(&stored.host_dir())?.map_while(Result::ok) {
        match line.record.event {
            h5i_export::Event::RunStart { .. } => exported = false,
            h5i_export::Event::Export { .. } => exported = true,
            _ => {}
        }
    }
    Ok(exported)
}

pub(super) fn collect(caller: &Caller) -> Result<Answer, Failure> {
    let report = caller.store.gc(Timestamp::now())?;
    let mut text = String::new();
    let mut rows: Vec<Value> = Vec::new();
    for collected in &report.collected {
        let (kind, what) = match collected {
            Collected::Remains(path) => ("remains", Shown::path(path).to_string()),
            Collected::Expired(name) => ("expired", name.to_string()),
            Collected::Objects(key) => ("objects", key.to_string()),
            Collected::Tree(key) => ("tree", key.to_string()),
        };
        text.push_str(&format!("removed  {kind:<8} {what}\n"));
        rows.push(json!({ "kind": kind, "what": what }));
    }
    for name in &report.busy {
        text.push_str(&format!("in use   expired  {name}\n"));
    }
    for name in &report.damaged {
        text.push_str(&format!("damaged  {name}: h5i box rm {name}\n"));
    }
    let data = json!({ "removed": rows, "busy": report.busy, "damaged": report.damaged });
    let answer = Answer::new(data, text.clone())?;
    Ok(if text.is_empty() { answer.note("nothing to collect") } else { answer })
}
