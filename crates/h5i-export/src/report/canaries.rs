//! Planted credentials: which were opened, and which the box has undone.

use super::phrase::Phrase;
use super::tally::{Kept, Lines, Tally};
use super::text::count;
use crate::record::{CanaryLoss, Event, Record};

/// What became of planted credentials.
#[derive(Debug, Default)]
pub(super) struct Canaries {
    read: Tally<(Kept, Option<u64>)>,
    lost: Tally<(Kept, CanaryLoss)>,
}

impl Canaries {
    pub(super) fn take(&mut self, record: &Record) {
        match &record.event {
            Event::CanaryRead { path, count } => {
                self.read.add((Kept::new(path.as_bytes()), record.run), *count);
            }
            Event::CanaryLost { path, why } => {
                self.lost.add((Kept::new(path.as_bytes()), *why), 1);
            }
            _ => {}
        }
    }

    /// Those that were opened, a line for each run.
    pub(super) fn read(&self) -> Lines {
        self.read.lines(|(path, run), times| {
            let by = match run {
                Some(run) => format!(", in run {run}."),
                None => ", by no run that went alone.".to_owned(),
            };
            Phrase::new()
                .words("A planted credential was opened: ")
                .strong(path.as_bytes())
                .words(format!(", {}{by}", count(times, "time", "times")))
        })
    }

    /// Those that are not as they were planted: who opens them after that is not seen.
    pub(super) fn lost(&self) -> Lines {
        self.lost.lines(|(path, why), times| {
            let times = if times > 1 { format!(", {times} times") } else { String::new() };
            Phrase::new()
                .words("The planted credential ")
                .strong(path.as_bytes())
                .words(format!(" {}{times}: who opened it then was not seen.", why.why()))
        })
    }
}
