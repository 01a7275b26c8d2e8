//! A clock for what must come within a time, on a machine that may do much else.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long the watching thread sleeps each time.
const TICK: Duration = Duration::from_millis(5);

static LATE: AtomicU64 = AtomicU64::new(0);
static WATCHER: OnceLock<()> = OnceLock::new();

/// A moment from which time is taken, without the time that this machine let everybody wait.
///
/// A thread sleeps for 5 ms at a time; by how much it wakes late is time in which the machine,
/// busy or stopped by its own host, kept its processes from running. A test that something comes
/// within a second means a second of a machine that works.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    late: u64,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        WATCHER.get_or_init(|| {
            std::thread::spawn(watch);
        });
        Self { at: Instant::now(), late: LATE.load(Ordering::Relaxed) }
    }

    /// The time since then, without what the machine was late in it. Never more than what a clock
    /// on the wall shows.
    pub fn elapsed(&self) -> Duration {
        let late = LATE.load(Ordering::Relaxed).saturating_sub(self.late);
        self.at.elapsed().saturating_sub(Duration::from_nanos(late))
    }
}

fn watch() {
    loop {
        let begun = Instant::now();
        std::thread::sleep(TICK);
        let late = begun.elapsed().saturating_sub(TICK);
        LATE.fetch_add(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_works_is_not_late() {
        // One that does much else at this very moment is, so the best of several counts.
        let of = |_| {
            let (began, wall) = (Moment::now(), Instant::now());
            std::thread::sleep(Duration::from_millis(200));
            (began.elapsed(), wall.elapsed())
        };
        assert!((0..20).map(of).any(|(seen, wall)| seen > wall / 2));
    }

    #[test]
    fn what_the_machine_was_late_is_left_out() {
        let began = Moment::now();
        std::thread::sleep(Duration::from_millis(50));
        LATE.fetch_add(1_000_000_000, Ordering::Relaxed);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
