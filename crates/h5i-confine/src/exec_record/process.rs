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
}

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

    /// It has ended; `end` is the kernel's word for how.
    pub(super) fn ended(self, end: Option<ProcessEnd>, started: Instant) -> Event {
        let said = self.last.map(|last| ProcessEnd::Exited(last.code));
        Event::ProcessEnded(ProcessEnded {
            run: self.run,
            process: self.id,
            end: end.or(said).unwrap_or(ProcessEnd::Untold),
            wall: self.since.elapsed(),
            cpu: self.last.and_then(|last| last.cpu),
            max_rss: self.last.and_then(|last| last.peak),
            unseen: self.attempt.is_some(),
            since_start: started.elapsed(),
        })
    }
}
