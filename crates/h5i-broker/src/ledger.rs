//! Who holds which grant, by which token, and what was refused.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use h5i_policy::Grant;
use tokio::sync::{mpsc, watch};

use crate::error::{ChangeError, IssueError};
use crate::event::{Denial, End, Event, EventSink, SinkClosed};
use crate::issue::{Issue, Uses, Which};
use crate::state::GrantState;
use crate::token::{TokenDigest, new_token};

mod holding;
mod refusals;

use holding::Terms;
pub(crate) use holding::{Holding, denial};
pub(crate) use refusals::Kind;
use refusals::Refusals;

/// Holdings that have ended and are still told of, and tokens that are still known to have been
/// some.
const REMEMBERED: usize = 256;

/// One grant, as far as issuing it needs.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) grant: Grant,
    /// Where its programs find it, for `reverse`.
    pub(crate) base_url: Option<String>,
}

/// The holdings of all runs. Every change is an event before it is made known to a run.
pub(crate) struct Ledger {
    pub(crate) entries: Vec<Entry>,
    sink: Arc<dyn EventSink>,
    /// Whether everything is over: the sink is closed, or the broker ends.
    over: watch::Sender<bool>,
    /// Holdings whose expiry is to be waited for.
    fresh: mpsc::UnboundedSender<Arc<Holding>>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    held: Vec<Held>,
    ended: VecDeque<Arc<Holding>>,
    /// Tokens that hold no more, and of which holding they were.
    dead: VecDeque<(TokenDigest, Denial, usize, u64)>,
    /// Grants that were taken back from every run.
    revoked: Vec<usize>,
    suspended: bool,
    requests: u64,
    refusals: Refusals,
}

struct Held {
    holding: Arc<Holding>,
    token: Option<TokenDigest>,
}

/// Why a token gives nothing, and whose it was.
pub(crate) type Denied = (Denial, Option<u64>);

impl Ledger {
    pub(crate) fn new(
        entries: Vec<Entry>,
        sink: Arc<dyn EventSink>,
        fresh: mpsc::UnboundedSender<Arc<Holding>>,
    ) -> Self {
        Self { entries, sink, over: watch::Sender::new(false), fresh, books: Mutex::default() }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an observation over; when it can't be kept, everything is over. Never called with the
    /// books open: a sink may ask for the state.
    pub(crate) fn tell(&self, event: Event) -> Result<(), SinkClosed> {
        if *self.over.borrow() {
            return Err(SinkClosed);
        }
        self.sink.event(event).inspect_err(|_| self.finish())
    }

    /// Lets nothing go on.
    pub(crate) fn finish(&self) {
        self.over.send_replace(true);
        for held in &self.books().held {
            held.holding.end(End::Ended);
        }
    }

    /// Becomes true when nothing may go on.
    pub(crate) fn over(&self) -> watch::Receiver<bool> {
        self.over.subscribe()
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == name)
    }

    pub(crate) fn name(&self, place: usize) -> &str {
        self.entries.get(place).map_or("", |entry| entry.name.as_str())
    }

    /// Gives a run its grants. A grant that it holds already keeps what it has used, and gets a
    /// new token.
    pub(crate) fn issue(&self, issue: &Issue) -> Result<Vec<(String, String)>, IssueError> {
        let places = self.chosen(&issue.which)?;
        let mut variables = Vec::new();
        let mut given = Vec::new();
        self.may_issue(&self.books(), &places)?;
        for &place in &places {
            let Some(entry) = self.entries.get(place) else { continue };
            let mut token = None;
            if let Some(base_url) = &entry.base_url {
                let (text, digest) = new_token().map_err(IssueError::Random)?;
                token = Some(digest);
                let names = &entry.grant.variables;
                let base_url = format!("{base_url}{}", names.base_path);
                variables
                    .extend(names.base_url.iter().map(|name| (name.clone(), base_url.clone())));
                variables.extend(names.token.iter().map(|name| (name.clone(), text.clone())));
            }
            let terms = Terms {
                not_before: issue.not_before,
                not_after: issue.not_after,
                once: issue.uses == Uses::Once,
            };
            let holding = Holding::new(place, &entry.grant, issue.run, terms);
            given.push(Held { holding: Arc::new(holding), token });
        }
        for held in &given {
            let grant = self.name(held.holding.grant).to_owned();
            let (run, until) = (issue.run, held.holding.until());
            let told = self.tell(Event::Issued { grant, run, until });
            told.map_err(|_closed: SinkClosed| IssueError::Ended)?;
        }
        let mut books = self.books();
        // It may have changed meanwhile.
        self.may_issue(&books, &places)?;
        for held in given {
            books.take(held, &self.fresh);
        }
        drop(books);
        if self.is_over() {
            self.finish();
            return Err(IssueError::Ended);
        }
        Ok(variables)
    }

