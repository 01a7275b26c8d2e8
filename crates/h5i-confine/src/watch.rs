//! The session's thread: answers refused calls, hears of ends, keeps deadlines.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use h5i_policy::Limits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::budgets::{Budgets, millis};
use crate::compile::TAG_TERMINALS;
use crate::control;
use crate::event::{Event, SinkClosed, Spent};
use crate::notices::{Notice, NoticeError, Notices};
use crate::outcome::{Limit, Outcome, Stop, Usage};
use crate::processes::{self, Caller};
use crate::session::{Shared, Untold, reap};
use crate::sys;
use crate::trees::{self, Roots};
use crate::wire::{MSG_DESCRIPTOR, MSG_ENDED, MSG_KEEPER, MSG_SOCKET, MSG_STARTED, Message};

/// How long a stopped run's program may take to die and the box's init to tell that it did, before
/// the whole session is ended: what has much memory or a file to write back, or waits on a machine
/// that lets everybody wait, takes its time.
const GRACE: Duration = Duration::from_secs(5);

/// How long what a stopped run has started may take to die, before its whole session is ended.
const TREE: Duration = Duration::from_millis(800);

/// A descriptor that the session's owner has watched, and what is done when it can be read.
pub(crate) struct Watched {
    pub(crate) fd: OwnedFd,
    pub(crate) heard: Box<dyn FnMut() + Send>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("fd", &self.fd).finish_non_exhaustive()
    }
}

/// Runs until the box is gone; then every run has an end.
pub(crate) fn run(
    shared: &Shared,
    mut listener: Option<OwnedFd>,
    mut also: Vec<Watched>,
    mut budgets: Budgets,
) {
    let mut notices = Notices::new(shared.started);
    if let Some(listener) = &listener {
        sys::take_turns(listener.as_fd());
    }
    loop {
        let timeout = timeout(shared, &budgets, notices.execs.next_look());
        let ready = wait(shared, &mut listener, notices.execs.ends(), &mut also, timeout);
        let Ok(ready) = ready else { break };
        if ready.control && !hear_next(shared, &mut notices, &mut budgets) {
            break;
        }
        if ready.listener
            && let Some(listener) = &listener
            && notice(shared, listener.as_fd(), &mut notices, &mut budgets).is_err()
        {
            shared.close(false);
        }
        if observe(shared, &mut notices, ready.ends).is_err() {
            shared.close(false);
        }
        if ready.stage == Stage::Over {
            break;
        }
        if budgets.look(shared).and_then(|()| deadlines(shared)).is_err() {
            shared.close(false);
        }
    }
    shared.close(false);
    reap(&shared.stage);
    finish(shared, &mut notices);
}

/// Answers the next waiting call.
fn notice(
    shared: &Shared,
    listener: BorrowedFd<'_>,
    notices: &mut Notices,
    budgets: &mut Budgets,
) -> Result<(), NoticeError> {
    let Some(call) = sys::receive(listener)? else { return Ok(()) };
    let mut first = None;
    if Notice::of(&call) == Notice::Exec && !notices.execs.knows(call.thread) {
        // A run's first process has said that it is one before it made this call.
        let unsaid = || shared.state().runs.values().any(|run| !run.forked);
        while unsaid() && waits(&shared.control) && hear_next(shared, notices, budgets) {}
    }
    if Notice::of(&call) == Notice::Exec {
        first = shared.state().first_of(call.thread);
    }
    let first = first.as_ref().map(|(run, pid, program)| (*run, *pid, &**program));
    notices.answer(&call, listener, first, &*shared.sink)
}

/// Records what was heard and seen of processes.
fn observe(shared: &Shared, notices: &mut Notices, ended: bool) -> Result<(), SinkClosed> {
    if ended {
        notices.execs.hear_ends(&*shared.sink)?;
    }
    notices.execs.look(&*shared.sink)
}

/// Whether a message waits, or a process has ended.
fn waits(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::IN)
}

/// Hears the next message; `false` at the end of the conversation.
fn hear_next(shared: &Shared, notices: &mut Notices, budgets: &mut Budgets) -> bool {
    match control::receive(&shared.control) {
        Ok(Some((message, fds))) => {
            hear(shared, &message, fds, notices, budgets);
            true
        }
        Ok(None) | Err(_) => false,
    }
}

struct Ready {
    control: bool,
    listener: bool,
    ends: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Alive,
    Over,
}

