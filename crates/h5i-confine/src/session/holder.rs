//! Which process of a box holds a socket.

use std::collections::VecDeque;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::SessionHandle;
use crate::processes;

/// Descriptors that are looked at before the question is given up.
const MOST: usize = 16 << 10;
/// Processes that are asked first the next time.
const REMEMBERED: usize = 4;

/// A process that holds a socket, as the host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketHolder {
    /// Process id inside the box.
    pub pid: u32,
    /// The run that it belongs to, where that can be told.
    pub run: Option<u64>,
    /// Path of its executable, by the kernel's link; empty when it has just ended.
    pub program: Vec<u8>,
}

/// The processes that held sockets a moment ago. A program that opens one connection after another is
/// found at once; to look through all processes of a large box takes milliseconds.
#[derive(Debug, Default)]
pub struct KnownHolders(VecDeque<Known>);

#[derive(Debug)]
struct Known {
    pid: u32,
    /// As long as its process is not reaped, the number above is no other's.
    pidfd: OwnedFd,
    inside: u32,
    run: Option<u64>,
}

impl KnownHolders {
    /// Lets go of processes that have ended; a question does so as well.
    pub fn forget_ended(&mut self) {
        self.0.retain(Known::is_alive);
    }
}

impl SessionHandle {
    /// The process that holds the socket with this inode: of several the one that all others descend
    /// from, so the one that made it, unless it was handed on. `None` when it is gone, and in a box
    /// with very many open files.
    pub fn holder_of(&self, inode: u64, known: &mut KnownHolders) -> Option<SocketHolder> {
        let link = format!("socket:[{inode}]");
        let mut left = MOST;
        known.forget_ended();
        // A socket that is new is held by who made it: a process that was there before has not
        // inherited it.
        let again = known.0.iter().position(|one| holds(one.pid, &link, &mut left));
        let found = match again.and_then(|at| known.0.remove(at)) {
            Some(found) => found,
            None => self.look_for(&link, &mut left)?,
        };
        // What was read of a process that is reaped by now may have been another one's.
        if !found.is_alive() {
            return None;
        }
        let program = fs::read_link(format!("/proc/{}/exe", found.pid))
            .map(|path| path.into_os_string().into_vec())
            .unwrap_or_default();
        let run = found.run.or_else(|| self.only_unkept());
        let holder = SocketHolder { pid: found.inside, run, program };
        known.0.push_front(found);
        known.0.truncate(REMEMBERED);
        Some(holder)
    }

    fn look_for(&self, link: &str, left: &mut usize) -> Option<Known> {
        // Parents come before their children.
        let members = self.roots()?.members();
        let found = members.into_iter().find(|member| holds(member.pid, link, left))?;
        let pid = Pid::from_raw(i32::try_from(found.pid).ok()?)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let inside = processes::inside(found.pid)?;
        Some(Known { pid: found.pid, pidfd, inside, run: found.kept })
    }
}

impl Known {
    fn is_alive(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&now));
        ended.is_ok_and(|ready| ready == 0)
    }
}

fn holds(pid: u32, link: &str, left: &mut usize) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    for entry in entries.flatten() {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let to = fs::read_link(entry.path());
        if to.is_ok_and(|to| to.as_os_str().as_bytes() == link.as_bytes()) {
            return true;
        }
    }
    false
}
