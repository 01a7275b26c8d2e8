//! A grant in the hands of one run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use h5i_policy::Grant;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::event::{Denial, End};
use crate::state::{GrantState, Left};

/// A grant that a run holds, and what it has used of it. The numbers are kept without a lock: bytes
/// are counted as they pass.
#[derive(Debug)]
pub(crate) struct Holding {
    /// Place of the grant in the setup.
    pub(crate) grant: usize,
    pub(crate) run: u64,
    not_before: Option<SystemTime>,
    allowed: Allowance,
    requests: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    life: watch::Sender<Life>,
}

#[derive(Clone, Copy, Debug)]
struct Allowance {
    requests: Option<u64>,
    sent: Option<u64>,
    received: Option<u64>,
}

/// How long a holding lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    until: Option<Until>,
    end: Option<End>,
}

/// A moment by both clocks: the monotonic one stands still while the machine sleeps, the other one
/// can be set. The grant ends by whichever is there first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Until {
    at: Instant,
    wall: SystemTime,
}

/// What limits a holding beside its grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) not_before: Option<SystemTime>,
    pub(crate) not_after: Option<SystemTime>,
    pub(crate) once: bool,
}

impl Holding {
    pub(crate) fn new(place: usize, grant: &Grant, run: u64, terms: Terms) -> Self {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let begins = terms.not_before.map_or(wall, |begins| begins.max(wall));
        let lasts = grant.lasts.and_then(|lasts| begins.checked_add(lasts.duration()));
        let ends = match (lasts, terms.not_after) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let until = ends.map(|ends| {
            let left = ends.duration_since(wall).unwrap_or_default();
            Until { at: now.checked_add(left).unwrap_or(now), wall: ends }
        });
        let once = terms.once.then_some(1);
        let requests = [grant.requests, once].into_iter().flatten().min();
        let allowed = Allowance {
            requests,
            sent: grant.bytes_up.map(h5i_policy::Bytes::count),
            received: grant.bytes_down.map(h5i_policy::Bytes::count),
        };
        Self {
            grant: place,
            run,
            not_before: terms.not_before,
            allowed,
            requests: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            life: watch::Sender::new(Life { until, end: None }),
        }
    }

    /// When it ends by itself.
    pub(crate) fn until(&self) -> Option<SystemTime> {
        self.life.borrow().until.map(|until| until.wall)
    }

    /// How it has ended, if it has.
    pub(crate) fn ended(&self) -> Option<End> {
        self.life.borrow().end
    }

    /// Ends it, and with it everything that is open. Says whether that is news.
    pub(crate) fn end(&self, end: End) -> bool {
        self.life.send_if_modified(|life| {
            let news = matches!(life.end, None | Some(End::Suspended));
            if news {
                life.end = Some(end);
            }
            news
        })
    }

    /// Cuts what is open, and lets nothing begin until [`Holding::resume`].
    pub(crate) fn suspend(&self) {
        self.life.send_if_modified(|life| {
            let lived = life.end.is_none();
            life.end.get_or_insert(End::Suspended);
            lived
        });
    }

    /// Takes a suspension back, and nothing else.
    pub(crate) fn resume(&self) -> bool {
        self.life.send_if_modified(|life| {
            let suspended = life.end == Some(End::Suspended);
            if suspended {
                life.end = None;
            }
            suspended
        })
    }

    /// Has it end later. Says whether it lives, and has an end.
    pub(crate) fn extend(&self, by: Duration) -> bool {
        self.life.send_if_modified(|life| {
            let lives = matches!(life.end, None | Some(End::Suspended));
            let Some(until) = life.until.filter(|_| lives) else { return false };
            let later = until.at.checked_add(by).zip(until.wall.checked_add(by));
            life.until = later.map(|(at, wall)| Until { at, wall });
            true
        })
    }

    /// Waits for the end. What is open is cut by whoever has it open.
    pub(crate) fn over(&self) -> impl Future<Output = End> + Send + 'static {
        let mut life = self.life.subscribe();
        async move {
            loop {
                let Life { until, end } = *life.borrow_and_update();
                if let Some(end) = end {
                    return end;
                }
                let expiry = async move {
                    match until {
                        Some(until) => tokio::time::sleep_until(until.at).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    changed = life.changed() => if changed.is_err() { return End::Ended },
                    () = expiry => return End::Expired,
                }
            }
        }
    }

    /// Whether a request may begin now.
    pub(crate) fn may_begin(&self) -> Result<(), Denial> {
        let Life { until, end } = *self.life.borrow();
        let now = SystemTime::now();
        let expired = until.is_some_and(|until| until.wall <= now || until.at <= Instant::now());
        match end {
            Some(end) => Err(denial(end)),
            None if expired => Err(Denial::Expired),
            None if self.not_before.is_some_and(|begins| now < begins) => Err(Denial::Token),
            None => Ok(()),
        }
    }

    /// Takes one request out of the budget. `body` is the size of its body: 0 for none, `None`
    /// where it will be seen.
    pub(crate) fn take_request(&self, body: Option<u64>) -> Result<(), Denial> {
        let left = |allowed: Option<u64>, used: &AtomicU64| {
            allowed.map_or(u64::MAX, |allowed| allowed.saturating_sub(used.load(Ordering::Relaxed)))
        };
        if left(self.allowed.received, &self.received) == 0
            || left(self.allowed.sent, &self.sent) < body.unwrap_or(1)
        {
            return Err(Denial::Budget);
        }
        let most = self.allowed.requests.unwrap_or(u64::MAX);
        let one_more = |used: u64| (used < most).then(|| used.saturating_add(1));
        match self.requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(()),
            Err(_) => Err(Denial::Budget),
        }
    }

    /// Counts bytes of a request's body, and says how many of them may pass.
    pub(crate) fn send(&self, bytes: usize) -> usize {
        take(self.allowed.sent, &self.sent, bytes)
    }

    /// Counts bytes of an answer's body, and says how many of them may pass.
    pub(crate) fn receive(&self, bytes: usize) -> usize {
        take(self.allowed.received, &self.received, bytes)
    }

    pub(crate) fn state(&self, grant: &str) -> GrantState {
        let uses = self.requests.load(Ordering::Relaxed);
        let sent = self.sent.load(Ordering::Relaxed);
        let received = self.received.load(Ordering::Relaxed);
        let left = |allowed: Option<u64>, used| allowed.map(|most| most.saturating_sub(used));
        GrantState {
            grant: grant.to_owned(),
            run: self.run,
            uses,
            sent,
            received,
            left: Left {
                requests: left(self.allowed.requests, uses),
                sent: left(self.allowed.sent, sent),
                received: left(self.allowed.received, received),
            },
            until: self.until(),
            ended: self.ended(),
        }
    }
}

/// Why nothing more may begin after such an end.
pub(crate) fn denial(end: End) -> Denial {
    match end {
        End::Revoked => Denial::Revoked,
        End::Suspended => Denial::Suspended,
        End::Budget => Denial::Budget,
        _ => Denial::Expired,
    }
}

fn take(allowed: Option<u64>, used: &AtomicU64, bytes: usize) -> usize {
    let most = allowed.unwrap_or(u64::MAX);
    let wanted = u64::try_from(bytes).unwrap_or(u64::MAX);
    let mut taken = 0;
    let add = |used: u64| {
        taken = wanted.min(most.saturating_sub(used));
        Some(used.saturating_add(taken))
    };
    // The closure always gives a new value.
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok();
    usize::try_from(taken).unwrap_or(bytes)
}
