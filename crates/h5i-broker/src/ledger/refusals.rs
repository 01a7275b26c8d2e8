//! Refusals, told once and then counted.

use std::collections::BTreeMap;

use crate::event::{Denial, Event, Program};

/// Kinds that are kept apart. Others are counted without what tells them apart.
const KINDS: usize = 256;

/// What was refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) grant: String,
    pub(crate) run: Option<u64>,
    pub(crate) token_of: Option<u64>,
    pub(crate) program: Option<Program>,
    pub(crate) request: Option<String>,
    pub(crate) denial: Denial,
}

/// How often each kind was refused since it was last told.
#[derive(Debug, Default)]
pub(crate) struct Refusals(BTreeMap<Kind, u64>);

impl Refusals {
    /// Counts one. The first of its kind is told at once.
    pub(crate) fn count(&mut self, mut kind: Kind) -> Option<Event> {
        if self.0.len() >= KINDS && !self.0.contains_key(&kind) {
            // At most as many as there are grants and denials.
            kind = Kind { run: None, token_of: None, program: None, request: None, ..kind };
        }
        if let Some(untold) = self.0.get_mut(&kind) {
            *untold += 1;
            return None;
        }
        self.0.insert(kind.clone(), 0);
        Some(told(kind, 1))
    }

    /// Tells what was counted since, of one run or of all, and forgets it.
    pub(crate) fn tell(&mut self, run: Option<u64>) -> Vec<Event> {
        let (of_it, others) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(kind, _)| run.is_none() || kind.run == run);
        self.0 = others;
        let of_it: BTreeMap<Kind, u64> = of_it;
        of_it
            .into_iter()
            .filter(|(_, untold)| *untold > 0)
            .map(|(kind, untold)| told(kind, untold))
            .collect()
    }
}

fn told(kind: Kind, count: u64) -> Event {
    let Kind { grant, run, token_of, program, request, denial } = kind;
    Event::Refused { grant, run, token_of, program, request, denial, count }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(run: u64, request: usize) -> Kind {
        Kind {
            grant: "g".to_owned(),
            run: Some(run),
            token_of: None,
            program: None,
            request: Some(format!("GET /{request}")),
            denial: Denial::Path,
        }
    }

    fn count(event: &Event) -> u64 {
        let Event::Refused { count, .. } = event else { panic!("{event:?}") };
        *count
    }

    #[test]
    fn the_first_of_a_kind_is_told_at_once_and_the_rest_by_their_number() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.count(kind(1, 0)).as_ref().map(count), Some(1));
        for _ in 0..3 {
            assert_eq!(refusals.count(kind(1, 0)), None);
        }
        assert_eq!(refusals.count(kind(2, 0)).as_ref().map(count), Some(1));
        assert_eq!(refusals.tell(Some(2)), []);
        assert_eq!(refusals.tell(Some(1)).iter().map(count).collect::<Vec<_>>(), [3]);
        assert_eq!(refusals.tell(None), []);
    }

    #[test]
    fn kinds_are_bounded_and_none_is_lost() {
        let mut refusals = Refusals::default();
        let mut told: u64 =
            (0..1000).filter_map(|n| refusals.count(kind(1, n))).map(|e| count(&e)).sum();
        assert!(refusals.0.len() <= KINDS + 1, "{}", refusals.0.len());
        told += refusals.tell(None).iter().map(count).sum::<u64>();
        assert_eq!(told, 1000);
    }
}
