//! The processes of a box, seen from outside: whose they are, and how they are reached.
//!
//! A run with a keeper is what stands below that. A run without one is what stands below no keeper.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::processes::{children, told};
use crate::session::State;

/// What each process that is there at first may take more: all of them end on the same few processors.
const EACH: Duration = Duration::from_millis(2);
/// The most that is granted so, whatever a box has started.
const CROWD: Duration = Duration::from_secs(4);
/// How long those may take that are dying and can't refuse: one that has much memory to give back, or
/// a file to write back to a slow disk, is on its way for a while.
const DYING: Duration = Duration::from_secs(5);
/// How often they are looked at.
const AGAIN: Duration = Duration::from_millis(100);
/// `PF_EXITING` of the kernel's `sched.h`, in the flags of proc_pid_stat(5).
const EXITING: u32 = 0x4;
/// Processes that are waited for at once.
const TOGETHER: usize = 256;

/// A process of the box, by its numbers on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The run whose keeper it stands below.
    pub(crate) kept: Option<u64>,
}

/// Where a box's processes are found.
#[derive(Debug)]
pub(crate) struct Roots {
    /// The box's init.
    init: u32,
    /// Runs and their keepers.
    keepers: Vec<(u64, u32)>,
}

impl Roots {
    /// `None` when the box is gone.
    pub(crate) fn of(stage: &OwnedFd, state: &State) -> Option<Self> {
        let init = children(number_of(stage)?).into_iter().next()?;
        let number = |(run, fd): (&u64, &OwnedFd)| Some((*run, number_of(fd)?));
        Some(Self { init, keepers: state.keepers.iter().filter_map(number).collect() })
    }

    /// Every process but the init and the keepers.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.visit(|_| {})
    }

    /// Visits each of them before its children are looked up.
    fn visit(&self, mut meets: impl FnMut(Member)) -> Vec<Member> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut waiting = vec![(self.init, None)];
        while let Some((parent, kept)) = waiting.pop() {
            for pid in children(parent) {
                if !seen.insert(pid) {
                    continue;
                }
                match self.keepers.iter().find(|(_, keeper)| *keeper == pid) {
                    Some((run, _)) => waiting.push((pid, Some(*run))),
                    None => {
                        let member = Member { pid, parent, kept };
                        meets(member);
                        found.push(member);
                        waiting.push((pid, kept));
                    }
                }
            }
        }
        found
    }
}

