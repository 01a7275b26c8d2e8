//! What is kept of very many records: equal ones together, and no more than a report can show.

use std::collections::BTreeMap;

use super::phrase::Phrase;
use super::text::kept;

/// The most lines of one list; the rest is counted.
pub(super) const MAX_LISTED: usize = 500;

/// Kinds and how often each came up.
///
/// The first `MOST` kinds in their order are kept apart, whenever they come up, each with its exact
/// number. Of the others it is only counted how many records told of them.
#[derive(Debug)]
pub(super) struct Tally<K, const MOST: usize = 1024> {
    kinds: BTreeMap<K, u64>,
    beyond: u64,
}

impl<K, const MOST: usize> Default for Tally<K, MOST> {
    fn default() -> Self {
        Self { kinds: BTreeMap::new(), beyond: 0 }
    }
}

impl<K: Ord, const MOST: usize> Tally<K, MOST> {
    /// A record tells of `kind` so many times.
    pub(super) fn add(&mut self, kind: K, times: u64) {
        if let Some(known) = self.kinds.get_mut(&kind) {
            *known = known.saturating_add(times);
            return;
        }
        self.kinds.insert(kind, times);
        // The last kind can only go down from here, so one that went never comes back.
        if self.kinds.len() > MOST && self.kinds.pop_last().is_some() {
            self.beyond += 1;
        }
    }

    /// How many kinds there are, as far as they are known apart.
    pub(super) fn number(&self) -> u64 {
        self.kinds.len() as u64 + self.beyond
    }

    /// The kinds in their order.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&K, u64)> {
        self.kinds.iter().map(|(kind, times)| (kind, *times))
    }

    /// A line for each kind.
    pub(super) fn lines(&self, line: impl Fn(&K, u64) -> Phrase) -> Lines {
        let lines = self.kinds().map(|(kind, times)| line(kind, times)).collect();
        Lines { lines, more: self.beyond }
    }
}

/// Lines of a list, and how many more there would be.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<Phrase>,
    pub(super) more: u64,
}

impl Lines {
    /// One more line, which is only counted where a list shows no more.
    pub(super) fn push(&mut self, line: impl FnOnce() -> Phrase) {
        if self.lines.len() < MAX_LISTED {
            self.lines.push(line());
        } else {
            self.more += 1;
        }
    }

    /// These lines after its own.
    pub(super) fn append(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.more += other.more;
    }

    /// How many lines there would be.
    pub(super) fn number(&self) -> u64 {
        self.lines.len() as u64 + self.more
    }
}

impl FromIterator<Phrase> for Lines {
    fn from_iter<I: IntoIterator<Item = Phrase>>(lines: I) -> Self {
        Self { lines: lines.into_iter().collect(), more: 0 }
    }
}

/// Bytes of the box, as much of them as is ever shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kept(Box<[u8]>);

impl Kept {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(kept(bytes).into())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_kinds_are_exact_and_no_record_is_lost(kinds in prop::collection::vec(0_u8..40, 0..200)) {
            let mut tally = Tally::<u8, 8>::default();
            let mut all = BTreeMap::new();
            for kind in &kinds {
                tally.add(*kind, 1);
                *all.entry(*kind).or_insert(0_u64) += 1;
            }
            let first: Vec<(u8, u64)> = all.iter().take(8).map(|(kind, n)| (*kind, *n)).collect();
            let told: Vec<(u8, u64)> = tally.kinds().map(|(kind, n)| (*kind, n)).collect();
            prop_assert_eq!(told, first);
            prop_assert_eq!(tally.beyond == 0, all.len() <= 8);
            prop_assert!(tally.number() >= all.len() as u64);
        }
    }
}
