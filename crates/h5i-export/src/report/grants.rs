//! What was asked of services by grants: by whom, how much, and what was refused.

use std::collections::{BTreeMap, BTreeSet};

use super::phrase::Phrase;
use super::text::{count, size};
use crate::record::{Event, GrantEnd, Record};

/// What is named one by one; the rest is counted.
const NAMED: usize = 8;

/// The uses of one grant.
#[derive(Debug, Default)]
struct Uses<'a> {
    requests: u64,
    sent: u64,
    received: u64,
    broken: u64,
    scrubbed: u64,
    what: BTreeSet<(&'a str, &'a [u8])>,
    programs: BTreeSet<&'a [u8]>,
}

/// Each grant that was issued or used, in a line, then how it was changed.
pub(super) fn used(records: &[Record]) -> Vec<Phrase> {
    let mut all: BTreeMap<&str, Uses<'_>> = BTreeMap::new();
    let mut changes = Vec::new();
    for record in records {
        match &record.event {
            Event::GrantIssued { grant, .. } => drop(all.entry(grant).or_default()),
            Event::GrantUse { grant, method, path, program, .. } => {
                let uses = all.entry(grant).or_default();
                uses.requests += 1;
                uses.what.insert((method, path.as_bytes()));
                uses.programs.extend(program.as_ref().map(|program| program.as_bytes()));
            }
            Event::GrantUseEnd { grant, sent, received, end, scrubbed, .. } => {
                let uses = all.entry(grant).or_default();
                uses.sent = uses.sent.saturating_add(*sent);
                uses.received = uses.received.saturating_add(*received);
                uses.broken += u64::from(*end != GrantEnd::Done);
                uses.scrubbed = uses.scrubbed.saturating_add(*scrubbed);
            }
            Event::GrantChange { grant, change, .. } => changes.push(
                Phrase::new()
                    .words(format!("Changed while it ran: {} ", change.name()))
                    .code(grant.as_bytes())
                    .words("."),
            ),
            _ => {}
        }
    }
    let line = |(grant, uses): (&str, Uses<'_>)| {
        let mut line = Phrase::new().strong(grant.as_bytes()).words(format!(
            ": {}, {} up, {} down",
            count(uses.requests, "request", "requests"),
            size(uses.sent),
            size(uses.received),
        ));
        for (at, (method, path)) in uses.what.iter().take(NAMED).enumerate() {
            line = line.words(if at == 0 { ": " } else { ", " });
            line = line.foreign(*method).words(" ").code(*path);
        }
        line = more(line, uses.what.len());
        for (at, program) in uses.programs.iter().take(NAMED).enumerate() {
            line = line.words(if at == 0 { "; by " } else { ", " }).code(*program);
        }
        line = more(line, uses.programs.len());
        if uses.broken > 0 {
            line = line.words(format!("; {} did not come to an end", uses.broken));
        }
        if uses.scrubbed > 0 {
            let times = count(uses.scrubbed, "time", "times");
            line = line.words(format!("; the answers held the secret {times}, covered"));
        }
        line.words(".")
    };
    all.into_iter().map(line).chain(changes).collect()
}

fn more(line: Phrase, all: usize) -> Phrase {
    match all.saturating_sub(NAMED) {
        0 => line,
        left => line.words(format!(" and {left} more")),
    }
}

/// What was refused, equal refusals together.
pub(super) fn refused(records: &[Record]) -> Vec<Phrase> {
    type Kind<'a> = (&'a str, &'a str, Option<&'a [u8]>, Option<&'a [u8]>);
    let mut all: BTreeMap<Kind<'_>, u64> = BTreeMap::new();
    for record in records {
        if let Event::GrantRefused { grant, reason, request, program, count, .. } = &record.event {
            let request = request.as_ref().map(|request| request.as_bytes());
            let program = program.as_ref().map(|program| program.as_bytes());
            *all.entry((grant, reason, request, program)).or_default() += count;
        }
    }
    let line = |((grant, reason, request, program), times): (Kind<'_>, u64)| {
        let mut line =
            Phrase::new().words("Refused: grant ").strong(grant.as_bytes()).words(" to ");
        line = match request {
            Some(request) => line.code(request),
            None => line.words("a request"),
        };
        if let Some(program) = program {
            line = line.words(" by ").code(program);
        }
        let times = count(times, "time", "times");
        line.words(format!(", {times} (")).foreign(reason).words(").")
    };
    all.into_iter().map(line).collect()
}

/// Processes that used a grant beside the one that used it first in its run: a package's script, say,
/// that spends what the agent was given.
pub(super) fn shared(records: &[Record]) -> Vec<Phrase> {
    let mut first: BTreeMap<(Option<u64>, &str), u32> = BTreeMap::new();
    let mut others: BTreeMap<(Option<u64>, &str, &[u8]), u64> = BTreeMap::new();
    for record in records {
        let Event::GrantUse { grant, pid: Some(pid), program, .. } = &record.event else {
            continue;
        };
        let agent = *first.entry((record.run, grant)).or_insert(*pid);
        if agent != *pid {
            let program = program.as_ref().map_or(&b"?"[..], |program| program.as_bytes());
            *others.entry((record.run, grant, program)).or_default() += 1;
        }
    }
    let line = |((run, grant, program), times): ((Option<u64>, &str, &[u8]), u64)| {
        let run = run.map_or_else(String::new, |run| format!("Run {run}: "));
        Phrase::new()
            .words(run)
            .strong(program)
            .words(", not the process that used it first, used grant ")
            .code(grant.as_bytes())
            .words(format!(", {}.", count(times, "time", "times")))
    };
    others.into_iter().map(line).collect()
}
