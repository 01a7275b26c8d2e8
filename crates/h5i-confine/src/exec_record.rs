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
mod namespace;
mod process;
mod spare;
mod stat;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::event::{Event, EventSink, ExecAttempt, ProcessId, SinkClosed};
use crate::notices::NoticeError;
use crate::sys::{self, Notification};
use descent::Descent;
use ends::Ends;
pub(crate) use first::FirstProgram;
use namespace::Namespace;
use process::{Attempt, LastWords, Process};
use spare::Spare;
use stat::{Became, Image, Stat, Status};

/// When a process that goes on is looked at after its attempt, from the look before.
const LOOKS: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(200), Duration::from_secs(2)];
/// And from then on: it may wait in the kernel for what it is to run.
const LATER: Duration = Duration::from_secs(10);
/// Ends are heard of and processes looked at when so much of the session has passed, or a multiple of
/// it: doing each for itself would take the processor from whoever starts the next program.
const TOGETHER: Duration = Duration::from_millis(10);
/// Processes that are kept although their end can't be heard.
const UNWATCHED: usize = 4096;
/// From this age on a process that ends is asked what it used, which takes the kernel longer to tell
/// than the rest.
const WORTH_ASKING: Duration = Duration::from_millis(20);

/// The programs of a session.
#[derive(Debug)]
pub(crate) struct ExecRecord {
    started: Instant,
    /// By process id in this process's pid namespace.
    processes: BTreeMap<u32, Process>,
    descent: Descent,
    namespace: Namespace,
    ends: Ends,
    unwatched: usize,
    last: u64,
    looks: VecDeque<Look>,
    /// When ends are heard of that are about to come.
    hearing: Option<Instant>,
    spare: Spare,
}

/// What came of a waiting call for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempted {
    /// It was recorded and goes on, or nobody waits any more.
    Done,
    /// The process could not be looked at: it is gone, or there is no descriptor. Nothing was
    /// recorded.
    Unread,
}

