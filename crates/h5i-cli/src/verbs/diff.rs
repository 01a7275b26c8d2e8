//! `h5i box diff`

use std::fmt::Write as _;
use std::io;

use h5i_export::{Change, Escaped};
use serde_json::json;

use super::run::frozen_policy;
use super::{Answer, find};
use crate::args::{DiffArgs, DiffForm};
use crate::caller::Caller;
use crate::changes::{Changes, kind_name, visible_changes_of};
use crate::failure::{Failure, Kind};
use crate::json_bytes::JsonBytes;
use crate::pager::{self, Paged};
use crate::patch_text::for_terminal;
use crate::shown::Shown;

pub(super) fn diff(caller: &Caller, args: &DiffArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let manifest = stored.manifest()?;
    let policy = frozen_policy(&stored, &manifest)?;
    let changes = visible_changes_of(&caller.store, &stored, &manifest, &policy)?;
    let (summary, files) = (changes.summary(), changes.files());
    let (left_out, note) = left_out(&changes);
    let reviewed = changes.reviewed()?;
    let patch = reviewed.patch.to_vec().map_err(|e| Failure::new(Kind::Io, &e))?;
    let terminal = rustix::termios::isatty(io::stdout());
    let mut text = match args.form() {
        DiffForm::Patch if terminal => for_terminal(&patch, caller.surroundings.colour),
        DiffForm::Patch => patch.clone(),
        DiffForm::Stat => stat(&reviewed.changes, &summary).into_bytes(),
        DiffForm::Names => names(&reviewed.changes).into_bytes(),
    };
    let data = json!({
        "name": manifest.name,
        "base": manifest.base.commit,
        "tree": reviewed.tree.to_string(),
        "files": files,
        "patch": JsonBytes(patch),
        "left_out": left_out,
    });
    if terminal && !args.output.json && pager::show(&caller.surroundings, &text)? == Paged::Shown {
        text.clear();
    }
    let answer = Answer::new(data, text)?;
    Ok(match note {
        Some(note) => answer.note(note),
        None if reviewed.changes.is_empty() => answer.note("no change"),
        None => answer,
    })
}

/// What is not shown because it can't be read, for programs and in words.
fn left_out(changes: &Changes) -> (Vec<JsonBytes>, Option<String>) {
    let Some((paths, opens)) = changes.closed() else { return (Vec::new(), None) };
    let shown: Vec<String> = paths.iter().map(|path| Shown::bytes(path).to_string()).collect();
    let note =
        format!("closed   what is in {} can't be read and is not shown; {opens}", shown.join(" "));
    (paths.into_iter().map(|path| JsonBytes(path.to_vec())).collect(), Some(note))
}

fn stat(changes: &[Change], summary: &str) -> String {
    let mut text = String::new();
    for change in changes {
        let lines = match (change.added, change.removed) {
            (Some(added), Some(removed)) => format!("+{added} −{removed}"),
            _ => format!("{} bytes", change.bytes),
        };
        let path = Shown::bytes(&change.path);
        // Writing to a String can't fail.
        writeln!(text, "{:<9} {lines:>14}  {path}", kind_name(change.kind)).ok();
    }
    if !changes.is_empty() {
        writeln!(text, "{summary}").ok();
    }
    text
}

/// Paths for a person or a script; one that is not plain text is escaped, so that a line is a path.
fn names(changes: &[Change]) -> String {
    changes.iter().map(|change| format!("{}\n", Escaped::new(&change.path))).collect()
}