fn wait(
    shared: &Shared,
    listener: &mut Option<OwnedFd>,
    ends: Option<&OwnedFd>,
    also: &mut Vec<Watched>,
    timeout: Option<Duration>,
) -> rustix::io::Result<Ready> {
    let mut fds = vec![
        PollFd::new(&shared.control, PollFlags::IN),
        PollFd::new(&shared.wake, PollFlags::IN),
        PollFd::new(&shared.stage, PollFlags::IN),
        PollFd::new(ends.unwrap_or(&shared.wake), PollFlags::IN),
    ];
    fds.extend(also.iter().map(|watched| PollFd::new(&watched.fd, PollFlags::IN)));
    if let Some(listener) = listener.as_ref() {
        fds.push(PollFd::new(listener, PollFlags::IN));
    }
    let timeout = timeout.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    let seen: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
    let [control, woken, stage, ends] = [0, 1, 2, 3].map(|at: usize| !seen[at].is_empty());
    let mut seen = seen.into_iter().skip(4);
    let mut next = || seen.next().unwrap_or(PollFlags::empty());
    // What hangs up would be ready for ever, and is not watched any more. The listener does so when
    // the last process of its filter is gone; then only the stage's end is left to wait for.
    also.retain_mut(|watched| {
        let flags = next();
        if flags.contains(PollFlags::IN) {
            (watched.heard)();
        }
        flags.contains(PollFlags::IN) || flags.is_empty()
    });
    let asked = listener.as_ref().map_or(PollFlags::empty(), |_| next());
    if !asked.contains(PollFlags::IN) && !asked.is_empty() {
        *listener = None;
    }
    let stage = if stage { Stage::Over } else { Stage::Alive };
    if woken {
        let mut counter = [0u8; 8];
        rustix::io::read(&shared.wake, &mut counter).ok();
    }
    Ok(Ready { control, listener: asked.contains(PollFlags::IN), ends, stage })
}

