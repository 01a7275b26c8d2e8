//! System calls that were refused, equal ones together.

use std::collections::BTreeMap;

use super::phrase::Phrase;
use super::tally::{Kept, Lines, Tally};
use super::text::count;
use crate::record::{Event, Record};

/// Calls that are kept apart; there are fewer with a name.
const CALLS: usize = 512;
/// Programs of each call that are kept apart.
const PROGRAMS: usize = 128;

/// Refused calls by their name, then by program and error.
#[derive(Debug, Default)]
pub(super) struct RefusedCalls {
    calls: BTreeMap<String, Tally<(Kept, Kept), PROGRAMS>>,
    /// Records of calls that are not kept apart.
    beyond: u64,
}

impl RefusedCalls {
    pub(super) fn take(&mut self, record: &Record) {
        let Event::RefusedCall { call, program, errno, count, .. } = &record.event else { return };
        let kind = (Kept::new(program.as_bytes()), Kept::new(errno.as_bytes()));
        if let Some(known) = self.calls.get_mut(call) {
            known.add(kind, *count);
            return;
        }
        let mut new = Tally::default();
        new.add(kind, *count);
        self.calls.insert(call.clone(), new);
        if self.calls.len() > CALLS
            && let Some((_, last)) = self.calls.pop_last()
        {
            self.beyond += last.number();
        }
    }

    /// What was refused, with the call's name, and for each call how much more there would be.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, Lines)> {
        let line = |call: &str, (program, errno): &(Kept, Kept), times| {
            Phrase::new()
                .words("Refused: ")
                .code(call.as_bytes())
                .words(" by ")
                .code(program.as_bytes())
                .words(format!(", {} (", count(times, "time", "times")))
                .foreign(String::from_utf8_lossy(errno.as_bytes()))
                .words(").")
        };
        self.calls.iter().map(move |(call, kinds)| {
            (call.as_str(), kinds.lines(|kind, times| line(call, kind, times)))
        })
    }

    /// That calls were refused which are in no line.
    pub(super) fn others(&self) -> Lines {
        let line = format!("Refused: other calls, {}.", count(self.beyond, "time", "times"));
        (self.beyond > 0).then(|| Phrase::new().words(line)).into_iter().collect()
    }
}
