//! Hears of the ends of processes that are not this process's children, by their pidfds.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit, pidfd_open};

use crate::event::ProcessEnd;
use crate::sys;

/// Ends that are taken at once.
const TOGETHER: usize = 64;

/// The pidfds that are waited for.
#[derive(Debug)]
pub(super) struct Ends {
    /// `None` when it could not be made; then no process is watched, which its record says.
    epoll: Option<OwnedFd>,
    /// What a pidfd is waited for: the reap, or, before Linux 6.13, the end.
    wanted: EventFlags,
    room: usize,
}

impl Ends {
    pub(super) fn new() -> Self {
        // A pidfd that says who it is says as well when it was reaped.
        let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).ok();
        let tells = own.is_some_and(|own| sys::tells_of_reaps(own.as_fd()));
        Self {
            epoll: epoll::create(CreateFlags::CLOEXEC).ok(),
            // Hanging up is heard without being asked for.
            wanted: if tells { EventFlags::empty() } else { EventFlags::IN },
            room: room(),
        }
    }

    /// Becomes readable when one has ended.
    pub(super) fn descriptor(&self) -> Option<&OwnedFd> {
        self.epoll.as_ref()
    }

    /// Waits for a process from now on, if there is room.
    pub(super) fn watch(&mut self, pid: u32, pidfd: OwnedFd) -> Option<OwnedFd> {
        let epoll = self.epoll.as_ref().filter(|_| self.room > 0)?;
        epoll::add(epoll, &pidfd, EventData::new_u64(pid.into()), self.wanted).ok()?;
        self.room -= 1;
        Some(pidfd)
    }

    /// Those that have ended.
    pub(super) fn heard(&self) -> Vec<u32> {
        let mut all = Vec::new();
        let Some(epoll) = &self.epoll else { return all };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; TOGETHER];
        let got = rustix::io::retry_on_intr(|| epoll::wait(epoll, &mut events[..], Some(&now)));
        for event in events.iter().take(got.unwrap_or(0)) {
            let data = event.data;
            all.extend(u32::try_from(data.u64()));
        }
        all
    }

    /// Waits for a process no more; yields how it ended, where the kernel tells.
    pub(super) fn forget(&mut self, pid: u32, pidfd: &OwnedFd) -> Option<ProcessEnd> {
        if let Some(epoll) = &self.epoll {
            epoll::delete(epoll, pidfd).ok();
        }
        self.room += 1;
        let status = sys::exit_status(pidfd.as_fd()).or_else(|| super::stat::zombie(pid))?;
        Some(match status & 0x7f {
            0 => ProcessEnd::Exited(u8::try_from((status >> 8) & 0xff).unwrap_or(u8::MAX)),
            signal => ProcessEnd::Signaled(signal),
        })
    }
}

/// The pidfd of a process. A thread other than its first has none.
pub(super) fn open(pid: u32) -> Option<OwnedFd> {
    let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(raw, PidfdFlags::empty()).ok()
}

/// The process of a thread. `None` when it is gone.
pub(super) fn process_of(thread: u32) -> Option<u32> {
    if open(thread).is_some() {
        return Some(thread);
    }
    super::stat::Status::of(thread).map(|status| status.process)
}

/// A quarter of the descriptors that this process may have: it is a harness's, with other uses for
/// them.
fn room() -> usize {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((most / 4).min(4096)).unwrap_or(0)
}