fn timeout(shared: &Shared, budgets: &Budgets, look: Option<Instant>) -> Option<Duration> {
    let state = shared.state();
    let alive = state.runs.values().filter(|run| run.end.is_none());
    let next = alive
        .filter_map(|run| match run.stop_sent {
            Some(sent) => Some(sent + GRACE),
            None => run.deadline,
        })
        .chain(budgets.next(&state))
        .chain(look)
        .min()?;
    // A millisecond more, because a timeout that rounds down finds nothing to do.
    Some(next.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
}

fn hear(
    shared: &Shared,
    message: &Message,
    mut fds: Vec<OwnedFd>,
    notices: &mut Notices,
    budgets: &mut Budgets,
) {
    match message.kind {
        MSG_STARTED => {
            if let Some(run) = shared.state().runs.get_mut(&message.run) {
                run.forked = true;
                // What was stopped before it had a process is stopped now that it has one.
                run.stop_sent = None;
                run.process = fds.last().and_then(|fd| sys::process_of(fd.as_fd()));
                run.inside = u32::try_from(message.value).unwrap_or(0);
                run.pidfd = fds.pop();
            }
            let pid = u32::try_from(message.value).unwrap_or(0);
            if shared.sink.event(Event::RunStarted { run: message.run, pid }).is_err() {
                shared.close(false);
            }
            shared.changed.notify_all();
        }
        MSG_DESCRIPTOR if message.code >= TAG_TERMINALS => {
            let run = u64::from(message.code - TAG_TERMINALS);
            if let Some(run) = shared.state().runs.get_mut(&run) {
                run.terminal = fds.pop();
            }
            shared.changed.notify_all();
        }
        MSG_KEEPER => {
            let mut state = shared.state();
            match fds.pop() {
                Some(keeper) => {
                    if let Some(run) = state.runs.get_mut(&message.run) {
                        run.keeper_known = true;
                    }
                    state.keepers.insert(message.run, keeper);
                }
                None => drop(state.keepers.remove(&message.run)),
            }
        }
        MSG_SOCKET => {
            let made = fds.pop().ok_or_else(|| i32::try_from(message.value).unwrap_or(libc::EIO));
            shared.state().sockets.insert(message.run, made);
            shared.changed.notify_all();
        }
        MSG_ENDED => ended(shared, message, notices, budgets),
        _ => {}
    }
}

fn ended(shared: &Shared, message: &Message, notices: &mut Notices, budgets: &mut Budgets) {
    let (status, lived) = {
        let state = shared.state();
        let Some(run) = state.runs.get(&message.run) else { return };
        // What the kernel says of the process outweighs what the box's init says.
        let told = run.pidfd.as_ref().and_then(|fd| sys::exit_status(fd.as_fd()));
        (told.unwrap_or_else(|| message.code.cast_signed()), run.started.elapsed())
    };
    let stop = spent_by_itself(status, &budgets.limits)
        .or_else(|| budgets.spent_at_end(shared, lived, status & 0x7f));
    let (outcome, usage) = {
        let mut state = shared.state();
        let Some(run) = state.runs.get_mut(&message.run) else { return };
        if let Some(stop) = stop {
            run.stop_for(stop, None);
        }
        let usage = Usage {
            wall: run.started.elapsed(),
            cpu: Duration::from_micros(message.user_us.saturating_add(message.system_us)),
            max_rss: message.max_rss_kib.saturating_mul(1024),
        };
        (outcome(status, run.stop), usage)
    };
    if tell_stops(shared).is_err() {
        shared.close(false);
    }
    end_run(shared, message.run, outcome, usage, notices);
}

/// The budget that the kernel itself stopped a program for.
fn spent_by_itself(status: i32, limits: &Limits) -> Option<Stop> {
    let allowed = limits.file_size.filter(|_| status & 0x7f == libc::SIGXFSZ)?.count();
    Some(Stop { limit: Limit::FileSize, used: allowed, allowed })
}

/// A run's end is recorded before it is told to who waits for it.
fn end_run(shared: &Shared, run: u64, outcome: Outcome, usage: Usage, notices: &mut Notices) {
    let recorded = notices
        .flush(&*shared.sink)
        .and_then(|()| shared.sink.event(Event::RunEnded { run, outcome, usage }));
    if recorded.is_err() {
        shared.close(false);
    }
    if let Some(state) = shared.state().runs.get_mut(&run) {
        state.end = Some((outcome, usage));
        // Not kept for a run that nobody waits for.
        state.pidfd = None;
        state.process = None;
        if let Some(notice) = state.end_notice.take() {
            // A full counter has been raised.
            rustix::io::write(&notice, &1u64.to_ne_bytes()).ok();
        }
    }
    shared.changed.notify_all();
}

/// A wait status in words; see wait(2).
fn outcome(status: i32, stop: Option<Stop>) -> Outcome {
    if let Some(stop) = stop {
        return Outcome::Stopped(stop);
    }
    match status & 0x7f {
        0 => Outcome::Exited(u8::try_from((status >> 8) & 0xff).unwrap_or(u8::MAX)),
        signal => Outcome::Signaled(signal),
    }
}

/// Tells of runs that are to be stopped, before anything is done about it.
fn tell_stops(shared: &Shared) -> Result<(), SinkClosed> {
    let told: Vec<Spent> = {
        let mut state = shared.state();
        let alive = state.runs.iter_mut().filter(|(_, run)| run.end.is_none());
        alive
            .filter_map(|(id, run)| {
                let Untold::Stop(spender) = std::mem::take(&mut run.untold) else { return None };
                // A budget that nobody else was looked for is spent by the run's program.
                let program = || run.process.map(processes::identify);
                let Caller { pid, program } = spender.or_else(program).unwrap_or_default();
                Some(Spent { run: Some(*id), stop: run.stop?, pid, program })
            })
            .collect()
    };
    told.into_iter().try_for_each(|spent| shared.sink.event(Event::BudgetSpent(spent)))
}

/// Stops runs that are past their deadline, and ends the session of those that would not die.
fn deadlines(shared: &Shared) -> Result<(), SinkClosed> {
    let now = Instant::now();
    let mut stubborn = false;
    let mut stopped = Vec::new();
    for run in shared.state().runs.values_mut() {
        if let (Some(deadline), Some(wall)) = (run.deadline, run.wall)
            && now >= deadline
        {
            let used = millis(run.started.elapsed());
            run.stop_for(Stop { limit: Limit::Wall, used, allowed: wall.count() }, None);
        }
    }
    tell_stops(shared)?;
    {
        let mut state = shared.state();
        // What stands below a keeper that is not known yet would be taken for another run's.
        let beginning = state.runs.values().any(|r| r.kept && !r.keeper_known && r.end.is_none());
        for (id, run) in state.runs.iter_mut().filter(|(_, run)| run.end.is_none()) {
            if run.stop.is_some() && run.stop_sent.is_none() && (run.kept || !beginning) {
                run.stop_sent = Some(now);
                stopped.push((*id, run.kept));
                if let Some(pidfd) = &run.pidfd {
                    // The whole group in one call: what forks can't be faster than that. One that has
                    // just ended by itself is as good.
                    sys::signal_group(pidfd.as_fd(), libc::SIGKILL).ok();
                }
            }
            stubborn |= run.stop_sent.is_some_and(|sent| now >= sent + GRACE);
        }
    }
    for (id, kept) in stopped {
        stubborn |= !end_tree(shared, id, kept);
        // That took its time; the end of the program may be waiting to be heard.
        if let Some(run) = shared.state().runs.get_mut(&id) {
            run.stop_sent = Some(Instant::now());
        }
    }
    if stubborn {
        shared.close(true);
    }
    Ok(())
}

/// Ends what a run that is stopped has started; `false` when something is left of it.
fn end_tree(shared: &Shared, run: u64, kept: bool) -> bool {
    let roots = {
        let state = shared.state();
        // Alone in its session, it is ended by the owner, who ends that.
        if !kept && state.runs.len() == 1 && state.keepers.is_empty() {
            return true;
        }
        Roots::of(&shared.stage, &state)
    };
    let chosen = |member: &trees::Member| member.kept == kept.then_some(run);
    roots.is_none_or(|roots| trees::kill(&roots, chosen, TREE))
}

/// The box is gone: runs that have no end yet get one.
fn finish(shared: &Shared, notices: &mut Notices) {
    let open: Vec<(u64, Outcome, Usage)> = {
        let state = shared.state();
        let how = match (state.reacted, state.intended) {
            (Some(violation), _) => Outcome::Reacted(violation),
            (None, true) => Outcome::Ended,
            (None, false) => Outcome::CutOff,
        };
        state
            .runs
            .iter()
            .filter(|(_, run)| run.end.is_none())
            .map(|(id, run)| {
                let cpu = Duration::from_millis(run.cpu_ms);
                let usage = Usage { wall: run.started.elapsed(), cpu, max_rss: 0 };
                (*id, run.stop.map_or(how, Outcome::Stopped), usage)
            })
            .collect()
    };
    for (run, outcome, usage) in open {
        end_run(shared, run, outcome, usage, notices);
    }
    if notices.flush(&*shared.sink).and_then(|()| notices.execs.finish(&*shared.sink)).is_err() {
        shared.close(false);
    }
    shared.changed.notify_all();
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Condvar, Mutex};

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::pipe::pipe;

    use super::*;
    use crate::event::NoSink;
    use crate::session::State;

    #[test]
    fn what_hung_up_is_not_waited_for_again() {
        let event = |value| eventfd(value, EventfdFlags::NONBLOCK).unwrap();
        let shared = Shared {
            control: event(0),
            wake: event(0),
            stage: event(0),
            sink: Arc::new(NoSink),
            started: Instant::now(),
            changed: Condvar::new(),
            state: Mutex::new(State::default()),
        };
        let heard = Arc::new(AtomicUsize::new(0));
        let (as_listener, listener_writer) = pipe().unwrap();
        let (fd, writer) = pipe().unwrap();
        let counter = Arc::clone(&heard);
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let mut also = vec![Watched { fd, heard: Box::new(count) }];
        // The end of a pipe hangs up as a listener does: for ever.
        let mut listener = Some(as_listener);
        rustix::io::write(&listener_writer, b"x").unwrap();
        assert!(wait(&shared, &mut listener, None, &mut also, None).unwrap().listener);
        assert!(listener.is_some() && also.len() == 1, "those that may ask are kept");
        rustix::io::read(listener.as_ref().unwrap(), &mut [0u8; 1]).unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        assert!(!wait(&shared, &mut listener, None, &mut also, None).unwrap().listener);
        assert_eq!((heard.load(Ordering::Relaxed), also.len()), (1, 1));
        rustix::io::read(&also[0].fd, &mut [0u8; 1]).unwrap();
        drop((writer, listener_writer));
        assert!(!wait(&shared, &mut listener, None, &mut also, None).unwrap().listener);
        assert!(listener.is_none() && also.is_empty());
        assert_eq!(heard.load(Ordering::Relaxed), 1);
    }
}
