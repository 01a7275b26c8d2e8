//! What needs a person's eyes, most urgent first.

use std::collections::BTreeMap;

use super::phrase::Phrase;
use super::runs::runs;
use super::text::count;
use super::{ReportInput, canaries, claims, flows, grants};
use crate::record::{Event, Record};
use crate::review::{Change, ChangeKind, FlagKind, attention_of};

/// One line each, in order of urgency, each with the reason why it is there.
pub(super) fn findings(input: &ReportInput<'_>) -> Vec<Phrase> {
    let mut all = canaries::read(input.records);
    all.extend(refused(input.records, |_| true));
    all.extend(flows::refused(input.records));
    all.extend(grants::refused(input.records));
    all.extend(grants::shared(input.records));
    all.extend(stops(input.records));
    all.extend(claims::gaps(input.records));
    all.extend(claims::refused(input.records));
    all.extend(canaries::lost(input.records));
    all.extend(input.reviewed.flags.iter().filter_map(|flag| {
        match flag.kind {
            FlagKind::Secret { shape, line } => Some(
                Phrase::new()
                    .strong(&flag.path[..])
                    .words(format!(", line {line}, holds what looks like a {shape}.")),
            ),
            _ => None,
        }
    }));
    let attention = |change: &Change| {
        let found =
            attention_of(&change.path).or_else(|| attention_of(change.old_path.as_deref()?))?;
        let why = format!(" {}: {}.", verb(change.kind), found.why);
        (change.kind != ChangeKind::Deleted)
            .then(|| Phrase::new().strong(&change.path[..]).words(why))
    };
    all.extend(input.reviewed.changes.iter().filter_map(attention));
    all.extend(input.reviewed.flags.iter().filter_map(|flag| {
        let about = Phrase::new().strong(&flag.path[..]);
        match flag.kind {
            FlagKind::MachineCode(what) => {
                Some(about.words(format!(" is {}, which the policy lets pass.", what.name())))
            }
            FlagKind::Executable => Some(about.words(" became executable.")),
            FlagKind::Secret { .. } => None,
        }
    }));
    all.extend(input.home.iter().map(|found| {
        let path = [&b"~/"[..], &found.path].concat();
        Phrase::new().strong(path).words(format!(" stands in the box's home: {}.", found.why))
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

/// Refused calls of the chosen names, equal ones together.
pub(super) fn refused(records: &[Record], chosen: fn(&str) -> bool) -> Vec<Phrase> {
    let mut calls: BTreeMap<(&str, &[u8], &str), u64> = BTreeMap::new();
    for record in records {
        if let Event::RefusedCall { call, program, errno, count, .. } = &record.event
            && chosen(call)
        {
            *calls.entry((call, program.as_bytes(), errno)).or_default() += count;
        }
    }
    calls
        .into_iter()
        .map(|((call, program, errno), times)| {
            Phrase::new()
                .words("Refused: ")
                .code(call.as_bytes())
                .words(" by ")
                .code(program)
                .words(format!(", {} (", count(times, "time", "times")))
                .foreign(errno)
                .words(").")
        })
        .collect()
}

/// Runs that were stopped or cut off: what they left may be half done.
fn stops(records: &[Record]) -> Vec<Phrase> {
    runs(records)
        .iter()
        .filter(|run| !run.is_complete())
        .map(|run| {
            Phrase::new()
                .words(format!("Run {}: ", run.number))
                .join(run.ending())
                .words(". What it left may be half done.")
        })
        .collect()
}
