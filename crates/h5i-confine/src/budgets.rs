//! The budgets that the session's thread keeps: when it looks, and what it does when one is spent.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use h5i_policy::Limits;

use crate::census;
use crate::cgroup::Cgroup;
use crate::disk_meter::{DiskMeter, SOONEST};
use crate::error::StartError;
use crate::event::{Event, SinkClosed, Spent};
use crate::free_floor::FreeFloor;
use crate::memory_meter::{MemoryFiles, MemoryMeter};
use crate::outcome::{Limit, Stop};
use crate::plan::RunDefaults;
use crate::processes::{self, Caller};
use crate::session::{Shared, State};
use crate::trees::{self, Member, Roots};

/// How often processor time is accounted while a budget for it exists.
const ACCOUNTING: Duration = Duration::from_millis(250);
/// How long what a run that has ended left may take to die, before the whole session is ended.
const TREE: Duration = Duration::from_millis(800);

/// How long a run may take until its keeper is known.
const BEGINNING: Duration = Duration::from_secs(2);

/// How long what still runs has to end before the session is looked at again.
const ENDING: Duration = Duration::from_millis(250);

/// When the session is over, and how long that is after its start.
#[derive(Debug)]
struct SessionClock {
    started: Instant,
    allowed: Duration,
    next: Instant,
    told: bool,
}

/// What the session's thread counts.
#[derive(Debug)]
pub(crate) struct Budgets {
    pub(crate) limits: Limits,
    next_cpu: Instant,
    session: Option<SessionClock>,
    memory: Option<MemoryMeter>,
    disk: Option<DiskMeter>,
    floor: Option<FreeFloor>,
}

impl Budgets {
    /// For a box with this memory, in its cgroup if it has one.
    pub(crate) fn new(
        runs: &RunDefaults,
        files: MemoryFiles,
        cgroup: Option<Cgroup>,
    ) -> Result<Self, StartError> {
        let failed =
            |source| StartError::Prepare { what: "measure what a box takes on disk", source };
        let limits = runs.limits.clone();
        let disk = match limits.disk {
            Some(allowed) => {
                let again = files.scratch.iter().map(OwnedFd::try_clone).collect::<Result<_, _>>();
                let again = again.map_err(failed)?;
                let meter = DiskMeter::new(allowed.count(), runs.counted.clone(), again);
                Some(meter.map_err(failed)?)
            }
            // By it is seen whose the lost space of a file system is.
            None if limits.keep_free.is_some() => {
                let meter = DiskMeter::new(u64::MAX, runs.counted.clone(), Vec::new());
                Some(meter.map_err(failed)?)
            }
            None => None,
        };
        let floor = limits.keep_free.map(|kept| FreeFloor::new(kept.count(), &runs.counted));
        let floor = floor.transpose().map_err(failed)?;
        let session = limits.session.and_then(|allowed| SessionClock::new(allowed.duration()));
        let memory = limits.memory.map(|all| MemoryMeter::new(all.count(), files, cgroup));
        let next_cpu = Instant::now() + ACCOUNTING;
        Ok(Self { limits, next_cpu, session, memory, disk, floor })
    }

    /// For a box that was not made.
    pub(crate) fn none() -> Self {
        let (session, memory, disk, floor) = (None, None, None, None);
        Self { limits: Limits::default(), next_cpu: Instant::now(), session, memory, disk, floor }
    }

    /// When to look again.
    pub(crate) fn next(&self, state: &State) -> Option<Instant> {
        let alive = state.runs.values().any(|run| run.end.is_none());
        let cpu = (self.limits.cpu.is_some() && alive).then_some(self.next_cpu);
        let memory = self.memory.as_ref().map(|meter| meter.next);
        let disk = self.disk.as_ref().map(|meter| meter.next);
        let floor = self.floor.as_ref().map(|floor| floor.next);
        let session = self.session.as_ref().map(|clock| clock.next);
        [cpu, session, memory, disk, floor].into_iter().flatten().min()
    }

