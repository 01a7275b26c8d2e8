//! One process that attempted to become a program.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::stat::{self, Became, File, Image};
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
    /// The file that it executed then, where it may execute another one with the same image.
    pub(super) file: Option<File>,
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

impl Process {
    /// Sees what came of the attempt that is under way, if one is and it can be seen.
    pub(super) fn settle(&mut self, pid: u32, image: Image, started: Instant) -> Option<Event> {
        self.attempt.as_ref()?;
        let another = match self.image.became(image) {
            Became::Unknown => return None,
            Became::Nothing => false,
            Became::Another => true,
            // Of a program that can't be read neither memory nor file is told.
            Became::Alike => match (self.file, stat::file(pid)) {
                (Some(before), Some(now)) => before != now,
                _ => return None,
            },
        };
        let attempt = self.attempt.take()?;
        if !another {
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

    /// How long, from its first attempt on, if its end is heard of now: to its last words, however
    /// late its parent waits for it, or until now.
    fn lived(&self, end: Option<ProcessEnd>, now: Instant) -> Duration {
        let fits = |last: &LastWords| end.is_none_or(|end| end == ProcessEnd::Exited(last.code));
        let last = self.last.filter(fits).map(|last| last.at);
        last.unwrap_or(now).duration_since(self.since)
    }

    /// It has ended; `end` is the kernel's word for how.
    pub(super) fn ended(self, end: Option<ProcessEnd>, started: Instant) -> Event {
        let said = self.last.map(|last| ProcessEnd::Exited(last.code));
        let wall = self.lived(end, Instant::now());
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

    /// How long a process lived that began so long ago, said some time ago that it ends with code 3,
    /// and ended so.
    fn lived(began: Duration, spoke: Option<Duration>, end: Option<ProcessEnd>) -> Duration {
        let now = Instant::now();
        let last = spoke.map(|ago| LastWords { code: 3, cpu: None, peak: None, at: now - ago });
        let id = ProcessId { proc: 1, pid: 1 };
        let process = Process {
            id,
            run: 1,
            parent: id,
            born: 0,
            since: now - began,
            pidfd: None,
            image: Image::FORKED,
            file: None,
            attempt: None,
            failed: 0,
            parents: false,
            last,
        };
        process.lived(end, now)
    }

    #[test]
    fn its_life_ends_with_its_last_words_if_they_were() {
        let (ten, five) = (Duration::from_secs(10), Duration::from_secs(5));
        assert_eq!(lived(ten, None, None), ten);
        let fits = Some(ProcessEnd::Exited(3));
        for end in [None, fits] {
            assert_eq!(lived(ten, Some(five), end), five, "{end:?}");
        }
        // Who ended in another way went on after its words.
        for end in [ProcessEnd::Exited(0), ProcessEnd::Signaled(9), ProcessEnd::Untold] {
            assert_eq!(lived(ten, Some(five), Some(end)), ten, "{end:?}");
        }
    }
}
