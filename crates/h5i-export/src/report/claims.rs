//! What the box said of itself, where that differs from what was seen, and what is kept of its output.

use std::collections::BTreeMap;

use super::phrase::Phrase;
use super::text::{count, size};
use crate::record::{Event, Gap, Lane, Record, SpoolFault};

/// Remarks and reported commands, as claims.
pub(super) fn said(records: &[Record]) -> Vec<Phrase> {
    let claims = records.iter().filter(|record| record.lane == Lane::Box);
    let mut lines = Vec::new();
    let mut commands = 0_u64;
    for record in claims {
        let head = match record.run {
            Some(run) => format!("Run {run}: "),
            None => String::new(),
        };
        match &record.event {
            Event::Note { text } => {
                lines.push(Phrase::new().words(head).code(text.as_bytes()));
            }
            Event::ReportedCommand { .. } => commands += 1,
            _ => {}
        }
    }
    if commands > 0 {
        let commands = count(commands, "command", "commands");
        lines.push(Phrase::new().words(format!("{commands} reported by its shells")));
    }
    lines
}

/// Where what was seen and what was reported differ, equal ones together.
pub(super) fn gaps(records: &[Record]) -> Vec<Phrase> {
    type Kind<'a> = (Option<u64>, Gap, &'a [u8], Option<i32>, Option<i32>);
    let mut all: BTreeMap<Kind<'_>, u64> = BTreeMap::new();
    for record in records {
        if let Event::Gap { gap, what, reported, seen, .. } = &record.event {
            *all.entry((record.run, *gap, what.as_bytes(), *reported, *seen)).or_default() += 1;
        }
    }
    let line = |((run, gap, what, reported, seen), times): (Kind<'_>, u64)| {
        let mut line = Phrase::new();
        if let Some(run) = run {
            line = line.words(format!("Run {run}: "));
        }
        line = line.strong(what).words(format!(" {}", gap.why()));
        if let (Some(reported), Some(seen)) = (reported, seen) {
            line = line.words(format!(" ({reported} reported, {seen} seen)"));
        }
        let times = if times > 1 { format!(", {times} times") } else { String::new() };
        line.words(format!("{times}."))
    };
    all.into_iter().map(line).collect()
}

/// What in the spool was not taken in.
pub(super) fn refused(records: &[Record]) -> Vec<Phrase> {
    let mut all: BTreeMap<SpoolFault, u64> = BTreeMap::new();
    for record in records {
        if let Event::SpoolRefused { fault, count } = &record.event {
            *all.entry(*fault).or_default() += count;
        }
    }
    all.into_iter()
        .map(|(fault, found)| {
            let entries = count(found, "entry", "entries");
            Phrase::new()
                .words(format!("{entries} of the box's spool not taken in: {}.", fault.why()))
        })
        .collect()
}

/// The output of a run that is kept, a line each.
pub(super) fn kept(records: &[Record], run: u64) -> Vec<Phrase> {
    let of = records.iter().filter(|record| record.run == Some(run));
    of.filter_map(|record| match &record.event {
        Event::Output { stream, bytes, kept, payload } => {
            let cut = if kept < bytes {
                format!(", the first {} of them", size(*kept))
            } else {
                String::new()
            };
            Some(Phrase::new().words(format!(
                "› {} kept: {}{cut}, {payload}",
                stream.name(),
                size(*bytes)
            )))
        }
        _ => None,
    })
    .collect()
}
