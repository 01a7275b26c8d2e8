//! The body of an answer on its way to the program.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};

use crate::event::{End, Event};
use crate::headers;
use crate::ledger::{Holding, Ledger};
use crate::scrub::Scrubber;
use crate::upload::{Progress, Stopped};

/// The program sees an answer that was cut, never one that has ended.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the answer was cut")]
pub(crate) struct Broken;

/// The service's side of an answer. Whoever ends the grant lets go of it here, also while the
/// program reads nothing: the stream to the service is closed then.
#[derive(Default)]
pub(crate) struct Stream(Mutex<Flow>);

#[derive(Default)]
struct Flow {
    body: Option<Incoming>,
    cut: Option<End>,
    waker: Option<Waker>,
}

impl Stream {
    fn new(body: Incoming) -> Self {
        Self(Mutex::new(Flow { body: Some(body), ..Flow::default() }))
    }

    /// Closes the stream to the service, and tells the program's side.
    pub(crate) fn cut(&self, end: End) {
        let mut flow = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        flow.cut.get_or_insert(end);
        let (body, waker) = (flow.body.take(), flow.waker.take());
        drop(flow);
        drop(body);
        waker.inspect(Waker::wake_by_ref);
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, End>>> {
        let mut flow = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(end) = flow.cut {
            return Poll::Ready(Some(Err(end)));
        }
        let Some(body) = &mut flow.body else { return Poll::Ready(None) };
        match Pin::new(body).poll_frame(cx) {
            Poll::Pending => {
                flow.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Poll::Ready(frame) => {
                Poll::Ready(frame.map(|frame| frame.map_err(|_gone| End::Service)))
            }
        }
    }
}

/// A place among a bounded number.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes a place, if there is one left of so many.
    pub(crate) fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let one_more = |taken: usize| (taken < most).then_some(taken + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells the end of a request that passed, when it goes.
pub(crate) struct Finish {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) holding: Arc<Holding>,
    pub(crate) request: u64,
    pub(crate) began: Instant,
    pub(crate) progress: Arc<Progress>,
    pub(crate) status: Option<u16>,
    pub(crate) received: u64,
    pub(crate) scrubbed: u64,
    /// How it ended; what nobody says is that the client went.
    pub(crate) end: Option<End>,
    /// Its place among those that are under way at once.
    pub(crate) _place: [Place; 2],
}

impl Drop for Finish {
    fn drop(&mut self) {
        let stopped = match self.progress.stopped() {
            Some(Stopped::Ended(end)) => Some(end),
            Some(Stopped::Gone | Stopped::Refused(_)) | None => None,
        };
        let end = self.end.or(stopped).or(self.holding.ended()).unwrap_or(End::Client);
        let event = Event::Finished {
            grant: self.ledger.name(self.holding.grant).to_owned(),
            request: self.request,
            status: self.status,
            sent: self.progress.sent(),
            received: self.received,
            duration: self.began.elapsed(),
            end,
            scrubbed: self.scrubbed,
        };
        // A sink that is closed has ended everything already.
        self.ledger.tell(event).ok();
    }
}

/// Whether trailers may follow a body whose size is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trailers {
    None,
    Maybe,
}

/// An answer's body: the service's, scrubbed, counted and cut where the grant ends.
pub(crate) struct Passing {
    stream: Arc<Stream>,
    /// Waits for the grant's end for as long as the answer is under way.
    watch: tokio::task::JoinHandle<()>,
    scrubber: Option<Scrubber>,
    finish: Finish,
    patience: Duration,
    silence: Pin<Box<Sleep>>,
    silent: bool,
    length: Option<u64>,
    /// What is still to come, where nothing can follow it.
    left: Option<u64>,
    trailers: Option<HeaderMap>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Flowing,
    /// What was held back is out; the end is next.
    Drained,
    /// The grant ended within the last piece.
    Ended(End),
    Over,
}

impl Passing {
    pub(crate) fn new(
        body: Incoming,
        scrubber: Option<Scrubber>,
        (mut finish, trailers): (Finish, Trailers),
        patience: Duration,
    ) -> Self {
        // Who sends an answer without a body does not look at its end.
        let empty = body.is_end_stream();
        if empty {
            finish.end = Some(End::Done);
        }
        let length = body.size_hint().exact();
        let stream = Arc::new(Stream::new(body));
        let over = finish.holding.over();
        let watched = Arc::clone(&stream);
        let watch = tokio::spawn(async move { watched.cut(over.await) });
        let silence = Box::pin(sleep(patience));
        Self {
            stream,
            watch,
            scrubber,
            finish,
            patience,
            silence,
            silent: true,
            length,
            left: if trailers == Trailers::None { length } else { None },
            trailers: None,
            state: if empty { State::Over } else { State::Flowing },
        }
    }

