//! How long the host looks for programs that were refused: a box can be refused as often as it likes.

use std::time::{Duration, Instant};

/// A second's time for looking. One look through a large box takes milliseconds, a program that was
/// found a moment ago some microseconds.
const A_SECOND: Duration = Duration::from_millis(100);

/// The time that was spent in this second.
#[derive(Debug, Default)]
pub(super) struct Looking {
    since: Option<Instant>,
    spent: Duration,
}

impl Looking {
    /// Looks, unless the time of this second is spent. What is under way when it ends is finished.
    pub(super) fn within<T>(
        &mut self,
        now: impl Fn() -> Instant,
        look: impl FnOnce() -> T,
    ) -> Option<T> {
        let began = now();
        let old = |since| began.saturating_duration_since(since) >= Duration::from_secs(1);
        if self.since.is_none_or(old) {
            (self.since, self.spent) = (Some(began), Duration::ZERO);
        }
        if self.spent >= A_SECOND {
            return None;
        }
        let found = look();
        self.spent += now().saturating_duration_since(began);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    use super::Looking;

    #[test]
    fn of_a_flood_as_many_are_looked_for_as_the_second_has_time_for() {
        let clock = Cell::new(Instant::now());
        let pass = |millis| clock.set(clock.get() + Duration::from_millis(millis));
        let mut looking = Looking::default();
        let mut looked = |times: usize, takes: u64| {
            let look = |_: &usize| looking.within(|| clock.get(), || pass(takes)).is_some();
            (0..times).filter(look).count()
        };
        // Slow ones: the one that goes beyond is the last.
        assert_eq!(looked(10_000, 30), 4);
        pass(879);
        assert_eq!(looked(10_000, 30), 0);
        pass(1);
        assert_eq!(looked(2, 30), 2);
        pass(1000);
        // Quick ones are all looked for.
        assert_eq!(looked(10_000, 0), 10_000);
    }
}
