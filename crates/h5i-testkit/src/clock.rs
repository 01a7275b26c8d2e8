//! A clock for what must come within a time, on a machine that may do much else.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long the watching thread sleeps each time.
const TICK: Duration = Duration::from_millis(5);

static WATCHED: OnceLock<Mutex<Watched>> = OnceLock::new();

/// What the watching thread has seen.
#[derive(Debug)]
struct Watched {
    /// By how much it woke late, in all.
    late: Duration,
    /// When it went to sleep last.
    asleep: Instant,
}

impl Watched {
    /// The one of this process; the first to ask starts the thread.
    fn get() -> MutexGuard<'static, Self> {
        let watched = WATCHED.get_or_init(|| {
            std::thread::spawn(watch);
            Mutex::new(Self { late: Duration::ZERO, asleep: Instant::now() })
        });
        watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By how much it is late until now, also in the sleep that goes on: whoever asks may have been
    /// woken first.
    fn until_now(&self) -> Duration {
        self.late + self.asleep.elapsed().saturating_sub(TICK)
    }
}

fn watch() {
    loop {
        Watched::get().asleep = Instant::now();
        std::thread::sleep(TICK);
        let mut watched = Watched::get();
        watched.late = watched.until_now();
        watched.asleep = Instant::now();
    }
}

/// A moment from which time is taken, without the time that this machine let everybody wait.
///
/// A thread sleeps for 5 ms at a time; by how much it wakes late is time in which the machine,
/// busy or stopped by its own host, kept its processes from running. A test that something comes
/// within a second means a second of a machine that works.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    late: Duration,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let late = Watched::get().until_now();
        Self { at: Instant::now(), late }
    }

    /// The time since then, without what the machine was late in it. Never more than what a clock
    /// on the wall shows.
    pub fn elapsed(&self) -> Duration {
        let late = Watched::get().until_now().saturating_sub(self.late);
        self.at.elapsed().saturating_sub(late)
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
        assert!((0..20).map(of).any(|(seen, wall)| seen > wall / 20));
    }

    #[test]
    fn what_the_machine_was_late_is_left_out() {
        let hour = Duration::from_secs(3600);
        let began = Moment::now();
        Watched::get().late += hour;
        assert_eq!(began.elapsed(), Duration::ZERO);
        // Also when the watching thread does not know of it yet.
        let mut watched = Watched::get();
        watched.asleep = watched.asleep.checked_sub(hour).unwrap();
        assert!(watched.until_now() >= watched.late + hour - TICK);
    }
}
