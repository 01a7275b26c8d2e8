//! One process that attempted to become a program.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::stat::{self, Image};
use crate::event::{Event, Exec, ProcessEnd, ProcessEnded, ProcessId, Seen};

#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: ProcessId,
    pub(super) run: u64,
    pub(super) parent: ProcessId,
    /// Start time, where no pidfd names it.
    pub(super) born: u64,
    pub(super) since: Instant,
    pub(super) pidfd: Option<OwnedFd>,
    /// What it was when it was last seen, or at its attempt.
    pub(super) image: Image,
    pub(super) attempt: Option<Attempt>,
    pub(super) failed: u32,
    /// It has a child on record.
    pub(super) parents: bool,
    /// What it said and used when it ended by itself.
    pub(super) last: Option<LastWords>,
}

/// An attempt whose outcome was not seen yet; the process's image is that before it.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) path: Seen<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LastWords {
    pub(super) code: u8,
    pub(super) cpu: Option<Duration>,
    pub(super) peak: Option<u64>,
    pub(super) at: Instant,
}

/// Who is heard to have ended so soon after its last words ended then. Words long ago were not its
/// last: a signal can interrupt who is about to end.
const SOON: Duration = Duration::from_millis(100);

impl Process {
    /// Sees what came of the attempt that is under way, if one is.
    pub(super) fn settle(&mut self, pid: u32, image: Image, started: Instant) -> Option<Event> {
        let attempt = self.attempt.take()?;
        if !self.image.became(image) {
            self.failed = self.failed.saturating_add(1);
            return None;
        }
        self.image = image;
        Some(Event::Exec(Exec {
            run: self.run,
            process: self.id,
            exe: stat::link(pid, "exe"),
            path: attempt.path,
            failed: std::mem::take(&mut self.failed),
            since_start: started.elapsed(),
        }))
    }

    /// How long, from its first attempt on, if its end is heard of now.
    fn lived(&self, now: Instant) -> Duration {
        let last = self.last.map(|last| last.at).filter(|at| now.duration_since(*at) <= SOON);
        last.unwrap_or(now).duration_since(self.since)
    }

    /// It has ended; `end` is the kernel's word for how.
    pub(super) fn ended(self, end: Option<ProcessEnd>, started: Instant) -> Event {
        let said = self.last.map(|last| ProcessEnd::Exited(last.code));
        let wall = self.lived(Instant::now());
        Event::ProcessEnded(ProcessEnded {
            run: self.run,
            process: self.id,
            end: end.or(said).unwrap_or(ProcessEnd::Untold),
            wall,
            cpu: self.last.and_then(|last| last.cpu),
            max_rss: self.last.and_then(|last| last.peak),
            unseen: self.attempt.is_some(),
            since_start: started.elapsed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a process lived that began and spoke its last words so long ago.
    fn lived(began: Duration, spoke: Option<Duration>) -> Duration {
        let now = Instant::now();
        let last = spoke.map(|ago| LastWords { code: 0, cpu: None, peak: None, at: now - ago });
        let id = ProcessId { proc: 1, pid: 1 };
        let process = Process {
            id,
            run: 1,
            parent: id,
            born: 0,
            since: now - began,
            pidfd: None,
            image: Image::FORKED,
            attempt: None,
            failed: 0,
            parents: false,
            last,
        };
        process.lived(now)
    }

    #[test]
    fn its_life_ends_with_its_last_words_if_they_were() {
        let (ten, five) = (Duration::from_secs(10), Duration::from_secs(5));
        assert_eq!(lived(ten, None), ten);
        let left = Duration::from_millis(10);
        assert_eq!(lived(ten, Some(left)), ten - left);
        // Who goes on after saying that it ends has not ended then.
        assert_eq!(lived(ten, Some(five)), ten);
    }
}
