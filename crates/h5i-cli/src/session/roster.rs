//! Who has a place in a session, and whether it takes in more.

use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use h5i_confine::SessionHandle;

use super::message::{Live, LiveRun};
use crate::box_grants::{GrantWish, LiveGrants};
use crate::box_network::{LiveNetwork, Wish};
use crate::failure::{Failure, Kind};
use crate::json_bytes::JsonBytes;
use crate::receipt_log::Recorder;
use crate::timestamp::Timestamp;

/// How long a session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// As long as a run has a place in it.
    Runs,
    /// Until it is stopped.
    Started,
}

/// The places of one session. One that was not started ends when the last one
/// is given up.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) recorder: Arc<Recorder>,
    since: Timestamp,
    state: Mutex<State>,
    network: Mutex<Option<LiveNetwork>>,
    grants: Mutex<Option<Arc<LiveGrants>>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    session: Option<SessionHandle>,
    places: usize,
    ending: bool,
    started: bool,
    forwards: Vec<(u16, String)>,
}

/// A place in a session. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct Place(Arc<Roster>);

impl Roster {
    pub(super) fn new(recorder: Arc<Recorder>, lifetime: Lifetime) -> Arc<Self> {
        let state = State { started: lifetime == Lifetime::Started, ..State::default() };
        let (since, state, changed) = (Timestamp::now(), Mutex::new(state), Condvar::new());
        let (network, grants) = Default::default();
        Arc::new(Self { recorder, since, state, network, grants, changed })
    }

    /// The session is there.
    pub(super) fn opens(&self, session: SessionHandle) {
        self.state().session = Some(session);
        self.changed.notify_all();
    }

    /// The session has a network of its own.
    pub(super) fn has_network(&self, network: LiveNetwork) {
        *self.network() = Some(network);
    }

    /// The session has grants.
    pub(super) fn has_grants(&self, grants: LiveGrants) {
        let grants = Arc::new(grants);
        self.recorder.reactions().suspends(&grants);
        *self.held() = Some(grants);
    }

    /// Its grants, where it has any.
    pub(super) fn grants(&self) -> Option<Arc<LiveGrants>> {
        self.held().clone()
    }

    /// Gives a run its grants: variables of its environment.
    ///
    /// # Errors
    /// As [`LiveGrants::issue`].
    pub(super) fn issue(&self, run: u64) -> Result<Vec<(String, String)>, Failure> {
        self.grants().map_or_else(|| Ok(Vec::new()), |grants| grants.issue(run, &self.recorder))
    }

    /// A run is over: it holds no grant any more.
    pub(super) fn ends_run(&self, run: u64) {
        if let Some(grants) = self.grants() {
            grants.end(run);
        }
    }

    /// Changes a grant.
    ///
    /// # Errors
    /// A refusal for a box without grants; as [`LiveGrants::change`].
    pub(super) fn change_grant(&self, wish: &GrantWish) -> Result<(), Failure> {
        match self.grants() {
            Some(grants) => grants.change(wish, &self.recorder),
            None => Err(Failure::told(Kind::NotFound, "the box has no grants")
                .hint("grants are of the policy: h5i policy show")),
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Arc<LiveGrants>>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings to record what the network has counted so far.
    pub(super) fn counts_network(&self) {
        if let Some(network) = &*self.network() {
            network.report();
        }
    }

    /// Changes the network; yields the digest of the policy that holds from here on.
    ///
    /// # Errors
    /// A refusal for a box without one; as [`LiveNetwork::change`].
    pub(super) fn change_network(&self, wish: &Wish) -> Result<String, Failure> {
        match &mut *self.network() {
            Some(network) => {
                let digest = network.change(wish, &self.recorder)?;
                if *wish == Wish::Cut
                    && let Some(grants) = self.grants()
                {
                    grants.revoke_all();
                }
                Ok(digest)
            }
            None => Err(Failure::told(Kind::Refused, "the box has no network with doors")
                .hint("rules are of boxes made with --tier supervised")),
        }
    }

    /// The session is over: closes its network, which tells the rest.
    pub(super) fn ends_network(&self) {
        let network = self.network().take();
        drop(network);
        let grants = self.held().take();
        drop(grants);
    }

    fn network(&self) -> MutexGuard<'_, Option<LiveNetwork>> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// A port of the box is on the host from here on.
    pub(super) fn forwards(&self, port: u16, at: &str) {
        self.state().forwards.push((port, at.to_owned()));
    }

    /// It is not any more.
    pub(super) fn forgets(&self, port: u16, at: &str) {
        let mut state = self.state();
        if let Some(found) = state.forwards.iter().position(|f| f.0 == port && f.1 == at) {
            state.forwards.remove(found);
        }
    }

    /// The session as it is.
    pub(super) fn live(&self, session: &SessionHandle) -> Live {
        let told = |(run, argv, since_ms): (u64, Vec<OsString>, u64)| {
            let words = argv.into_iter().map(|word| JsonBytes(word.into_encoded_bytes()));
            LiveRun { run, command: words.collect(), since_ms }
        };
        let state = self.state();
        let (started, forwards) = (state.started, state.forwards.clone());
        drop(state);
        let (in_use, reactions) = (session.in_use(), self.recorder.reactions());
        Live {
            since_ms: self.since.millis(),
            started,
            frozen: reactions.is_frozen(),
            frozen_by: reactions.why(),
            runs: self.recorder.going().into_iter().map(told).collect(),
            processes: session.processes().into_iter().map(Into::into).collect(),
            cpu_ms: u64::try_from(session.processor_time().as_millis()).unwrap_or(u64::MAX),
            memory_bytes: in_use.memory,
            disk_bytes: in_use.disk,
            refused: reactions.last(),
            forwards,
            network: self.network().as_ref().map(|network| network.rules().clone()),
            grants: self.grants().map(|grants| grants.state()).unwrap_or_default(),
        }
    }

    /// Waits until nobody has a place, or the time is over.
    pub(super) fn wait_until_empty(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut state = self.state();
        while state.places > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// From here on nobody gets a place.
    pub(super) fn close(&self) {
        self.state().ending = true;
        self.changed.notify_all();
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
