//! How long the host looks for programs that were refused: a box can be refused as often as it likes.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A second's time for looking. One look through a large box takes milliseconds, a program that was
/// found a moment ago some microseconds.
const A_SECOND: Duration = Duration::from_millis(100);

/// A moment of the thread that looks. Its work is counted, and not what passes while the machine lets
/// it wait: on a busy one a single look could take the second's time, and those who are refused next
/// would stay without a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    wall: Instant,
    work: Duration,
}

impl Tick {
    pub(super) fn now() -> Self {
        let work = clock_gettime(ClockId::ThreadCPUTime);
        Self { wall: Instant::now(), work: work.try_into().unwrap_or_default() }
    }
}

/// The work that was done in this second.
#[derive(Debug, Default)]
pub(super) struct Looking {
    since: Option<Instant>,
    spent: Duration,
}

impl Looking {
    /// Looks, unless the time of this second is spent. What is under way when it ends is finished.
    pub(super) fn within<T>(
        &mut self,
        now: impl Fn() -> Tick,
        look: impl FnOnce() -> T,
    ) -> Option<T> {
        let began = now();
        let old = |since| began.wall.saturating_duration_since(since) >= Duration::from_secs(1);
        if self.since.is_none_or(old) {
            (self.since, self.spent) = (Some(began.wall), Duration::ZERO);
        }
        if self.spent >= A_SECOND {
            return None;
        }
        let found = look();
        self.spent += now().work.saturating_sub(began.work);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    use super::{Looking, Tick};

    fn pass(clock: &Cell<Tick>, wall: u64, work: u64) {
        let Tick { wall: at, work: done } = clock.get();
        let (wall, work) = (Duration::from_millis(wall), Duration::from_millis(work));
        clock.set(Tick { wall: at + wall, work: done + work });
    }

    #[test]
    fn of_a_flood_as_many_are_looked_for_as_the_second_has_time_for() {
        let clock = Cell::new(Tick { wall: Instant::now(), work: Duration::ZERO });
        let mut looking = Looking::default();
        let mut looked = |times: usize, takes: u64| {
            let look =
                |_: &usize| looking.within(|| clock.get(), || pass(&clock, takes, takes)).is_some();
            (0..times).filter(look).count()
        };
        // Slow ones: the one that goes beyond is the last.
        assert_eq!(looked(10_000, 30), 4);
        pass(&clock, 879, 0);
        assert_eq!(looked(10_000, 30), 0);
        pass(&clock, 1, 0);
        assert_eq!(looked(2, 30), 2);
        pass(&clock, 1000, 0);
        // Quick ones are all looked for.
        assert_eq!(looked(10_000, 0), 10_000);
    }

    #[test]
    fn a_look_that_waits_for_the_machine_takes_nothing_from_the_next() {
        let clock = Cell::new(Tick { wall: Instant::now(), work: Duration::ZERO });
        let mut looking = Looking::default();
        for _ in 0..3 {
            assert!(looking.within(|| clock.get(), || pass(&clock, 300, 1)).is_some());
        }
        // The twin: as long in work.
        assert!(looking.within(|| clock.get(), || pass(&clock, 0, 300)).is_some());
        assert!(looking.within(|| clock.get(), || ()).is_none());
    }

    #[test]
    fn a_thread_that_sleeps_does_no_work() {
        let began = Tick::now();
        std::thread::sleep(Duration::from_millis(60));
        let slept = Tick::now();
        assert!(slept.wall - began.wall >= Duration::from_millis(60));
        assert!(slept.work - began.work < Duration::from_millis(60));
        // The twin: one that works does.
        while Tick::now().work - slept.work < Duration::from_millis(5) {
            assert!(slept.wall.elapsed() < Duration::from_secs(60), "{:?}", Tick::now());
        }
    }
}