    fn may_issue(&self, books: &Books, places: &[usize]) -> Result<(), IssueError> {
        if books.suspended {
            return Err(IssueError::Suspended);
        }
        match places.iter().find(|place| books.revoked.contains(place)) {
            Some(place) => Err(IssueError::Revoked { name: self.name(*place).to_owned() }),
            None => Ok(()),
        }
    }

    fn chosen(&self, which: &Which) -> Result<Vec<usize>, IssueError> {
        match which {
            Which::All => Ok((0..self.entries.len()).collect()),
            Which::Only(names) => names
                .iter()
                .map(|name| {
                    self.place(name).ok_or_else(|| IssueError::NoGrant { name: name.clone() })
                })
                .collect(),
        }
    }

    /// Takes grants away: of one run or of all, one grant or all.
    fn withdraw(&self, grant: Option<usize>, run: Option<u64>, end: End) -> Vec<Event> {
        let mut books = self.books();
        let wanted = |holding: &Holding| {
            grant.is_none_or(|grant| holding.grant == grant)
                && run.is_none_or(|run| holding.run == run)
        };
        let (gone, kept) =
            std::mem::take(&mut books.held).into_iter().partition(|h| wanted(&h.holding));
        books.held = kept;
        let mut events = Vec::new();
        let gone: Vec<Held> = gone;
        for held in gone {
            let holding = held.holding;
            if holding.end(end) {
                let grant = self.name(holding.grant).to_owned();
                events.push(Event::Withdrawn { grant, run: Some(holding.run), end });
            }
            books.bury(held.token, denial(holding.ended().unwrap_or(end)), &holding);
            books.ended.push_back(holding);
            let more = books.ended.len().saturating_sub(REMEMBERED);
            books.ended.drain(..more);
        }
        events
    }

    /// A run is over.
    pub(crate) fn end(&self, run: u64) {
        let mut events = self.withdraw(None, Some(run), End::RunEnded);
        events.extend(self.books().refusals.tell(Some(run)));
        self.tell_all(events);
    }

    /// Tells several; when the first can't be kept, nothing goes on anyway.
    fn tell_all(&self, events: Vec<Event>) {
        for event in events {
            if self.tell(event).is_err() {
                return;
            }
        }
    }

    /// Takes every grant away; requests that are under way tell their ends.
    pub(crate) fn withdraw_all(&self) {
        self.books().suspended = true;
        let events = self.withdraw(None, None, End::Ended);
        self.tell_all(events);
    }

    /// The broker is over: what was counted is told, and nothing after it.
    pub(crate) fn end_all(&self) {
        let events = self.books().refusals.tell(None);
        self.tell_all(events);
        self.finish();
    }

    pub(crate) fn revoke(&self, name: &str, run: Option<u64>) -> Result<(), ChangeError> {
        let no_grant = || ChangeError::NoGrant { name: name.to_owned() };
        let place = self.place(name).ok_or_else(no_grant)?;
        if run.is_none() {
            let mut books = self.books();
            if !books.revoked.contains(&place) {
                books.revoked.push(place);
            }
        }
        let events = self.withdraw(Some(place), run, End::Revoked);
        if events.is_empty() && run.is_some() {
            return Err(ChangeError::NotHeld { name: name.to_owned() });
        }
        if run.is_none() && events.is_empty() {
            let event = Event::Withdrawn { grant: name.to_owned(), run: None, end: End::Revoked };
            return self.tell(event).map_err(|_closed: SinkClosed| ChangeError::Ended);
        }
        self.tell_all(events);
        if self.is_over() { Err(ChangeError::Ended) } else { Ok(()) }
    }

    pub(crate) fn extend(&self, name: &str, by: Duration) -> Result<SystemTime, ChangeError> {
        let no_grant = || ChangeError::NoGrant { name: name.to_owned() };
        let place = self.place(name).ok_or_else(no_grant)?;
        let books = self.books();
        let held = books.held.iter().map(|held| &held.holding).filter(|h| h.grant == place);
        let extended = held.filter(|holding| holding.extend(by));
        let until = extended.filter_map(|holding| holding.until()).max();
        until.ok_or_else(|| ChangeError::NotHeld { name: name.to_owned() })
    }

    /// Cuts everything, and makes every token worthless. Intercepted grants come back with
    /// [`Ledger::resume`]; the others when they are issued again.
    pub(crate) fn suspend(&self) {
        let mut books = self.books();
        books.suspended = true;
        let mut dead = Vec::new();
        for held in &mut books.held {
            held.holding.suspend();
            if let Some(token) = held.token.take() {
                dead.push((token, Arc::clone(&held.holding)));
            }
        }
        for (token, holding) in dead {
            books.bury(Some(token), Denial::Suspended, &holding);
        }
    }

