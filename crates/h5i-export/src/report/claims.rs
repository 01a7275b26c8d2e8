//! What the box said of itself, and where that differs from what was seen.

use super::phrase::Phrase;
use super::tally::{Kept, Lines, Tally};
use super::text::count;
use crate::record::{Event, Gap, Lane, Record, SpoolFault};

/// A difference: in which run, how, about what, and the exit codes that were reported and seen.
type Difference = (Option<u64>, Gap, Kept, Option<i32>, Option<i32>);

/// Claims, and what was seen of them.
#[derive(Debug, Default)]
pub(super) struct Claims {
    notes: Lines,
    commands: u64,
    gaps: Tally<Difference>,
    refused: Tally<SpoolFault>,
}

impl Claims {
    pub(super) fn take(&mut self, record: &Record) {
        match &record.event {
            Event::Note { text } if record.lane == Lane::Box => self.notes.push(|| {
                let head = match record.run {
                    Some(run) => format!("Run {run}: "),
                    None => String::new(),
                };
                Phrase::new().words(head).code(Kept::new(text.as_bytes()).as_bytes())
            }),
            Event::ReportedCommand { .. } if record.lane == Lane::Box => self.commands += 1,
            Event::Gap { gap, what, reported, seen, .. } => {
                let what = Kept::new(what.as_bytes());
                self.gaps.add((record.run, *gap, what, *reported, *seen), 1);
            }
            Event::SpoolRefused { fault, count } => self.refused.add(*fault, *count),
            _ => {}
        }
    }

    /// Remarks and reported commands, as claims.
    pub(super) fn said(&self) -> Lines {
        let mut lines = self.notes.clone();
        if self.commands > 0 {
            let commands = count(self.commands, "command", "commands");
            lines.push(|| Phrase::new().words(format!("{commands} reported by its shells")));
        }
        lines
    }

    /// Where what was seen and what was reported differ, equal ones together.
    pub(super) fn gaps(&self) -> Lines {
        self.gaps.lines(|(run, gap, what, reported, seen), times| {
            let mut line = Phrase::new();
            if let Some(run) = run {
                line = line.words(format!("Run {run}: "));
            }
            line = line.strong(what.as_bytes()).words(format!(" {}", gap.why()));
            if let (Some(reported), Some(seen)) = (reported, seen) {
                line = line.words(format!(" ({reported} reported, {seen} seen)"));
            }
            let times = if times > 1 { format!(", {times} times") } else { String::new() };
            line.words(format!("{times}."))
        })
    }

    /// What in the spool was not taken in.
    pub(super) fn refused(&self) -> Lines {
        self.refused.lines(|fault, found| {
            let entries = count(found, "entry", "entries");
            Phrase::new()
                .words(format!("{entries} of the box's spool not taken in: {}.", fault.why()))
        })
    }
}
