//! What needs a person's eyes, most urgent first.

use std::collections::BTreeMap;

use super::ReportInput;
use super::runs::runs;
use super::text::{code, count, plain};
use crate::record::{Event, Record};
use crate::review::{Change, ChangeKind, FlagKind, attention_of};

/// One line each, in order of urgency, each with the reason why it is there.
pub(super) fn findings(input: &ReportInput<'_>) -> Vec<String> {
    let mut all = refused(input.records);
    all.extend(stops(input.records));
    all.extend(input.reviewed.flags.iter().filter_map(|flag| match flag.kind {
        FlagKind::Secret { shape, line } => {
            Some(format!("**{}**, line {line}, holds what looks like a {shape}.", code(&flag.path)))
        }
        _ => None,
    }));
    let attention = |change: &Change| {
        let found =
            attention_of(&change.path).or_else(|| attention_of(change.old_path.as_deref()?))?;
        (change.kind != ChangeKind::Deleted)
            .then(|| format!("**{}** {}: {}.", code(&change.path), verb(change.kind), found.why))
    };
    all.extend(input.reviewed.changes.iter().filter_map(attention));
    all.extend(input.reviewed.flags.iter().filter_map(|flag| match flag.kind {
        FlagKind::MachineCode(what) => Some(format!(
            "**{}** is {}, which the policy lets pass.",
            code(&flag.path),
            what.name()
        )),
        FlagKind::Executable => Some(format!("**{}** became executable.", code(&flag.path))),
        FlagKind::Secret { .. } => None,
    }));
    all
}

/// What happened to a file, in words.
pub(super) const fn verb(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "is new",
        ChangeKind::Modified => "changed",
        ChangeKind::Mode => "changed its mode",
        ChangeKind::Type => "changed its type",
        ChangeKind::Renamed => "was renamed",
        ChangeKind::Deleted => "was deleted",
    }
}

/// Refused calls, equal ones together.
fn refused(records: &[Record]) -> Vec<String> {
    let mut calls: BTreeMap<(&str, &[u8], &str), u64> = BTreeMap::new();
    for record in records {
        if let Event::RefusedCall { call, program, errno, count, .. } = &record.event {
            *calls.entry((call, program.as_bytes(), errno)).or_default() += count;
        }
    }
    calls
        .into_iter()
        .map(|((call, program, errno), times)| {
            let times = count(times, "time", "times");
            format!(
                "Refused: {} by {}, {times} ({}).",
                code(call.as_bytes()),
                code(program),
                plain(errno)
            )
        })
        .collect()
}

/// Runs that were stopped or cut off: what they left may be half done.
fn stops(records: &[Record]) -> Vec<String> {
    runs(records)
        .iter()
        .filter(|run| !run.is_complete())
        .map(|run| format!("Run {}: {}. What it left may be half done.", run.number, run.ending()))
        .collect()
}