/// The number of a pidfd's process on the host; `None` when it was reaped.
fn number_of(pidfd: &OwnedFd) -> Option<u32> {
    let info = told(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// State and parent of a process; see proc_pid_stat(5).
fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = told(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Takes hold of a member, if it still is one: its number may be another process's by now.
fn hold(member: Member) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(member.pid).ok()?)?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let (state, parent) = state_and_parent(member.pid)?;
    (parent == member.parent && !matches!(state, 'Z' | 'X')).then_some(fd)
}

/// Whether a process has been killed and is on its way out.
fn is_dying(pid: u32) -> bool {
    let read = |file| told(format!("/proc/{pid}/{file}")).ok();
    let exiting = || {
        let stat = read("stat")?;
        let flags = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(6)?;
        Some(flags.parse::<u32>().ok()? & EXITING != 0)
    };
    let killed = || {
        let status = read("status")?;
        let sets = status.lines().filter_map(|line| {
            let set = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
            u64::from_str_radix(set.trim(), 16).ok()
        });
        Some(sets.fold(0, |all, set| all | set) & 1 << (libc::SIGKILL - 1) != 0)
    };
    // One that is gone is as good. Between a signal that is taken and the flag lies a moment.
    let seen = || killed() != Some(false) || exiting() != Some(false);
    seen() || {
        std::thread::sleep(AGAIN / 2);
        seen()
    }
}

/// Kills what `chosen` says of a box, until nothing of it is left; `false` when something still was
/// at the end of `patience`, and of what so many processes take a busy kernel. What is started
/// meanwhile gives itself no more time; what is killed and dying is waited for.
///
/// All is stopped first: what starts others while it is killed would have the numbers of the dead for
/// new ones, as fast as they are given back.
pub(crate) fn kill(roots: &Roots, chosen: impl Fn(&Member) -> bool, patience: Duration) -> bool {
    let crowd = roots.members().iter().filter(|member| chosen(member)).count();
    let mut end = Instant::now() + patience + crowd_time(crowd);
    let last = end + DYING;
    loop {
        stop_all(roots, &chosen, end);
        let mut held: Vec<OwnedFd> = Vec::new();
        let mut met = false;
        for member in roots.members().into_iter().filter(|member| chosen(member)) {
            if let Some(fd) = hold(member) {
                // One that has just ended is as good.
                pidfd_send_signal(&fd, Signal::KILL).ok();
                held.push(fd);
                met = true;
            }
            if held.len() == TOGETHER {
                wait_for(&std::mem::take(&mut held), end);
            }
        }
        if !met {
            return true;
        }
        wait_for(&held, end);
        let now = Instant::now();
        if now >= end {
            // Who was let wait itself may find that they have ended meanwhile.
            let left = |member: &Member| chosen(member) && hold(*member).is_some();
            let left: Vec<Member> = roots.members().into_iter().filter(left).collect();
            if left.is_empty() {
                return true;
            }
            if now >= last || !left.iter().all(|member| is_dying(member.pid)) {
                return false;
            }
            end = now + AGAIN;
        }
    }
}

fn crowd_time(processes: usize) -> Duration {
    EACH.saturating_mul(u32::try_from(processes).unwrap_or(u32::MAX)).min(CROWD)
}

/// Stops what is chosen, until a round finds nobody who was not met before, or the moment has come.
/// A process is stopped before its children are looked up, so a second round finds only what was
/// being forked then.
fn stop_all(roots: &Roots, chosen: impl Fn(&Member) -> bool, end: Instant) {
    let mut stopped = BTreeSet::new();
    loop {
        let before = stopped.len();
        roots.visit(|member| {
            if chosen(&member)
                && !stopped.contains(&member.pid)
                && let Some(fd) = hold(member)
            {
                pidfd_send_signal(&fd, Signal::STOP).ok();
                stopped.insert(member.pid);
            }
        });
        if stopped.len() == before || Instant::now() >= end {
            return;
        }
    }
}

/// Waits until all of them have ended, or the moment has come.
fn wait_for(held: &[OwnedFd], end: Instant) {
    for fd in held {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // An interruption is met by the next round.
        poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&left)).ok();
    }
}

/// Sends every process of the box a signal, each before its children are looked up, until a round
/// finds nobody new; yields how many got it.
pub(crate) fn signal_all(roots: &Roots, signal: Signal) -> usize {
    /// What forks all the time is stopped by the first round that meets it; other signals may never
    /// come to an end.
    const ROUNDS: usize = 100;
    let mut reached = BTreeSet::new();
    for _ in 0..ROUNDS {
        let before = reached.len();
        roots.visit(|member| {
            if !reached.contains(&member.pid)
                && let Some(fd) = hold(member)
            {
                pidfd_send_signal(&fd, signal).ok();
                reached.insert(member.pid);
            }
        });
        if reached.len() == before {
            break;
        }
    }
    reached.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process to be killed")]
    fn a_killed_process_is_dying_and_another_one_is_not() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        assert!(!is_dying(child.id()) && !is_dying(std::process::id()));
        child.kill().unwrap();
        // Not reaped yet: killed, on its way out, or a zombie, which has its flags for good.
        assert!((0..1000).all(|_| is_dying(child.id())));
        child.wait().unwrap();
        assert!(is_dying(child.id()), "gone");
    }

    #[test]
    fn a_crowd_has_more_time_and_no_crowd_has_time_without_end() {
        assert_eq!(crowd_time(5), Duration::from_millis(10));
        assert_eq!(crowd_time(1024), Duration::from_millis(2048));
        assert_eq!(crowd_time(usize::MAX), CROWD);
    }
}