/// Who makes a call.
#[derive(Debug)]
struct Caller {
    pid: u32,
    known: bool,
    parent: u32,
    pidfd: Option<OwnedFd>,
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
            namespace: Namespace::default(),
            ends: Ends::new(),
            unwatched: 0,
            last: 0,
            looks: VecDeque::new(),
            hearing: None,
            spare: Spare::new(),
        }
    }

    /// Whether the thread is a process on record; otherwise it may be a run's first one.
    pub(crate) fn knows(&self, thread: u32) -> bool {
        self.processes.contains_key(&thread)
    }

    /// Takes a waiting `execve` or `execveat`, records it, and only then has it go on. `first` is
    /// the run that the process is to be the first of, where it is.
    ///
    /// [`Attempted::Unread`] is left for who asks: to try again [with the descriptors that are
    /// kept](Self::with_spare), and to refuse it.
    pub(crate) fn attempted(
        &mut self,
        call: &Notification,
        listener: BorrowedFd<'_>,
        first: Option<(u64, u32, &FirstProgram)>,
        sink: &dyn EventSink,
    ) -> Result<Attempted, NoticeError> {
        let Some(caller) = self.caller(call.thread, sink)? else { return Ok(Attempted::Unread) };
        let pid = caller.pid;
        // Every program passes here, so who was never seen has not executed one.
        let (mut image, mut file) = (Image::FORKED, None);
        if caller.known {
            let Some(stat) = Stat::of(pid) else { return Ok(Attempted::Unread) };
            if !stat.image.is_forked() && !stat.image.is_told() {
                return Ok(Attempted::Unread);
            }
            self.settle(pid, stat.image, sink)?;
            image = stat.image;
            file = if image.is_forked() { None } else { stat::file(pid) };
        }
        // Who has a child that asks for a program is one.
        self.stopped(caller.parent, sink)?;
        // Once it has executed a program, its memory is its own.
        let first = first.filter(|_| image.is_forked());
        let (path, arguments, cwd) = match first {
            Some((_, _, program)) => program.asked(call),
            None => {
                let (path, arguments) = arguments::asked(call);
                (path, arguments, stat::link(pid, "cwd"))
            }
        };
        let ppid = self.inside_of_parent(caller.parent);
        let fresh = if caller.known {
            None
        } else {
            let Some(fresh) = self.enter(caller, first) else { return Ok(Attempted::Unread) };
            Some(fresh)
        };
        // What was read is the caller's only if it was there all the time.
        if !sys::still_waits(listener, call.id) {
            if let Some(pidfd) = fresh.and_then(|fresh| fresh.pidfd) {
                self.ends.forget(pid, &pidfd);
            }
            return Ok(Attempted::Done);
        }
        if let Some(fresh) = fresh {
            self.keep(pid, fresh, sink)?;
        }
        let Some(process) = self.processes.get_mut(&pid) else { return Ok(Attempted::Unread) };
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
        (process.image, process.file) = (image, file);
        process.attempt = Some(Attempt { path });
        let due = together(self.started, now + LOOKS[0]);
        self.looks.push_back(Look { due, pid, proc: process.id.proc, nth: 0 });
        sys::proceed(listener, call.id)?;
        Ok(Attempted::Done)
    }

    /// Does something with the descriptors that are kept for want of others.
    pub(crate) fn with_spare<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        self.spare.lend();
        let done = act(self);
        self.spare.take_back();
        done
    }

    /// Takes a waiting `exit_group`: the last chance to see what the process is, and whose its
    /// children are.
    pub(crate) fn exits(
        &mut self,
        call: &Notification,
        listener: BorrowedFd<'_>,
        sink: &dyn EventSink,
    ) -> Result<(), NoticeError> {
        let mut pid = call.thread;
        if !self.knows(pid) {
            pid = ends::process_of(pid).unwrap_or(pid);
        }
        let same = |process: &Process| {
            process.pidfd.is_some() || Stat::of(pid).is_some_and(|stat| stat.born == process.born)
        };
        if self.processes.get(&pid).is_some_and(|process| !same(process)) {
            // One of the same id that was there before has ended, and nobody told.
            self.ended(pid, sink)?;
        }
        let Some(process) = self.processes.get(&pid) else {
            // One that only forked, and may be the only link to those below it.
            self.hand_on(pid, 1);
            sys::proceed(listener, call.id)?;
            return Ok(());
        };
        let (unheard, parents) = (process.pidfd.is_none(), process.parents);
        let old = process.since.elapsed() >= WORTH_ASKING;
        let asked = old || unheard || parents || process.attempt.is_some();
        let stat = if asked { Stat::of(pid) } else { None };
        let peak = if old { Status::of(pid).and_then(|status| status.peak) } else { None };
        if let Some(stat) = stat.filter(|_| parents) {
            self.hand_on(pid, stat.threads);
        }
        let code = u8::try_from(call.args[0] & 0xff).unwrap_or(u8::MAX);
        let Some(process) = self.processes.get_mut(&pid) else { return Ok(()) };
        let cpu = stat.filter(|_| old).map(|stat| stat.cpu());
        let now = Instant::now();
        let last = LastWords { code, cpu, peak, at: now };
        self.hearing = self.hearing.or(Some(together(self.started, now)));
        let settled = stat.and_then(|stat| process.settle(pid, stat.image, self.started));
        // What is let go on ends; what a signal took away from here may live on.
        if sys::proceed(listener, call.id)? {
            process.last = Some(last);
        }
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
        match self.processes.get(&thread).filter(undecided).and_then(|_| Stat::of(thread)) {
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
        let rest: Vec<u32> = self.processes.keys().copied().collect();
        rest.into_iter().try_for_each(|pid| self.ended(pid, sink))
    }

    /// Becomes readable when a process has ended. `None` while ends are left for [`Self::look`].
    pub(crate) fn ends(&self) -> Option<&OwnedFd> {
        self.ends.descriptor().filter(|_| self.hearing.is_none())
    }

    /// When [`Self::look`] has something to do.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.looks.front().map(|look| look.due).into_iter().chain(self.hearing).min()
    }

    /// Looks at those whose time has come, and tells of the ends that were left.
    pub(crate) fn look(&mut self, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        let Some(first) = self.next_look() else { return Ok(()) };
        let now = Instant::now();
        if first > now {
            return Ok(());
        }
        if self.hearing.is_some_and(|due| due <= now) {
            self.hearing = None;
            self.hear_ends(sink)?;
        }
        while let Some(look) = self.looks.front().copied().filter(|look| look.due <= now) {
            self.looks.pop_front();
            let Some(process) = self.processes.get(&look.pid) else { continue };
            if process.id.proc != look.proc || process.attempt.is_none() {
                continue;
            }
            let before = process.image;
            let Some(stat) = Stat::of(look.pid) else { continue };
            if before.became(stat.image) == Became::Another {
                self.settle(look.pid, stat.image, sink)?;
            } else {
                let after = LOOKS.get(look.nth + 1).copied().unwrap_or(LATER);
                let due = together(self.started, now + after);
                let next = Look { due, nth: look.nth + 1, ..look };
                let place = self.looks.partition_point(|other| other.due <= next.due);
                self.looks.insert(place, next);
            }
        }
        Ok(())
    }

    /// Whose thread it is. `None` when it is gone.
    fn caller(&mut self, thread: u32, sink: &dyn EventSink) -> Result<Option<Caller>, SinkClosed> {
        let mut pid = thread;
        let mut pidfd = None;
        if !self.knows(thread) {
            pidfd = ends::open(thread);
            if pidfd.is_none() {
                let Some(process) = ends::process_of(thread) else { return Ok(None) };
                pid = process;
            }
        }
        let known = |parent| Caller { pid, known: true, parent, pidfd: None };
        if let Some(process) = self.processes.get(&pid) {
            if let Some(pidfd) = &process.pidfd {
                return Ok(Some(known(sys::parent_of(pidfd.as_fd()).unwrap_or(0))));
            }
            let Some(stat) = Stat::of(pid) else { return Ok(None) };
            if process.born == stat.born {
                return Ok(Some(known(stat.parent)));
            }
            // One of the same id that was there before has ended, and nobody told.
            self.ended(pid, sink)?;
        }
        let pidfd = pidfd.or_else(|| ends::open(pid));
        let told = pidfd.as_ref().and_then(|pidfd| sys::parent_of(pidfd.as_fd()));
        let parent = told.or_else(|| Stat::of(pid).map(|stat| stat.parent));
        Ok(parent.map(|parent| Caller { pid, known: false, parent, pidfd }))
    }

    /// Remembers whose children those of a process are that is about to end.
    fn hand_on(&mut self, pid: u32, threads: u64) {
        let children = stat::children(pid, threads);
        let stat = if children.is_empty() { None } else { Stat::of(pid) };
        if let Some(stat) = stat {
            let of = self.forebear(pid, stat.parent);
            self.descent.adopt(&children, of);
        }
    }

    fn settle(&mut self, pid: u32, image: Image, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        let Some(process) = self.processes.get_mut(&pid) else { return Ok(()) };
        match process.settle(pid, image, self.started) {
            Some(exec) => sink.event(exec),
            None => Ok(()),
        }
    }

    /// A process that is not on record yet. `None` when it can't be looked at.
    fn enter(
        &mut self,
        caller: Caller,
        first: Option<(u64, u32, &FirstProgram)>,
    ) -> Option<Process> {
        let Caller { pid, parent: above, pidfd, .. } = caller;
        let (run, inside, parent) = match first {
            Some((run, inside, _)) => {
                self.descent.stands_above(above);
                (run, inside, Descent::INIT)
            }
            None => {
                let (parent, run) = self.forebear(pid, above);
                if let Some(process) = self.processes.get_mut(&above) {
                    process.parents = true;
                }
                (run, self.namespace.inside(pid), parent)
            }
        };
        if inside == 0 {
            return None;
        }
        let id = ProcessId { proc: self.last + 1, pid: inside };
        if first.is_some() {
            self.descent.leads(pid, (id, run));
        }
        // What is lent is for looking only.
        let pidfd = pidfd.filter(|_| !self.spare.is_lent());
        let pidfd = pidfd.and_then(|pidfd| self.ends.watch(pid, pidfd));
        // The pidfd names the process; without one its start time does.
        let born = if pidfd.is_some() { 0 } else { Stat::of(pid)?.born };
        Some(Process {
            id,
            run,
            parent,
            born,
            since: Instant::now(),
            pidfd,
            image: Image::FORKED,
            file: None,
            attempt: None,
            failed: 0,
            parents: false,
            last: None,
        })
    }

    fn keep(&mut self, pid: u32, process: Process, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        self.last = process.id.proc;
        if process.pidfd.is_none() {
            if self.unwatched == UNWATCHED {
                let unheard = |(_, process): &(&u32, &Process)| process.pidfd.is_none();
                let oldest = self.processes.iter().filter(unheard).min_by_key(|(_, p)| p.id.proc);
                if let Some(pid) = oldest.map(|(pid, _)| *pid) {
                    // It is forgotten, whether it has ended or not: nobody would tell.
                    self.ended(pid, sink)?;
                }
            }
            self.unwatched += 1;
        }
        self.processes.insert(pid, process);
        Ok(())
    }

    /// The nearest process on record at or above this one, and its run.
    fn forebear(&self, pid: u32, parent: u32) -> (ProcessId, u64) {
        let on_record = |pid: u32| {
            let process = self.processes.get(&pid)?;
            let same = process.pidfd.is_some()
                || Stat::of(pid).is_some_and(|stat| stat.born == process.born);
            same.then_some((process.id, process.run))
        };
        self.descent.forebear(pid, parent, on_record)
    }

    fn inside_of_parent(&mut self, parent: u32) -> u32 {
        match self.processes.get(&parent) {
            Some(process) => process.id.pid,
            None if parent == 0 => 0,
            None if self.descent.is_above_runs(parent) => Descent::INIT.pid,
            None => self.namespace.inside(parent),
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
        sink.event(process.ended(end, self.started))
    }
}

/// The time at which what is due then is done together with the rest.
fn together(started: Instant, due: Instant) -> Instant {
    let over = due.duration_since(started).as_nanos() % TOGETHER.as_nanos();
    due + TOGETHER - Duration::from_nanos(u64::try_from(over).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_many_times_is_done_at_few() {
        let started = Instant::now();
        let at = |millis| started + Duration::from_millis(millis);
        for (due, done) in [(0, 10), (1, 10), (9, 10), (10, 20), (86_400_003, 86_400_010)] {
            assert_eq!(together(started, at(due)), at(done), "{due}");
        }
    }
}
