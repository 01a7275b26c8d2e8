//! Planted credentials: which were opened, and which the box has undone.

use std::collections::BTreeMap;

use super::phrase::Phrase;
use super::text::count;
use crate::record::{CanaryLoss, Event, Record};

/// Those that were opened, a line for each run.
pub(super) fn read(records: &[Record]) -> Vec<Phrase> {
    let mut all: BTreeMap<(&str, Option<u64>), u64> = BTreeMap::new();
    for record in records {
        if let Event::CanaryRead { path, count } = &record.event {
            let times = all.entry((path, record.run)).or_default();
            *times = times.saturating_add(*count);
        }
    }
    let line = |((path, run), times): ((&str, Option<u64>), u64)| {
        let by = match run {
            Some(run) => format!(", in run {run}."),
            None => ", by no run that went alone.".to_owned(),
        };
        Phrase::new()
            .words("A planted credential was opened: ")
            .strong(path.as_bytes())
            .words(format!(", {}{by}", count(times, "time", "times")))
    };
    all.into_iter().map(line).collect()
}

/// Those that are not as they were planted: who opens them after that is not seen.
pub(super) fn lost(records: &[Record]) -> Vec<Phrase> {
    let mut all: BTreeMap<(&str, CanaryLoss), u64> = BTreeMap::new();
    for record in records {
        if let Event::CanaryLost { path, why } = &record.event {
            *all.entry((path, *why)).or_default() += 1;
        }
    }
    let line = |((path, why), times): ((&str, CanaryLoss), u64)| {
        let times = if times > 1 { format!(", {times} times") } else { String::new() };
        Phrase::new()
            .words("The planted credential ")
            .strong(path.as_bytes())
            .words(format!(" {}{times}: who opened it then was not seen.", why.why()))
    };
    all.into_iter().map(line).collect()
}
