//! The programs of a session: every attempt before it goes on, what came of it, and every end.
//!
//! An attempt is what a waiting `execve` says. It has succeeded when the kernel's view of the
//! process afterwards is that of another program ([`Image`]). It is looked at when the process is
//! next stopped in a call, at the latest in `exit_group`, so that a program that lives for
//! microseconds is seen as well; one that goes on is looked at after a while.

mod arguments;
mod descent;
mod ends;
mod first;
mod stat;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::event::{
    Event, EventSink, Exec, ExecAttempt, ProcessEnd, ProcessEnded, ProcessId, Seen, SinkClosed,
};
use crate::notices::NoticeError;
use crate::sys::{self, Notification};
use descent::Descent;
use ends::Ends;
pub(crate) use first::FirstProgram;
use stat::{Image, Stat, Status};

/// When a process that goes on is looked at after its attempt, from the attempt on.
const LOOKS: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(200), Duration::from_secs(2)];
/// Processes that are kept although their end can't be heard.
const UNWATCHED: usize = 4096;
/// From this age on a process that ends is asked for its peak memory, which takes the kernel longer
/// to tell than the rest.
const WORTH_ASKING: Duration = Duration::from_millis(100);

/// The programs of a session.
#[derive(Debug)]
pub(crate) struct ExecRecord {
    started: Instant,
    /// By process id in this process's pid namespace.
    processes: BTreeMap<u32, Process>,
    descent: Descent,
    ends: Ends,
    unwatched: usize,
    last: u64,
    looks: VecDeque<Look>,
}

/// A process that attempted to become a program.
#[derive(Debug)]
struct Process {
    id: ProcessId,
    run: u64,
    parent: ProcessId,
    born: u64,
    since: Instant,
    pidfd: Option<OwnedFd>,
    image: Image,
    attempt: Option<Attempt>,
    failed: u32,
    /// What it said and used when it ended by itself.
    last: Option<LastWords>,
}

/// An attempt whose outcome was not seen yet; the process's image is that before it.
#[derive(Debug)]
struct Attempt {
    path: Seen<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct LastWords {
    code: u8,
    cpu: Duration,
    peak: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    due: Instant,
    pid: u32,
    proc: u64,
    nth: usize,
}

impl ExecRecord {
    pub(crate) fn new(started: Instant) -> Self {
        Self {
            started,
            processes: BTreeMap::new(),
            descent: Descent::default(),
            ends: Ends::new(),
            unwatched: 0,
            last: 0,
            looks: VecDeque::new(),
        }
    }

    /// Whether the thread is a process on record; otherwise it may be a run's first one.
    pub(crate) fn knows(&self, thread: u32) -> bool {
        self.processes.contains_key(&thread)
    }

    /// Takes a waiting `execve` or `execveat`, records it, and only then has it go on. `first` is
    /// the run that the process is to be the first of, where it is.
    pub(crate) fn attempted(
        &mut self,
        call: &Notification,
        listener: BorrowedFd<'_>,
        first: Option<(u64, u32, &FirstProgram)>,
        sink: &dyn EventSink,
    ) -> Result<(), NoticeError> {
        let Some((pid, stat)) = self.find(call.thread) else {
            return Ok(sys::proceed(listener, call.id)?);
        };
        self.forget_another(pid, &stat, sink)?;
        self.settle(pid, stat.image, sink)?;
        // Who has a child that asks for a program is one.
        self.stopped(stat.parent, sink)?;
        // Once it has executed a program, its memory is its own.
        let first = first.filter(|_| stat.image.is_forked());
        let (path, arguments, cwd) = match first {
            Some((_, _, program)) => program.asked(call),
            None => (
                arguments::path(call),
                arguments::strings(call.thread, call.args[arguments::argv_place(call)]),
                stat::link(pid, "cwd"),
            ),
        };
        let ppid = self.parent_inside(&stat);
        let fresh = match self.processes.get(&pid) {
            Some(_) => None,
            None => Some(self.enter(pid, &stat, first)),
        };
        // What was read is the caller's only if it was there all the time.
        if !sys::still_waits(listener, call.id) {
            return Ok(());
        }
        if let Some(fresh) = fresh {
            self.keep(pid, fresh);
        }
        let Some(process) = self.processes.get_mut(&pid) else { return Ok(()) };
        let now = Instant::now();
        let event = Event::ExecAttempt(ExecAttempt {
            run: process.run,
            process: process.id,
            parent: process.parent,
            ppid,
            path: path.clone(),
            arguments,
            cwd,
            watched: process.pidfd.is_some(),
            since_start: now - self.started,
        });
        if sink.event(event).is_err() {
            sys::answer(listener, call.id, libc::EPERM)?;
            return Err(NoticeError::Sink);
        }
        process.image = stat.image;
        process.attempt = Some(Attempt { path });
        let look = Look { due: now + LOOKS[0], pid, proc: process.id.proc, nth: 0 };
        sys::proceed(listener, call.id)?;
        self.looks.push_back(look);
        Ok(())
    }

