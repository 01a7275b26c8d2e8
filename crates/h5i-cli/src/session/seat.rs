//! Who is the first in a box, and who joins.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Joined;
use super::joined::NoPlace;
use crate::failure::{Failure, Kind};
use crate::store::{BoxLock, LockError, StoredBox};

/// How long a box that is neither free nor open is waited for: its holder begins or ends a session,
/// exports, or was stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// How soon it is looked at again, and how late. Nothing tells of all that is waited for: the kernel
/// has no event for a lock that is free.
const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_millis(20);

/// A run's place in a box.
#[derive(Debug)]
pub(crate) enum Seat {
    /// The session is this process's to begin.
    First(BoxLock),
    /// Another process holds it.
    Joined(Arc<Joined>),
}

impl Seat {
    /// Takes a place in a box.
    ///
    /// # Errors
    /// `busy` when the box is neither free nor open for five seconds, or its holder does not answer.
    pub(crate) fn take(stored: &StoredBox) -> Result<Self, Failure> {
        let begun = Instant::now();
        let mut pause = SOON;
        loop {
            match stored.lock() {
                Ok(lock) => return Ok(Self::First(lock)),
                Err(LockError::Busy) => {}
                Err(error) => return Err(error.into()),
            }
            if begun.elapsed() >= PATIENCE {
                return Err(LockError::Busy.into());
            }
            match Joined::enter(&stored.host_dir()) {
                Ok(joined) => return Ok(Self::Joined(Arc::new(joined))),
                Err(NoPlace::NoSession) => {}
                Err(NoPlace::Silent(holder)) => return Err(silent(stored, holder)),
                Err(NoPlace::Refused(failure)) => return Err(*failure),
                Err(NoPlace::Io(error)) => return Err(unheard(stored, &error)),
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LATE);
        }
    }
}

pub(super) fn silent(stored: &StoredBox, holder: Option<rustix::process::Pid>) -> Failure {
    let name = stored.name();
    let message = format!("the process that holds the session of box `{name}` does not answer");
    match holder {
        Some(pid) => {
            let pid = pid.as_raw_nonzero();
            Failure::told(Kind::Busy, format!("{message}; it may be stopped"))
                .hint(format!("kill -CONT {pid}, or kill {pid} to end the session"))
                .detail("pid", pid.get())
        }
        None => Failure::told(Kind::Busy, message).hint("try again"),
    }
}

pub(super) fn unheard(stored: &StoredBox, error: &std::io::Error) -> Failure {
    let name = stored.name();
    let message = match error.kind() {
        std::io::ErrorKind::InvalidData => {
            format!("the session of box `{name}` is held by another version of h5i")
        }
        _ => format!("cannot talk to the process that holds the session of box `{name}`: {error}"),
    };
    Failure::told(Kind::Busy, message).hint("wait for its runs to end")
}