    pub(crate) fn holding(&self) -> &Arc<Holding> {
        &self.finish.holding
    }

    /// What may go on of a piece of the service's. With the last piece comes what was held back.
    fn looked_through(&mut self, bytes: Bytes) -> Bytes {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.left = self.left.map(|left| left.saturating_sub(count));
        let Some(scrubber) = &mut self.scrubber else { return bytes };
        let mut bytes = scrubber.push(&bytes);
        if self.left == Some(0) {
            let rest = scrubber.finish();
            if !rest.is_empty() {
                bytes = [bytes, rest].concat().into();
            }
        }
        self.finish.scrubbed = scrubber.found();
        bytes
    }

    fn broken(&mut self, end: End) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.finish.end.get_or_insert(end);
        self.state = State::Over;
        self.stream.cut(end);
        Poll::Ready(Some(Err(Broken)))
    }

    /// Counts a piece and lets as much of it pass as the budget has.
    fn pass(&mut self, mut bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let may = self.finish.holding.receive(bytes.len());
        self.finish.received += u64::try_from(may).unwrap_or(0);
        if may < bytes.len() {
            self.finish.end = Some(End::Budget);
            self.finish.ledger.used_up(&self.finish.holding, End::Budget);
            bytes.truncate(may);
            if bytes.is_empty() {
                return self.broken(End::Budget);
            }
            self.state = State::Ended(End::Budget);
        } else if self.left == Some(0) {
            // The client has it all now, and may go on before the service tells the end.
            self.state = State::Over;
            self.finish.end = Some(End::Done);
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn drained(&mut self) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        self.state = State::Over;
        self.finish.end = Some(End::Done);
        Poll::Ready(None)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        match this.state {
            State::Ended(end) => return this.broken(end),
            State::Drained => return this.drained(),
            State::Over => return Poll::Ready(None),
            State::Flowing => {}
        }
        loop {
            match this.stream.poll(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    this.silent = false;
                    let frame = match frame.into_data() {
                        Ok(bytes) => {
                            let bytes = this.looked_through(bytes);
                            if bytes.is_empty() {
                                continue;
                            }
                            return this.pass(bytes);
                        }
                        Err(frame) => frame,
                    };
                    let Ok(mut trailers) = frame.into_trailers() else { continue };
                    headers::incoming(&mut trailers, this.scrubber.is_some());
                    if let Some(scrubber) = &mut this.scrubber {
                        scrubber.headers(&mut trailers);
                    }
                    // After what the scrubber holds back.
                    this.trailers = Some(trailers);
                }
                Poll::Ready(Some(Err(end))) => return this.broken(end),
                Poll::Ready(None) => {
                    let rest = this.scrubber.as_mut().map(Scrubber::finish).unwrap_or_default();
                    this.finish.scrubbed = this.scrubber.as_ref().map_or(0, Scrubber::found);
                    this.state = State::Drained;
                    if rest.is_empty() {
                        return this.drained();
                    }
                    return this.pass(rest);
                }
                Poll::Pending => break,
            }
        }
        if !this.silent {
            this.silent = true;
            this.silence.as_mut().reset(Instant::now() + this.patience);
        }
        match this.silence.as_mut().poll(cx) {
            Poll::Ready(()) => this.broken(End::Service),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Over
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// What a program gets: h5i's own words, or the service's.
pub(crate) enum Answer {
    Own(Option<Bytes>),
    Passing(Box<Passing>),
}

impl Answer {
    /// The holding that the answer is spent from.
    pub(crate) fn holding(&self) -> Option<&Arc<Holding>> {
        match self {
            Self::Own(_) => None,
            Self::Passing(passing) => Some(passing.holding()),
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut *self {
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passing(passing) => Pin::new(passing.as_mut()).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(bytes) => bytes.is_none(),
            Self::Passing(passing) => passing.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => {
                let bytes = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(bytes).unwrap_or(0))
            }
            Self::Passing(passing) => passing.size_hint(),
        }
    }
}