    pub(crate) fn resume(&self) {
        let mut books = self.books();
        books.suspended = false;
        for held in &books.held {
            if held.holding.resume() {
                // It may be gone when the broker ends.
                self.fresh.send(Arc::clone(&held.holding)).ok();
            }
        }
    }

    pub(crate) fn state(&self) -> Vec<GrantState> {
        let books = self.books();
        let held = books.held.iter().map(|held| &held.holding);
        let all = books.ended.iter().chain(held);
        all.map(|holding| holding.state(self.name(holding.grant))).collect()
    }

    /// The holding that one of the presented tokens is for. Every token is compared with all, in a
    /// time that tells nothing of them.
    pub(crate) fn by_token(
        &self,
        place: usize,
        presented: &[TokenDigest],
    ) -> Result<Arc<Holding>, Denied> {
        let books = self.books();
        let mut found: Option<&Held> = None;
        for held in &books.held {
            let Some(token) = &held.token else { continue };
            for one in presented {
                if token.is(one) {
                    found = Some(held);
                }
            }
        }
        if let Some(held) = found {
            let run = held.holding.run;
            if held.holding.grant != place {
                return Err((Denial::Token, Some(run)));
            }
            held.holding.may_begin().map_err(|denial| (denial, Some(run)))?;
            return Ok(Arc::clone(&held.holding));
        }
        let of_this = |(token, _, grant, _): &&(TokenDigest, Denial, usize, u64)| {
            *grant == place && presented.iter().any(|one| token.is(one))
        };
        match books.dead.iter().rev().find(of_this) {
            Some((_, denial, _, run)) => Err((*denial, Some(*run))),
            None => Err((Denial::Token, None)),
        }
    }

    /// Whether this is a token that holds.
    pub(crate) fn is_token(&self, token: &TokenDigest) -> bool {
        self.books().held.iter().any(|held| held.token.is_some_and(|own| own.is(token)))
    }

    /// The holding of a run whose connection was handed over.
    pub(crate) fn by_run(&self, place: usize, run: u64) -> Result<Arc<Holding>, Denied> {
        let books = self.books();
        let is_it = |holding: &Holding| holding.grant == place && holding.run == run;
        if let Some(held) = books.held.iter().find(|held| is_it(&held.holding)) {
            held.holding.may_begin().map_err(|denial| (denial, Some(run)))?;
            return Ok(Arc::clone(&held.holding));
        }
        let ended = books.ended.iter().rev().find(|holding| is_it(holding));
        let why = ended.and_then(|holding| holding.ended()).map_or(Denial::Token, denial);
        Err((why, Some(run)))
    }

    /// The number of the next request.
    pub(crate) fn next_request(&self) -> u64 {
        let mut books = self.books();
        books.requests += 1;
        books.requests
    }

    /// A holding whose time is over, or whose budget is spent.
    pub(crate) fn used_up(&self, holding: &Arc<Holding>, end: End) {
        let is_held = self.books().held.iter().any(|held| Arc::ptr_eq(&held.holding, holding));
        if is_held {
            let events = self.withdraw(Some(holding.grant), Some(holding.run), end);
            self.tell_all(events);
        }
    }

    /// Counts a refusal, and tells of the first of its kind.
    pub(crate) fn refused(&self, kind: Kind) {
        let event = self.books().refusals.count(kind);
        self.tell_all(event.into_iter().collect());
    }
}

impl Books {
    /// Takes a new holding in the place of an older one of the same run, if there is one.
    fn take(&mut self, new: Held, fresh: &mpsc::UnboundedSender<Arc<Holding>>) {
        let same = |held: &&mut Held| {
            held.holding.grant == new.holding.grant && held.holding.run == new.holding.run
        };
        match self.held.iter_mut().find(same) {
            Some(old) => {
                let token = std::mem::replace(&mut old.token, new.token);
                let holding = Arc::clone(&old.holding);
                self.bury(token, Denial::Token, &holding);
            }
            None => {
                // It may be gone when the broker ends.
                fresh.send(Arc::clone(&new.holding)).ok();
                self.held.push(new);
            }
        }
    }

    fn bury(&mut self, token: Option<TokenDigest>, why: Denial, holding: &Holding) {
        let Some(token) = token else { return };
        self.dead.push_back((token, why, holding.grant, holding.run));
        let more = self.dead.len().saturating_sub(REMEMBERED);
        self.dead.drain(..more);
    }
}