    /// Looks at what is due, and stops what has spent a budget.
    pub(crate) fn look(&mut self, shared: &Shared) -> Result<(), SinkClosed> {
        let now = Instant::now();
        if self.limits.cpu.is_some() && now >= self.next_cpu {
            account(shared, &self.limits);
            self.next_cpu = Instant::now() + ACCOUNTING;
        }
        if let Some(clock) = self.session.as_mut().filter(|clock| now >= clock.next) {
            clock.end(shared)?;
        }
        let memory = self.memory.as_ref().is_some_and(|meter| now >= meter.next);
        let disk = self.disk.as_ref().is_some_and(|meter| now >= meter.next);
        let floor = self.floor.as_ref().is_some_and(|floor| now >= floor.next);
        if (memory || disk || floor) && a_run_begins(shared) {
            let soon = now + SOONEST;
            self.memory.iter_mut().for_each(|meter| meter.next = meter.next.max(soon));
            self.disk.iter_mut().for_each(|meter| meter.next = meter.next.max(soon));
            self.floor.iter_mut().for_each(|floor| floor.next = floor.next.max(soon));
            return Ok(());
        }
        if memory {
            self.look_at_memory(shared)?;
        }
        if disk {
            self.look_at_disk(shared)?;
        }
        if floor {
            self.look_at_free_space(shared)?;
        }
        Ok(())
    }

    fn look_at_memory(&mut self, shared: &Shared) -> Result<(), SinkClosed> {
        let Some(meter) = &mut self.memory else { return Ok(()) };
        let roots = Roots::of(&shared.stage, &shared.state());
        let members = roots.as_ref().map(Roots::members).unwrap_or_default();
        let taken = meter.look(&members);
        let killed = meter.kernel_killed();
        shared.state().taken.memory = Some(taken.used);
        let allowed = meter.allowed;
        let Some(roots) = roots.filter(|_| killed || taken.used > allowed) else { return Ok(()) };
        let stop = Stop { limit: Limit::Memory, used: taken.used.max(allowed), allowed };
        let shares = taken.each.iter().map(|each| (each.member, each.all())).collect();
        stop_largest(shared, &roots, stop, shares)
    }

    fn look_at_disk(&mut self, shared: &Shared) -> Result<(), SinkClosed> {
        let Some(meter) = &mut self.disk else { return Ok(()) };
        let roots = Roots::of(&shared.stage, &shared.state());
        let members = || roots.as_ref().map(Roots::members).unwrap_or_default();
        let used = meter.look(members);
        shared.state().taken.disk = meter.known();
        let (Some(used), Some(roots)) = (used, &roots) else { return Ok(()) };
        let stop = Stop { limit: Limit::Disk, used, allowed: meter.allowed };
        meter.is_dealt_with();
        let share = |member: Member| (member, census::written(member.pid));
        stop_largest(shared, roots, stop, roots.members().into_iter().map(share).collect())
    }

    fn look_at_free_space(&mut self, shared: &Shared) -> Result<(), SinkClosed> {
        let Some((stop, grown)) = self.short_of_space(shared) else { return Ok(()) };
        let Some(roots) = Roots::of(&shared.stage, &shared.state()) else { return Ok(()) };
        let share = |member: Member| (member, census::written(member.pid));
        let shares: Vec<_> = roots.members().into_iter().map(share).collect();
        // What is taken without being written (`fallocate(2)`) is in no process's account: then it
        // is not known whose it is, and all are stopped.
        let written = shares.iter().map(|(_, share)| *share).fold(0, u64::saturating_add);
        let told = grown.is_none_or(|grown| written >= grown / 2);
        stop_largest(shared, &roots, stop, if told { shares } else { Vec::new() })
    }

    /// The stop for the host's free space, where this box has a part in what is gone, and what the
    /// box has added, where that is known.
    fn short_of_space(&mut self, shared: &Shared) -> Option<(Stop, Option<u64>)> {
        let short = self.floor.as_mut()?.look()?;
        let members = || {
            let roots = Roots::of(&shared.stage, &shared.state());
            roots.as_ref().map(Roots::members).unwrap_or_default()
        };
        let grown = self.disk.as_mut().and_then(|meter| meter.grown(members));
        let stop = Stop { limit: Limit::KeepFree, used: short.free, allowed: short.kept };
        grown.is_none_or(|grown| short.is_of(grown)).then_some((stop, grown))
    }

    /// The budget of the session that a run had spent when its program ended by this signal, or by
    /// itself: there may have been no time to look.
    pub(crate) fn spent_at_end(
        &mut self,
        shared: &Shared,
        lived: Duration,
        signal: i32,
    ) -> Option<Stop> {
        if let (Some(meter), libc::SIGKILL) = (&mut self.memory, signal)
            && meter.kernel_killed()
        {
            let allowed = meter.allowed;
            return Some(Stop { limit: Limit::Memory, used: allowed, allowed });
        }
        let members = || {
            let roots = Roots::of(&shared.stage, &shared.state());
            roots.as_ref().map(Roots::members).unwrap_or_default()
        };
        let judged = self.disk.as_mut().and_then(|meter| {
            let used = meter.judge(lived, members)?;
            meter.is_dealt_with();
            Some(Stop { limit: Limit::Disk, used, allowed: meter.allowed })
        });
        if let Some(stop) = judged {
            shared.state().taken.disk = Some(stop.used);
            return Some(stop);
        }
        self.short_of_space(shared).map(|(stop, _)| stop)
    }
}