    /// Takes a waiting `exit_group`: the last chance to see what the process is, and whose its
    /// children are.
    pub(crate) fn exits(
        &mut self,
        call: &Notification,
        listener: BorrowedFd<'_>,
        sink: &dyn EventSink,
    ) -> Result<(), NoticeError> {
        let Some((pid, stat)) = self.find(call.thread) else {
            return Ok(sys::proceed(listener, call.id)?);
        };
        self.forget_another(pid, &stat, sink)?;
        let children = stat::children(pid, stat.threads);
        if !children.is_empty() {
            let of = self.forebear(pid, &stat);
            self.descent.adopt(&children, of);
        }
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(sys::proceed(listener, call.id)?);
        };
        let asked = process.since.elapsed() >= WORTH_ASKING;
        let peak = if asked { Status::of(pid).and_then(|status| status.peak) } else { None };
        let code = u8::try_from(call.args[0] & 0xff).unwrap_or(u8::MAX);
        process.last = Some(LastWords { code, cpu: stat.cpu(), peak });
        let settled = process.settle(pid, stat.image, self.started);
        let unheard = process.pidfd.is_none();
        sys::proceed(listener, call.id)?;
        if let Some(exec) = settled {
            sink.event(exec)?;
        }
        if unheard {
            self.ended(pid, sink)?;
        }
        Ok(())
    }

    /// A process is seen to go on: what came of its attempt can be seen.
    pub(crate) fn stopped(&mut self, thread: u32, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        let undecided = |process: &&Process| process.attempt.is_some();
        let born = self.processes.get(&thread).filter(undecided).map(|process| process.born);
        match born.and_then(|born| Stat::of(thread).filter(|stat| stat.born == born)) {
            Some(stat) => self.settle(thread, stat.image, sink),
            None => Ok(()),
        }
    }

    /// Tells of the processes that have ended and were reaped.
    pub(crate) fn hear_ends(&mut self, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        self.ends.heard().into_iter().try_for_each(|pid| self.ended(pid, sink))
    }

    /// The box is gone: what is on record has ended.
    pub(crate) fn finish(&mut self, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        self.hear_ends(sink)?;
        let rest: Vec<u32> = self.processes.keys().copied().collect();
        rest.into_iter().try_for_each(|pid| self.ended(pid, sink))
    }

    /// Becomes readable when a process has ended.
    pub(crate) fn ends(&self) -> Option<&OwnedFd> {
        self.ends.descriptor()
    }

