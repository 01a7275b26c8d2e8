//! Who has a place in a session, and whether it takes in more.

use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use h5i_confine::SessionHandle;

use crate::failure::Failure;
use crate::receipt_log::Recorder;

/// The places of one session. It ends when the last one is given up.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) recorder: Arc<Recorder>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    session: Option<SessionHandle>,
    places: usize,
    ending: bool,
}

/// A place in a session. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct Place(Arc<Roster>);

impl Roster {
    pub(super) fn new(recorder: Arc<Recorder>) -> Arc<Self> {
        Arc::new(Self { recorder, state: Mutex::default(), changed: Condvar::new() })
    }

    /// The session is there.
    pub(super) fn opens(&self, session: SessionHandle) {
        self.state().session = Some(session);
        self.changed.notify_all();
    }

    /// A place; `None` when the session ends.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let mut state = self.state();
        if state.ending {
            return None;
        }
        state.places += 1;
        Some(Place(Arc::clone(self)))
    }

    /// The session, once it is there; `None` when it ends before that.
    pub(super) fn session(&self) -> Option<SessionHandle> {
        let mut state = self.state();
        loop {
            if state.ending {
                return None;
            }
            if let Some(session) = &state.session {
                return Some(session.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many have a place.
    pub(super) fn places(&self) -> usize {
        self.state().places
    }

    /// Waits until nobody has a place; from then on nobody gets one.
    pub(super) fn close_when_empty(&self) {
        let mut state = self.state();
        while state.places > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.ending = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) fn roster(&self) -> &Arc<Roster> {
        &self.0
    }

    /// Takes the next number for a run of this command.
    ///
    /// # Errors
    /// An I/O failure.
    pub(super) fn number(&self, argv: Vec<OsString>) -> Result<u64, Failure> {
        self.0.recorder.admit(argv)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.state().places -= 1;
        self.0.changed.notify_all();
    }
}
