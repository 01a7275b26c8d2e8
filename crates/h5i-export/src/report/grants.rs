//! What was asked of services by grants: by whom, how much, and what was refused.

use std::collections::BTreeMap;

use super::phrase::Phrase;
use super::tally::{Kept, Lines, Tally};
use super::text::{count, size};
use crate::record::{Event, GrantEnd, Record};

/// What is named one by one; the rest is counted.
const NAMED: usize = 8;
/// Runs and grants whose first process is known; those of the last runs.
const FIRST: usize = 4096;

/// The uses of one grant.
#[derive(Debug, Default)]
struct Uses {
    requests: u64,
    sent: u64,
    received: u64,
    broken: u64,
    scrubbed: u64,
    what: Tally<(String, Kept)>,
    programs: Tally<Kept>,
}

/// Grant, reason, request, program.
type Refusal = (String, String, Option<Kept>, Option<Kept>);

/// What records tell of grants.
#[derive(Debug, Default)]
pub(super) struct Grants {
    used: BTreeMap<String, Uses>,
    changes: Lines,
    refused: Tally<Refusal>,
    /// The process that used a grant first in a run.
    first: BTreeMap<(Option<u64>, String), u32>,
    others: Tally<(Option<u64>, String, Kept)>,
}

impl Grants {
    pub(super) fn take(&mut self, record: &Record) {
        match &record.event {
            Event::GrantIssued { grant, .. } => drop(self.of(grant)),
            Event::GrantUse { grant, method, path, pid, program, .. } => {
                let uses = self.of(grant);
                uses.requests += 1;
                uses.what.add((method.clone(), Kept::new(path.as_bytes())), 1);
                let program = program.as_ref().map(|program| Kept::new(program.as_bytes()));
                if let Some(program) = &program {
                    uses.programs.add(program.clone(), 1);
                }
                if let Some(pid) = pid {
                    self.by((record.run, grant.clone()), *pid, program);
                }
            }
            Event::GrantUseEnd { grant, sent, received, end, scrubbed, .. } => {
                let uses = self.of(grant);
                uses.sent = uses.sent.saturating_add(*sent);
                uses.received = uses.received.saturating_add(*received);
                uses.broken += u64::from(*end != GrantEnd::Done);
                uses.scrubbed = uses.scrubbed.saturating_add(*scrubbed);
            }
            Event::GrantChange { grant, change, .. } => self.changes.push(|| {
                Phrase::new()
                    .words(format!("Changed while it ran: {} ", change.name()))
                    .code(grant.as_bytes())
                    .words(".")
            }),
            Event::GrantRefused { grant, reason, request, program, count, .. } => {
                let request = request.as_ref().map(|request| Kept::new(request.as_bytes()));
                let program = program.as_ref().map(|program| Kept::new(program.as_bytes()));
                self.refused.add((grant.clone(), reason.clone(), request, program), *count);
            }
            _ => {}
        }
    }

    /// The uses of a grant; there are as many as policies have named.
    fn of(&mut self, grant: &str) -> &mut Uses {
        self.used.entry(grant.to_owned()).or_default()
    }

    /// A process has used a grant in a run.
    fn by(&mut self, (run, grant): (Option<u64>, String), pid: u32, program: Option<Kept>) {
        let agent = *self.first.entry((run, grant.clone())).or_insert(pid);
        if agent != pid {
            let program = program.unwrap_or_else(|| Kept::new(b"?"));
            self.others.add((run, grant, program), 1);
        }
        if self.first.len() > FIRST {
            self.first.pop_first();
        }
    }

    /// Each grant that was issued or used, in a line, then how it was changed.
    pub(super) fn used(&self) -> Lines {
        let mut lines: Lines = self.used.iter().map(|(grant, uses)| uses.line(grant)).collect();
        lines.append(self.changes.clone());
        lines
    }

    /// What was refused, equal refusals together.
    pub(super) fn refused(&self) -> Lines {
        self.refused.lines(|(grant, reason, request, program), times| {
            let line =
                Phrase::new().words("Refused: grant ").strong(grant.as_bytes()).words(" to ");
            let mut line = match request {
                Some(request) => line.code(request.as_bytes()),
                None => line.words("a request"),
            };
            if let Some(program) = program {
                line = line.words(" by ").code(program.as_bytes());
            }
            let times = count(times, "time", "times");
            line.words(format!(", {times} (")).foreign(reason).words(").")
        })
    }

    /// Processes that used a grant beside the one that used it first in its run: a package's script,
    /// say, that spends what the agent was given.
    pub(super) fn shared(&self) -> Lines {
        self.others.lines(|(run, grant, program), times| {
            let run = run.map_or_else(String::new, |run| format!("Run {run}: "));
            Phrase::new()
                .words(run)
                .strong(program.as_bytes())
                .words(", not the process that used it first, used grant ")
                .code(grant.as_bytes())
                .words(format!(", {}.", count(times, "time", "times")))
        })
    }
}

impl Uses {
    fn line(&self, grant: &str) -> Phrase {
        let mut line = Phrase::new().strong(grant.as_bytes()).words(format!(
            ": {}, {} up, {} down",
            count(self.requests, "request", "requests"),
            size(self.sent),
            size(self.received),
        ));
        for (at, ((method, path), _)) in self.what.kinds().take(NAMED).enumerate() {
            line = line.words(if at == 0 { ": " } else { ", " });
            line = line.foreign(method).words(" ").code(path.as_bytes());
        }
        line = more(line, self.what.number());
        for (at, (program, _)) in self.programs.kinds().take(NAMED).enumerate() {
            line = line.words(if at == 0 { "; by " } else { ", " }).code(program.as_bytes());
        }
        line = more(line, self.programs.number());
        if self.broken > 0 {
            line = line.words(format!("; {} did not come to an end", self.broken));
        }
        if self.scrubbed > 0 {
            let times = count(self.scrubbed, "time", "times");
            line = line.words(format!("; the answers held the secret {times}, covered"));
        }
        line.words(".")
    }
}

fn more(line: Phrase, all: u64) -> Phrase {
    match all.saturating_sub(NAMED as u64) {
        0 => line,
        left => line.words(format!(" and {left} more")),
    }
}