    /// When a process that goes on is to be looked at.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.looks.front().map(|look| look.due)
    }

    /// Looks at those whose time has come.
    pub(crate) fn look(&mut self, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        let now = Instant::now();
        while let Some(look) = self.looks.front().copied().filter(|look| look.due <= now) {
            self.looks.pop_front();
            let waiting = self
                .processes
                .get(&look.pid)
                .is_some_and(|process| process.id.proc == look.proc && process.attempt.is_some());
            let Some(stat) = waiting.then(|| Stat::of(look.pid)).flatten() else { continue };
            let Some(process) = self.processes.get_mut(&look.pid) else { continue };
            if process.born != stat.born {
                continue;
            }
            if process.image != stat.image {
                self.settle(look.pid, stat.image, sink)?;
            } else if let Some(after) = LOOKS.get(look.nth + 1) {
                let next = Look { due: now + *after, nth: look.nth + 1, ..look };
                let place = self.looks.partition_point(|other| other.due <= next.due);
                self.looks.insert(place, next);
            }
        }
        Ok(())
    }

    /// The process of a thread, and what the kernel says of it. `None` when it is gone.
    fn find(&self, thread: u32) -> Option<(u32, Stat)> {
        let stat = Stat::of(thread)?;
        if self.processes.contains_key(&thread) || stat.threads <= 1 {
            return Some((thread, stat));
        }
        let process = Status::of(thread)?.process;
        if process == thread {
            return Some((thread, stat));
        }
        Some((process, Stat::of(process)?))
    }

    /// A process of the same id that was there before has ended, and nobody told.
    fn forget_another(
        &mut self,
        pid: u32,
        stat: &Stat,
        sink: &dyn EventSink,
    ) -> Result<(), SinkClosed> {
        match self.processes.get(&pid) {
            Some(process) if process.born != stat.born => self.ended(pid, sink),
            _ => Ok(()),
        }
    }

    fn settle(&mut self, pid: u32, image: Image, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        let Some(process) = self.processes.get_mut(&pid) else { return Ok(()) };
        match process.settle(pid, image, self.started) {
            Some(exec) => sink.event(exec),
            None => Ok(()),
        }
    }

    /// A process that is not on record yet.
    fn enter(
        &mut self,
        pid: u32,
        stat: &Stat,
        first: Option<(u64, u32, &FirstProgram)>,
    ) -> Process {
        let (run, inside, parent) = match first {
            Some((run, inside, _)) => {
                self.descent.init = Some(stat.parent);
                (run, inside, Descent::INIT)
            }
            None => {
                let (parent, run) = self.forebear(pid, stat);
                (run, Status::of(pid).map_or(0, |status| status.inside), parent)
            }
        };
        let id = ProcessId { proc: self.last + 1, pid: inside };
        if first.is_some() {
            self.descent.leads(pid, (id, run));
        }
        Process {
            id,
            run,
            parent,
            born: stat.born,
            since: Instant::now(),
            pidfd: self.ends.watch(pid),
            image: stat.image,
            attempt: None,
            failed: 0,
            last: None,
        }
    }

    fn keep(&mut self, pid: u32, process: Process) {
        self.last = process.id.proc;
        if process.pidfd.is_none() {
            if self.unwatched == UNWATCHED {
                let unheard = |(_, process): &(&u32, &Process)| process.pidfd.is_none();
                let oldest = self.processes.iter().filter(unheard).min_by_key(|(_, p)| p.id.proc);
                if let Some(pid) = oldest.map(|(pid, _)| *pid) {
                    self.processes.remove(&pid);
                }
            } else {
                self.unwatched += 1;
            }
        }
        self.processes.insert(pid, process);
    }

    /// The nearest process on record at or above this one, and its run.
    fn forebear(&mut self, pid: u32, stat: &Stat) -> (ProcessId, u64) {
        let on_record = |pid: u32| {
            let process = self.processes.get(&pid)?;
            let same = process.pidfd.is_some()
                || Stat::of(pid).is_some_and(|stat| stat.born == process.born);
            same.then_some((process.id, process.run))
        };
        self.descent.forebear(pid, stat, on_record)
    }

    fn parent_inside(&self, stat: &Stat) -> u32 {
        match self.processes.get(&stat.parent) {
            Some(process) => process.id.pid,
            None if self.descent.init == Some(stat.parent) => Descent::INIT.pid,
            None => Status::of(stat.parent).map_or(0, |status| status.inside),
        }
    }

    fn ended(&mut self, pid: u32, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        let Some(process) = self.processes.remove(&pid) else { return Ok(()) };
        let end = match &process.pidfd {
            Some(pidfd) => self.ends.forget(pid, pidfd),
            None => {
                self.unwatched = self.unwatched.saturating_sub(1);
                None
            }
        };
        let said = process.last.map(|last| ProcessEnd::Exited(last.code));
        sink.event(Event::ProcessEnded(ProcessEnded {
            run: process.run,
            process: process.id,
            end: end.or(said).unwrap_or(ProcessEnd::Untold),
            wall: process.since.elapsed(),
            cpu: process.last.map(|last| last.cpu),
            max_rss: process.last.and_then(|last| last.peak),
            unseen: process.attempt.is_some(),
            since_start: self.started.elapsed(),
        }))
    }
}

impl Process {
    /// Sees what came of the attempt that is under way, if one is.
    fn settle(&mut self, pid: u32, image: Image, started: Instant) -> Option<Event> {
        let attempt = self.attempt.take()?;
        if image == self.image {
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
}
