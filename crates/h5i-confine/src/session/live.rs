//! What a live session tells of itself, and what can be done to all of it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;
use std::time::Duration;

use rustix::net::AddressFamily;
use rustix::process::Signal;

use super::SessionHandle;
use crate::control;
use crate::processes;
use crate::trees::{Member, Roots, signal_all};
use crate::wire::{MSG_SOCKET, Message};

/// A process of a box, as the host sees it. Its name and arguments are its own word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveProcess {
    /// Process id inside the box.
    pub pid: u32,
    /// Process id of its parent inside the box; 1 is the box's init.
    pub parent: u32,
    /// The run that it belongs to, where a keeper tells.
    pub run: Option<u64>,
    /// Its arguments; empty when it has given them up.
    pub argv: Vec<Vec<u8>>,
    /// Its name, at most 15 bytes.
    pub name: Vec<u8>,
    /// `R`, `S`, `D`, `T`, `Z`: proc_pid_stat(5).
    pub state: char,
    /// Processor time.
    pub cpu: Duration,
    /// Resident memory, bytes; pages that processes share count for each.
    pub rss: u64,
}

/// What a box takes, as it was measured last: at most two seconds ago for memory; for disk, as long
/// ago as it can't have taken much more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InUse {
    /// Memory of all processes and memory files, bytes; `None` without `limits.memory`.
    pub memory: Option<u64>,
    /// Disk and memory file systems, bytes; `None` without `limits.disk`, and before it was counted
    /// once.
    pub disk: Option<u64>,
}

impl SessionHandle {
    /// What the box takes of the budgets that the supervisor measures.
    #[must_use]
    pub fn in_use(&self) -> InUse {
        let taken = self.shared.state().taken;
        InUse { memory: taken.memory, disk: taken.disk }
    }

    /// The processes of the box but its init and keepers, in the order of their ids. One that comes or
    /// goes meanwhile may be missing.
    pub fn processes(&self) -> Vec<LiveProcess> {
        let Some(roots) = self.roots() else { return Vec::new() };
        let members = roots.members();
        let mut found: Vec<LiveProcess> = members.iter().filter_map(|m| look(*m)).collect();
        found.sort_by_key(|process| process.pid);
        found
    }

    /// The run that a process of the box belongs to, by its id inside: the one whose keeper it stands
    /// below, or the one that has none, where there is one only.
    #[must_use]
    pub fn run_of(&self, pid: u32) -> Option<u64> {
        let roots = self.roots()?;
        let members = roots.members();
        let found = members.into_iter().find(|m| processes::inside(m.pid) == Some(pid))?;
        found.kept.or_else(|| self.only_unkept())
    }

    /// The run that has no keeper, where there is one only.
    pub(super) fn only_unkept(&self) -> Option<u64> {
        let state = self.shared.state();
        let mut unkept = state.runs.iter().filter(|(_, run)| !run.kept && run.end.is_none());
        unkept.next().map(|(run, _)| *run).filter(|_| unkept.next().is_none())
    }

    /// Processor time of the box's processes, those that have ended included.
    pub fn processor_time(&self) -> Duration {
        processes::processor_time(&self.shared.stage).unwrap_or_default()
    }

    /// Stops every process of the box (`SIGSTOP`), until no other is found; yields how many. Deadlines
    /// go on, and a run that is started afterwards runs.
    pub fn freeze(&self) -> usize {
        self.roots().map_or(0, |roots| signal_all(&roots, Signal::STOP))
    }

    /// Continues every process of the box (`SIGCONT`), whoever stopped it; yields how many.
    pub fn thaw(&self) -> usize {
        self.roots().map_or(0, |roots| signal_all(&roots, Signal::CONT))
    }

    /// Asks every process of the box to end (`SIGTERM`); yields how many.
    pub fn terminate(&self) -> usize {
        self.roots().map_or(0, |roots| signal_all(&roots, Signal::TERM))
    }

    pub(super) fn roots(&self) -> Option<Roots> {
        let state = self.shared.state();
        if state.over {
            return None;
        }
        Roots::of(&self.shared.stage, &state)
    }

    /// A TCP socket of the box's network, which does not block: `AF_INET` or `AF_INET6`.
    ///
    /// # Errors
    /// What `socket(2)` said in the box; `NotConnected` when the session is over.
    pub fn tcp_socket(&self, family: AddressFamily) -> io::Result<OwnedFd> {
        let over = || io::Error::from(io::ErrorKind::NotConnected);
        let mut state = self.shared.state();
        if state.over {
            return Err(over());
        }
        state.last_socket += 1;
        let asked = state.last_socket;
        drop(state);
        let message = Message {
            kind: MSG_SOCKET,
            code: u32::from(family.as_raw()),
            run: asked,
            ..Message::default()
        };
        control::send(&self.shared.control, &message, &[])?;
        let mut state = self.shared.state();
        loop {
            if let Some(made) = state.sockets.remove(&asked) {
                return made.map_err(io::Error::from_raw_os_error);
            }
            if state.over {
                return Err(over());
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn look(member: Member) -> Option<LiveProcess> {
    let Member { pid, parent, kept } = member;
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(&stat[close + 1..]).into_owned();
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let argv = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut argv: Vec<Vec<u8>> = argv.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    // Each argument ends with a NUL.
    argv.pop();
    Some(LiveProcess {
        pid: processes::inside(pid)?,
        parent: processes::inside(parent).unwrap_or(1),
        run: kept,
        argv,
        name: stat.get(open + 1..close)?.to_vec(),
        state: fields.first()?.chars().next()?,
        cpu: Duration::from_millis((number(11) + number(12)).saturating_mul(1000) / ticks),
        rss: number(21).saturating_mul(rustix::param::page_size() as u64),
    })
}
