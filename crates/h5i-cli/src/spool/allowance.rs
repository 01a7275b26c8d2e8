//! How much of a spool is taken in.

use std::time::{Duration, Instant};

/// Entries that may come at once.
const BURST: u32 = 256;
/// How long one more takes to be allowed.
const EACH: Duration = Duration::from_millis(15);
/// Entries of one session.
const ENTRIES: u64 = 20_000;
/// Bytes of one session.
const BYTES: u64 = 32 << 20;

/// What a session may still put on record by its spool: entries at once, entries and bytes in all.
#[derive(Debug)]
pub(super) struct Allowance {
    at_once: u32,
    since: Instant,
    entries: u64,
    bytes: u64,
}

impl Allowance {
    pub(super) fn new(now: Instant) -> Self {
        Self { at_once: BURST, since: now, entries: ENTRIES, bytes: BYTES }
    }

    /// Whether one more entry may be looked at; it counts as one.
    pub(super) fn entry(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since);
        let more = u32::try_from(passed.as_millis() / EACH.as_millis()).unwrap_or(BURST);
        if more > 0 {
            self.at_once = self.at_once.saturating_add(more).min(BURST);
            self.since = now;
        }
        if self.at_once == 0 || self.entries == 0 || self.bytes == 0 {
            return false;
        }
        self.at_once -= 1;
        self.entries -= 1;
        true
    }

    /// So many bytes were read.
    pub(super) fn read(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_stopped_and_a_trickle_is_not() {
        let start = Instant::now();
        let mut flood = Allowance::new(start);
        assert_eq!((0..1000).filter(|_| flood.entry(start)).count(), BURST as usize);
        assert_eq!((0..1000).filter(|_| flood.entry(start + EACH)).count(), 1);
        let mut trickle = Allowance::new(start);
        assert!((1..1000).all(|n| trickle.entry(start + EACH * n)));
    }

    #[test]
    fn a_session_ends_it_by_number_and_by_bytes() {
        let start = Instant::now();
        let mut long = Allowance::new(start);
        let allowed = (1..=30_000).filter(|n| long.entry(start + EACH * *n)).count();
        assert_eq!(allowed as u64, ENTRIES);
        let mut large = Allowance::new(start);
        assert!(large.entry(start));
        large.read(64 << 20);
        assert!(!large.entry(start + EACH));
    }
}
