//! A box that stands still while somebody reads what it has, and what others have put on its record.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use h5i_confine::SessionHandle;
use h5i_export::Event;

use super::control_socket::be_patient;
use super::frame::{receive, send};
use super::message::{Reply, Request};
use super::overseer::converse;
use super::roster::Roster;
use super::seat::unheard;
use crate::failure::{Failure, Kind};
use crate::store::{LockError, StoredBox};

/// A live box whose processes are stopped. They go on when it is dropped, also by the end of this
/// process; those that a person froze stay as they are.
#[derive(Debug)]
pub(crate) struct Still {
    stream: UnixStream,
}

impl Still {
    /// Has a box stand still.
    ///
    /// # Errors
    /// `busy` when somebody uses the box who holds no session, or does not answer.
    pub(crate) fn hold(stored: &StoredBox) -> Result<Self, Failure> {
        match converse(stored, &Request::Still)? {
            Some((stream, Some((Reply::Done { .. }, _)))) => {
                be_patient(&stream).map_err(|e| unheard(stored, &e))?;
                Ok(Self { stream })
            }
            _ => Err(LockError::Busy.into()),
        }
    }

    /// Has the holder put an event on record, and lets the box go on.
    ///
    /// # Errors
    /// `io` when it could not be written.
    pub(crate) fn record(self, event: Event) -> Result<(), Failure> {
        let told = send(&self.stream, &Request::Record { event }, &[])
            .and_then(|()| receive::<Reply>(&self.stream));
        answered(told.ok().flatten().map(|(reply, _)| reply))
    }
}

/// Has the holder of a session put an event on the box's record.
///
/// # Errors
/// `busy` when there is none that answers, `io` when it could not be written.
pub(crate) fn record(stored: &StoredBox, event: Event) -> Result<(), Failure> {
    match converse(stored, &Request::Record { event })? {
        Some((_, answer)) => answered(answer.map(|(reply, _)| reply)),
        None => Err(LockError::Busy.into()),
    }
}

fn answered(reply: Option<Reply>) -> Result<(), Failure> {
    match reply {
        Some(Reply::Done { .. }) => Ok(()),
        Some(Reply::Refused(failure)) => Err(failure),
        _ => {
            Err(Failure::told(Kind::Busy, "the session of the box ended meanwhile")
                .hint("try again"))
        }
    }
}

/// The holder's part of [`Still`].
pub(super) fn serve(
    stream: &UnixStream,
    roster: &Arc<Roster>,
    session: &SessionHandle,
) -> io::Result<()> {
    let reactions = roster.recorder.reactions();
    let pauses = reactions.pauses();
    if pauses {
        session.freeze();
    }
    let heard = hear(stream, roster);
    if pauses && reactions.goes_on() {
        session.thaw();
    }
    // Whoever looks at the box after the answer finds that it goes on.
    match heard? {
        Some(reply) => send(stream, &reply, &[]),
        None => Ok(()),
    }
}

/// What is to be answered, where something was to be put on record.
fn hear(stream: &UnixStream, roster: &Arc<Roster>) -> io::Result<Option<Reply>> {
    roster.counts_network();
    roster.recorder.takes_all_in();
    send(stream, &Reply::Done { processes: 0 }, &[])?;
    match receive::<Request>(stream)? {
        Some((Request::Record { event }, _)) => written(roster, event).map(Some),
        _ => Ok(None),
    }
}

/// Puts an event of another process of the same person on record.
pub(super) fn write(stream: &UnixStream, roster: &Arc<Roster>, event: Event) -> io::Result<()> {
    send(stream, &written(roster, event)?, &[])
}

fn written(roster: &Arc<Roster>, event: Event) -> io::Result<Reply> {
    if !matches!(event, Event::Export { .. } | Event::Apply { .. }) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(match roster.recorder.host(event).and_then(|()| roster.recorder.sync()) {
        Ok(()) => Reply::Done { processes: 0 },
        Err(failure) => Reply::Refused(failure),
    })
}
