//! The body of a request on its way to the service.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::event::{Denial, End};
use crate::h1::{self, BodyFault, Fault};
use crate::ledger::{Holding, Ledger};
use crate::refusal::Refusal;

/// Largest body that is kept, so that it can be sent again.
const KEPT: usize = 64 * 1024;

/// A request's body as it comes from a program.
pub(crate) enum Source {
    /// There is none.
    Empty,
    Http1(h1::Body),
    Http2(Incoming),
    /// What was read of it already, and the rest.
    Begun(Bytes, Box<Source>),
}

impl Source {
    /// Its size: 0 for none, `None` where only its end tells.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Http1(body) => body.size_hint().exact(),
            Self::Http2(body) => body.size_hint().exact(),
            Self::Begun(front, rest) => {
                rest.size()?.checked_add(u64::try_from(front.len()).unwrap_or(u64::MAX))
            }
        }
    }

    /// Whether nothing comes any more.
    fn is_done(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Http1(body) => body.is_done(),
            Self::Http2(body) => body.is_end_stream(),
            Self::Begun(front, rest) => front.is_empty() && rest.is_done(),
        }
    }

    /// Takes the next bytes.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Stopped>>> {
        match self {
            Self::Empty => Poll::Ready(None),
            Self::Http1(body) => body.poll(cx).map_err(|fault| match fault {
                BodyFault::Gone => Stopped::Gone,
                BodyFault::Refused(fault) => Stopped::Refused(fault.into()),
            }),
            Self::Http2(body) => Pin::new(body).poll_frame(cx).map(|frame| match frame? {
                Ok(frame) => Some(frame.into_data().map_err(|_trailers| {
                    let detail = "there are trailers after the body";
                    Stopped::Refused(Refusal::because(Denial::Malformed, detail))
                })),
                Err(_reset) => Some(Err(Stopped::Gone)),
            }),
            Self::Begun(front, rest) if front.is_empty() => rest.poll(cx),
            Self::Begun(front, _) => Poll::Ready(Some(Ok(std::mem::take(front)))),
        }
    }
}

/// Why a body did not go on to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The client is gone.
    Gone,
    /// It is refused.
    Refused(Refusal),
    /// The grant holds no more.
    Ended(End),
}

/// The service sees a body that was cut, never one that has ended.
#[derive(Debug, thiserror::Error)]
#[error("the body was cut")]
pub(crate) struct Cut;

/// What becomes of one request's body, as whoever waits for its answer sees it.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    sent: u64,
    stopped: Option<Stopped>,
    /// What was sent, until it is too much.
    kept: Option<VecDeque<Bytes>>,
    kept_bytes: usize,
    done: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Seen { kept: Some(VecDeque::new()), ..Seen::default() }))
    }

    fn with<R>(&self, act: impl FnOnce(&mut Seen) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.with(|seen| seen.sent)
    }

    /// How far the body has come: what was sent, and whether that is all.
    pub(crate) fn so_far(&self) -> (u64, bool) {
        self.with(|seen| (seen.sent, seen.done))
    }

    /// Why it does not go on, if it does not.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.with(|seen| seen.stopped)
    }

    /// The whole body once more, if it was sent to its end and is small.
    pub(crate) fn again(&self) -> Option<VecDeque<Bytes>> {
        self.with(|seen| if seen.done { seen.kept.clone() } else { None })
    }

    /// The body will not be sent again.
    pub(crate) fn forget(&self) {
        self.with(|seen| seen.kept = None);
    }

    fn passed(&self, bytes: &Bytes) {
        self.with(|seen| {
            seen.sent += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            seen.kept_bytes = seen.kept_bytes.saturating_add(bytes.len());
            match &mut seen.kept {
                Some(kept) if seen.kept_bytes <= KEPT => kept.push_back(bytes.clone()),
                kept => *kept = None,
            }
        });
    }
}

/// A body that is counted as it passes.
pub(crate) struct Upload {
    source: Source,
    progress: Arc<Progress>,
    holding: Arc<Holding>,
    ledger: Arc<Ledger>,
    /// The budget was spent within the last piece.
    spent: bool,
}

impl Upload {
    pub(crate) fn new(
        source: Source,
        progress: Arc<Progress>,
        holding: Arc<Holding>,
        ledger: Arc<Ledger>,
    ) -> Self {
        let upload = Self { source, progress, holding, ledger, spent: false };
        upload.note_end();
        upload
    }

    fn note_end(&self) {
        if self.is_end_stream() {
            self.progress.with(|seen| seen.done = true);
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = &mut *self;
        let stop = |this: &Self, why| {
            this.progress.with(|seen| *seen.stopped.get_or_insert(why));
            Poll::Ready(Some(Err(Cut)))
        };
        if this.spent {
            this.ledger.used_up(&this.holding, End::Budget);
            return stop(this, Stopped::Ended(End::Budget));
        }
        match this.source.poll(cx) {
            Poll::Ready(Some(Ok(mut bytes))) => {
                let may = this.holding.send(bytes.len());
                if may < bytes.len() {
                    this.spent = true;
                    bytes.truncate(may);
                    if bytes.is_empty() {
                        return self.poll_frame(cx);
                    }
                }
                this.progress.passed(&bytes);
                this.note_end();
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(Some(Err(why))) => stop(this, why),
            Poll::Ready(None) => {
                this.progress.with(|seen| seen.done = true);
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.spent && self.source.is_done()
    }

    fn size_hint(&self) -> SizeHint {
        self.source.size().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// What is sent: a body as it comes, or one that was sent before.
pub(crate) enum Outgoing {
    First(Upload),
    Again(VecDeque<Bytes>),
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::First(upload) => Pin::new(upload).poll_frame(cx),
            Self::Again(pieces) => {
                Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::First(upload) => upload.is_end_stream(),
            Self::Again(pieces) => pieces.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::First(upload) => upload.size_hint(),
            Self::Again(pieces) => {
                let bytes = pieces.iter().map(|piece| u64::try_from(piece.len()).unwrap_or(0));
                SizeHint::with_exact(bytes.sum())
            }
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed(why) => Self::because(Denial::Malformed, why),
            Fault::Upgrade => Denial::Upgrade.into(),
            Fault::TooLarge => Denial::Limits.into(),
            Fault::TooSlow => Self::because(Denial::Limits, crate::refusal::TOO_SLOW),
        }
    }
}
