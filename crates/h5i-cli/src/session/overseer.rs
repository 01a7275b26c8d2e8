//! Asks the holder of a box's session about it, or to do something to all of it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use super::control_socket::{PATIENCE, be_patient, peer, reach};
use super::frame::{receive, send};
use super::message::{Live, Reply, Request};
use super::seat::{silent, unheard};
use crate::box_grants::GrantWish;
use crate::box_network::Wish;
use crate::failure::{Failure, Kind};
use crate::store::{BoxLock, LockError, StoredBox};

/// How long a session that was told to end may take.
const END: Duration = Duration::from_secs(10);

/// What there is to be asked.
#[derive(Debug)]
pub(crate) enum Presence {
    /// Nothing runs in the box.
    Idle,
    /// Somebody holds the box, and it is no session that could be asked.
    InUse,
    /// It is alive.
    Live(Box<Live>),
}

/// Whether a box is alive, and how.
///
/// # Errors
/// `busy` when the holder does not answer.
pub(crate) fn presence(stored: &StoredBox) -> Result<Presence, Failure> {
    match stored.lock() {
        Ok(_) => return Ok(Presence::Idle),
        Err(LockError::Busy) => {}
        Err(error) => return Err(error.into()),
    }
    match ask(stored, &Request::Live)? {
        Some((Reply::Live(live), _)) => Ok(Presence::Live(Box::new(live))),
        _ => Ok(Presence::InUse),
    }
}

/// How a session is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its programs are asked first, and have two seconds.
    Asked,
    /// At once.
    Killed,
}

/// Ends a box's session; `None` when it had none. Nothing runs in the box any more when it returns,
/// and its lock is the caller's.
///
/// # Errors
/// `busy` when somebody else uses the box, or the holder does not answer or end.
pub(crate) fn end(stored: &StoredBox, ending: Ending) -> Result<Option<BoxLock>, Failure> {
    match stored.lock() {
        Ok(_) => return Ok(None),
        Err(LockError::Busy) => {}
        Err(error) => return Err(error.into()),
    }
    let request = Request::End { grace: ending == Ending::Asked };
    if ask(stored, &request)?.is_none() {
        return Err(LockError::Busy.into());
    }
    let begun = Instant::now();
    loop {
        match stored.lock() {
            Ok(lock) => return Ok(Some(lock)),
            Err(LockError::Busy) if begun.elapsed() < END => {}
            Err(error) => return Err(error.into()),
        }
        // The kernel has no event for a lock that is free.
        thread::sleep(Duration::from_millis(5));
    }
}

/// Stops every process of a box or lets them go on; yields how many there were.
///
/// # Errors
/// `not-found` when nothing runs in the box, `busy` when the holder does not answer.
pub(crate) fn freeze(stored: &StoredBox, frozen: bool) -> Result<usize, Failure> {
    match ask(stored, &Request::Freeze { frozen })? {
        Some((Reply::Done { processes }, _)) => Ok(processes),
        _ => Err(not_alive(stored)),
    }
}

/// Changes what a box that is alive may reach; yields the digest of the policy that holds.
///
/// # Errors
/// `not-found` when nothing runs in the box, `busy` when the holder does not answer, and what it
/// refuses.
pub(crate) fn change_network(stored: &StoredBox, wish: Wish) -> Result<String, Failure> {
    match ask(stored, &Request::Network(wish))? {
        Some((Reply::Changed { policy }, _)) => Ok(policy),
        _ => Err(not_alive(stored)),
    }
}

/// Changes a grant of a box that is alive.
///
/// # Errors
/// As [`change_network`].
pub(crate) fn change_grant(stored: &StoredBox, wish: GrantWish) -> Result<(), Failure> {
    match ask(stored, &Request::Grant(wish))? {
        Some((Reply::Done { .. }, _)) => Ok(()),
        _ => Err(not_alive(stored)),
    }
}

pub(crate) fn not_alive(stored: &StoredBox) -> Failure {
    let name = stored.name();
    Failure::told(Kind::NotFound, format!("box `{name}` is not alive"))
        .hint(format!("h5i box start {name}"))
}

/// A conversation about one port of the box.
#[derive(Debug)]
pub(crate) struct Forwarded {
    stream: UnixStream,
}

impl Forwarded {
    /// Begins it; the holder records that it did.
    ///
    /// # Errors
    /// `not-found` when nothing runs in the box, `busy` when the holder does not answer.
    pub(crate) fn begin(stored: &StoredBox, port: u16, at: &str) -> Result<Self, Failure> {
        let (stream, reply) = converse(stored, &Request::Forward { port, at: at.to_owned() })?
            .ok_or_else(|| not_alive(stored))?;
        match reply {
            Some((Reply::Done { .. }, _)) => {
                be_patient(&stream).map_err(|e| unheard(stored, &e))?;
                Ok(Self { stream })
            }
            _ => Err(not_alive(stored)),
        }
    }

    /// A connection to the port, which may still be under way; `Ok(None)` when the session is over.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn connect(&self, v6: bool) -> io::Result<Option<OwnedFd>> {
        send(&self.stream, &Request::Connect { v6 }, &[])?;
        match receive::<Reply>(&self.stream)? {
            Some((Reply::Socket { errno: None }, mut fds)) => Ok(fds.pop()),
            Some((Reply::Socket { errno: Some(errno) }, _)) => {
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
            None => Ok(None),
        }
    }

    /// What can be read once the session is over.
    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}

pub(super) type Answer = Option<(Reply, Vec<OwnedFd>)>;

fn ask(stored: &StoredBox, request: &Request) -> Result<Answer, Failure> {
    Ok(converse(stored, request)?.and_then(|(_, answer)| answer))
}

/// `None` when nobody listens.
pub(super) fn converse(
    stored: &StoredBox,
    request: &Request,
) -> Result<Option<(UnixStream, Answer)>, Failure> {
    let stream = match reach(&stored.host_dir(), PATIENCE) {
        Ok(stream) => stream,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(None),
                io::ErrorKind::WouldBlock => Err(silent(stored, None)),
                _ => Err(unheard(stored, &error)),
            };
        }
    };
    let answer = send(&stream, request, &[]).and_then(|()| receive::<Reply>(&stream));
    match answer {
        Ok(Some((Reply::Refused(failure), _))) => Err(failure),
        Ok(answer) => Ok(Some((stream, answer))),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock => Err(silent(stored, peer(&stream))),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(None),
            _ => Err(unheard(stored, &error)),
        },
    }
}