impl SessionClock {
    /// `None` for a time that this clock does not reach.
    fn new(allowed: Duration) -> Option<Self> {
        let started = Instant::now();
        Some(Self { started, allowed, next: started.checked_add(allowed)?, told: false })
    }

    /// The time is over: every run is stopped, and when none is left the session ends. What begins
    /// in between is stopped as well.
    fn end(&mut self, shared: &Shared) -> Result<(), SinkClosed> {
        let (used, allowed) = (millis(self.started.elapsed()), millis(self.allowed));
        let stop = Stop { limit: Limit::Session, used, allowed };
        let mut alive = false;
        for run in shared.state().runs.values_mut().filter(|run| run.end.is_none()) {
            run.stop_for(stop, None);
            alive = true;
        }
        if !alive && !self.told {
            // Nobody spent it: nothing runs.
            let Caller { pid, program } = Caller::default();
            shared.sink.event(Event::BudgetSpent(Spent { run: None, stop, pid, program }))?;
        }
        self.told = true;
        self.next = Instant::now() + ENDING;
        if !alive {
            shared.close(true);
        }
        Ok(())
    }
}

fn account(shared: &Shared, limits: &Limits) {
    let Some(allowed) = limits.cpu else { return };
    let Some(used) = processes::processor_time(&shared.stage) else { return };
    let used = millis(used);
    let mut state = shared.state();
    for run in state.runs.values_mut().filter(|run| run.end.is_none()) {
        run.cpu_ms = used;
    }
    if used <= allowed.count() {
        return;
    }
    let roots = Roots::of(&shared.stage, &state);
    let members = roots.as_ref().map(Roots::members).unwrap_or_default();
    let largest = members.iter().max_by_key(|member| processes::ticks_of(member.pid));
    let spender = largest.map(|member| processes::identify(member.pid));
    let stop = Stop { limit: Limit::Cpu, used, allowed: allowed.count() };
    for run in state.runs.values_mut() {
        run.stop_for(stop, spender.as_ref());
    }
}

/// Whether a run's keeper is not known yet: what stands below it would be taken for nobody's. One
/// that does not come to be known keeps nobody from looking.
fn a_run_begins(shared: &Shared) -> bool {
    let begins = |run: &crate::session::RunState| {
        run.end.is_none() && run.kept && !run.keeper_known && run.started.elapsed() < BEGINNING
    };
    shared.state().runs.values().any(begins)
}

/// Stops the run that has the largest share with what it started. What a run that has ended left is
/// ended as well; where nobody is known to have taken anything, every run is stopped.
fn stop_largest(
    shared: &Shared,
    roots: &Roots,
    stop: Stop,
    shares: Vec<(Member, u64)>,
) -> Result<(), SinkClosed> {
    let mut groups: BTreeMap<Option<u64>, u64> = BTreeMap::new();
    for (member, share) in &shares {
        let group = groups.entry(member.kept).or_default();
        *group = group.saturating_add(*share);
    }
    let group = groups.into_iter().filter(|(_, sum)| *sum > 0).max_by_key(|(_, sum)| *sum);
    let group = group.map(|(kept, _)| kept);
    let of_group = shares.iter().filter(|(member, _)| group.is_none_or(|kept| kept == member.kept));
    let largest = of_group.max_by_key(|(_, share)| *share).map(|(member, _)| member.pid);
    let spender = largest.map(processes::identify);
    {
        let mut state = shared.state();
        let alive = |run: &crate::session::RunState| run.end.is_none();
        // What is stopped gives back what it took; who comes next is looked at after that.
        if state.runs.values().any(|run| alive(run) && run.stop.is_some()) {
            return Ok(());
        }
        let mut met = false;
        for (id, run) in state.runs.iter_mut().filter(|(_, run)| alive(run)) {
            let own = group.is_none_or(|kept| kept == run.kept.then_some(*id));
            if own {
                run.stop_for(stop, spender.as_ref());
                met = true;
            }
        }
        if met {
            return Ok(());
        }
    }
    // Nothing runs that could be stopped, and nothing is left that could be ended.
    let Some(group) = group else { return Ok(()) };
    let Caller { pid, program } = spender.unwrap_or_default();
    shared.sink.event(Event::BudgetSpent(Spent { run: None, stop, pid, program }))?;
    if !trees::kill(roots, |member| member.kept == group, TREE) {
        shared.close(true);
    }
    Ok(())
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
