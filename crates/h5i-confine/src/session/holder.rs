//! Which process of a box holds a socket.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::SessionHandle;
use crate::processes;

/// Descriptors that are looked at before the question is given up.
const MOST: usize = 16 << 10;
/// Processes that are asked first the next time.
const REMEMBERED: usize = 4;
/// Descriptors of each that are remembered, with the sockets that they were.
const PLACES: usize = 256;
/// Of those that are thought to be free so many are looked at before all that the process has: to
/// list them takes the kernel far longer.
const GUESSES: usize = 8;
/// Descriptors after the one that was looked for that are looked at, too: who opens many sockets at
/// once is asked for each of them.
const FURTHER: usize = 64;

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
    places: Places,
}

impl KnownHolders {
    /// Lets go of processes that have ended; a question does so as well.
    pub fn forget_ended(&mut self) {
        self.0.retain(Known::is_alive);
    }

    /// What this socket was for is over. Who is told so finds the next one sooner.
    pub fn is_over(&mut self, inode: u64) {
        let mut places = self.0.iter_mut().flat_map(|known| known.places.0.values_mut());
        if let Some(place) = places.find(|place| **place == Some(inode)) {
            *place = None;
        }
    }

    /// Looks where the processes that are known are likely to hold it, and then at all they hold.
    fn take(&mut self, inode: u64, left: &mut usize) -> Option<Known> {
        let mut all = self.0.iter_mut();
        let guessed = all.position(|known| known.places.guess(known.pid, inode, left));
        let mut all = self.0.iter_mut();
        let found =
            guessed.or_else(|| all.position(|known| known.places.search(known.pid, inode, left)));
        self.0.remove(found?)
    }
}

/// Descriptors of a process, and the socket that each was, as long as that is not known to be gone:
/// a new one is likely to come to the lowest that is free.
#[derive(Debug, Default)]
struct Places(BTreeMap<u32, Option<u64>>);

impl Places {
    /// Whether the process has the socket where it was seen before, at one that is thought to be
    /// free, or at the one after all.
    fn guess(&mut self, pid: u32, inode: u64, left: &mut usize) -> bool {
        let seen = self.0.iter().filter(|(_, socket)| **socket == Some(inode));
        let free = self.0.iter().filter(|(_, socket)| socket.is_none()).take(GUESSES);
        let next = self.0.keys().next_back().and_then(|last| last.checked_add(1));
        let guesses: Vec<u32> = seen.chain(free).map(|(place, _)| *place).chain(next).collect();
        guesses.into_iter().any(|place| {
            *left = left.saturating_sub(1);
            let found = socket_at(format!("/proc/{pid}/fd/{place}"));
            if let Some(found) = found {
                self.is_at(place, found);
            }
            found == Some(inode)
        })
    }

    /// Whether the process has the socket anywhere.
    fn search(&mut self, pid: u32, inode: u64, left: &mut usize) -> bool {
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let mut further = None;
        for entry in entries.flatten() {
            if *left == 0 || further == Some(0) {
                break;
            }
            *left -= 1;
            further = further.map(|further: usize| further - 1);
            let Some(found) = socket_at(entry.path()) else { continue };
            if let Some(place) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                self.is_at(place, found);
            }
            if found == inode {
                further = Some(FURTHER);
            }
        }
        further.is_some()
    }

    fn is_at(&mut self, place: u32, inode: u64) {
        if self.0.len() == PLACES && !self.0.contains_key(&place) {
            self.0.pop_last();
        }
        self.0.insert(place, Some(inode));
    }
}

/// The socket that one of the links to a process's descriptors stands for.
fn socket_at(path: impl AsRef<Path>) -> Option<u64> {
    let link = fs::read_link(path).ok()?;
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

impl SessionHandle {
    /// The process that holds the socket with this inode: of several the one that all others descend
    /// from, so the one that made it, unless it was handed on. `None` when it is gone, and in a box
    /// with very many open files.
    pub fn holder_of(&self, inode: u64, known: &mut KnownHolders) -> Option<SocketHolder> {
        let mut left = MOST;
        known.forget_ended();
        // A socket that is new is held by who made it: a process that was there before has not
        // inherited it.
        let found = match known.take(inode, &mut left) {
            Some(found) => found,
            None => self.look_for(inode, &mut left)?,
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

    fn look_for(&self, inode: u64, left: &mut usize) -> Option<Known> {
        // Parents come before their children.
        let mut members = self.roots()?.members().into_iter();
        let (found, places) = members.find_map(|member| {
            let mut places = Places::default();
            places.search(member.pid, inode, left).then_some((member, places))
        })?;
        let pid = Pid::from_raw(i32::try_from(found.pid).ok()?)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let inside = processes::inside(found.pid)?;
        Some(Known { pid: found.pid, pidfd, inside, run: found.kept, places })
    }
}

impl Known {
    fn is_alive(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&now));
        ended.is_ok_and(|ready| ready == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn own() -> KnownHolders {
        let pid = std::process::id();
        let of = Pid::from_raw(pid.cast_signed()).unwrap();
        let pidfd = pidfd_open(of, PidfdFlags::empty()).unwrap();
        let places = Places::default();
        KnownHolders(VecDeque::from([Known { pid, pidfd, inside: 1, run: None, places }]))
    }

    /// A socket, and its inode.
    fn socket() -> (UdpSocket, u64) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        let inode = fs::metadata(path).unwrap().ino();
        (socket, inode)
    }

    /// Asks who holds a socket; yields how many descriptors were looked at, if it was found.
    fn asked(known: &mut KnownHolders, inode: u64) -> Option<usize> {
        let mut left = MOST;
        let found = known.take(inode, &mut left)?;
        known.0.push_front(found);
        Some(MOST - left)
    }

    #[test]
    fn the_next_socket_is_looked_for_where_one_has_gone() {
        let mut known = own();
        let held: Vec<_> = (0..32).map(|_| socket()).collect();
        let looked_at: Vec<usize> =
            held.iter().map(|(_, inode)| asked(&mut known, *inode).unwrap()).collect();
        // The first is searched for, and the others were seen then.
        assert!(looked_at.iter().skip(1).all(|looked_at| *looked_at == 1), "{looked_at:?}");
        let (gone, was) = socket();
        assert!(asked(&mut known, was).is_some());
        let place = gone.as_raw_fd();
        drop(gone);
        known.is_over(was);
        assert_eq!(asked(&mut known, was), None, "it is gone");
        // Other tests of this process open descriptors as well.
        let (next, inode) = socket();
        let looked_at = asked(&mut known, inode).unwrap();
        if next.as_raw_fd() == place {
            assert!(looked_at <= GUESSES, "{looked_at}");
        }
        drop(held);
    }

    #[test]
    fn a_guess_is_only_where_to_look() {
        let mut known = own();
        let (first, inode) = socket();
        assert!(asked(&mut known, inode).is_some());
        // Said to be over, though it is there; and another one, which is not where one is guessed.
        known.is_over(inode);
        let (other, another) = socket();
        assert!(asked(&mut known, another).is_some());
        assert!(asked(&mut known, inode).is_some());
        assert_eq!(asked(&mut known, 1), None, "nobody's");
        drop((first, other));
    }

    #[test]
    fn no_more_places_are_remembered_than_may_be() {
        let mut known = own();
        let places = &mut known.0.front_mut().unwrap().places;
        (0..1000).for_each(|place| places.is_at(place, u64::from(place)));
        assert_eq!(places.0.len(), PLACES);
    }
}
