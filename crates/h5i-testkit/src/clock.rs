//! A clock for what must come within a time, on a machine that may do much else.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How long a watching thread sleeps each time.
const TICK: Duration = Duration::from_millis(5);
/// Processors that are watched at most; of more, the first ones.
const MOST: usize = 16;

static WATCHED: OnceLock<Mutex<Watched>> = OnceLock::new();

/// What the watching threads have seen, each of its processor.
#[derive(Debug)]
struct Watched {
    /// By how much it woke late, in all.
    late: [Duration; MOST],
    /// When it went to sleep last; `None` where none watches.
    asleep: [Option<Instant>; MOST],
}

impl Watched {
    /// The one of this process; the first to ask starts the threads.
    fn get() -> MutexGuard<'static, Self> {
        let watched = WATCHED.get_or_init(|| {
            let mut asleep = [None; MOST];
            let usable = sched_getaffinity(None).unwrap_or_default();
            let usable = (0..CpuSet::MAX_CPU).filter(|cpu| usable.is_set(*cpu));
            for (at, cpu) in usable.take(MOST).enumerate() {
                asleep[at] = Some(Instant::now());
                std::thread::spawn(move || watch(at, cpu));
            }
            Mutex::new(Self { late: [Duration::ZERO; MOST], asleep })
        });
        watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By how much each is late until now, also in the sleep that goes on: whoever asks may have been
    /// woken first.
    fn until_now(&self) -> [Duration; MOST] {
        let mut late = self.late;
        for (late, asleep) in late.iter_mut().zip(self.asleep) {
            *late += asleep.map_or(Duration::ZERO, |at| at.elapsed().saturating_sub(TICK));
        }
        late
    }
}

fn watch(at: usize, cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    // Where it can't be had, it watches whichever it is given.
    sched_setaffinity(None, &only).ok();
    loop {
        Watched::get().asleep[at] = Some(Instant::now());
        std::thread::sleep(TICK);
        let mut watched = Watched::get();
        watched.late[at] = watched.until_now()[at];
        watched.asleep[at] = Some(Instant::now());
    }
}

/// A moment from which time is taken, without the time that this machine let somebody wait.
///
/// On each processor a thread sleeps for 5 ms at a time; by how much it wakes late is time in which
/// the machine, busy or stopped by its own host, kept its processes from running there. The
/// processor that was latest counts. A test that something comes within a second means a second of a
/// machine that works.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    late: [Duration; MOST],
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
        let until_now = Watched::get().until_now();
        let late = until_now.iter().zip(self.late).map(|(now, then)| now.saturating_sub(then));
        self.at.elapsed().saturating_sub(late.max().unwrap_or_default())
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
    fn what_a_processor_was_late_is_left_out() {
        let hour = Duration::from_secs(3600);
        let watched = Watched::get().asleep.iter().flatten().count();
        assert!(watched > 0);
        for at in 0..watched {
            let began = Moment::now();
            Watched::get().late[at] += hour;
            assert_eq!(began.elapsed(), Duration::ZERO, "{at}");
        }
        // Also when the watching thread does not know of it yet.
        let mut watched = Watched::get();
        watched.asleep[0] = watched.asleep[0].and_then(|at| at.checked_sub(hour));
        assert!(watched.until_now()[0] >= watched.late[0] + hour - TICK);
    }
}
