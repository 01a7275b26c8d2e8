//! The reading side of a connection, and the body that borrows it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::SizeHint;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::chunks::Decoder;
use super::head::{Fault, Framing, Head, Scan, parse};

/// Bytes that are asked for at once.
const PART: usize = 16 * 1024;

/// What a program sends, and what of it was read too far.
pub(crate) struct Reader {
    io: Box<dyn AsyncRead + Send + Unpin>,
    buffer: BytesMut,
}

/// Why there is no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHead {
    /// The client is gone, or has nothing to say.
    Gone,
    /// What it says is refused.
    Refused(Fault),
}

impl Reader {
    pub(crate) fn new(io: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self { io: Box::new(io), buffer: BytesMut::new() }
    }

    /// Reads the next head. Its first byte must come within `first`, the rest of it within `rest`.
    pub(crate) async fn head(&mut self, first: Duration, rest: Duration) -> Result<Head, NoHead> {
        let mut scan = Scan::default();
        let mut end = Instant::now() + first;
        let mut begun = false;
        loop {
            if !self.buffer.is_empty() {
                if !begun {
                    begun = true;
                    end = Instant::now() + rest;
                }
                if let Some(length) = scan.end(&self.buffer).map_err(NoHead::Refused)? {
                    let head = self.buffer.split_to(length);
                    return parse(&head).map_err(NoHead::Refused);
                }
            }
            self.buffer.reserve(if begun { PART } else { 2048 });
            match timeout_at(end, self.io.read_buf(&mut self.buffer)).await {
                Ok(Ok(1..)) => {}
                Ok(Ok(0)) if begun => {
                    return Err(NoHead::Refused(Fault::Malformed("the head has no end")));
                }
                Ok(_) => return Err(NoHead::Gone),
                Err(_late) if begun => return Err(NoHead::Refused(Fault::TooSlow)),
                Err(_late) => return Err(NoHead::Gone),
            }
        }
    }

    /// Waits until the client says more than it should, or goes.
    async fn fault(&mut self) -> ClientFault {
        if self.buffer.is_empty() {
            self.buffer.reserve(512);
            if !matches!(self.io.read_buf(&mut self.buffer).await, Ok(1..)) {
                return ClientFault::Gone;
            }
        }
        ClientFault::Early
    }

    /// Reads on and forgets, so that the client comes to read the answer; not for long, not much.
    pub(crate) async fn drain(&mut self, most: usize, end: Instant) {
        let mut left = most;
        self.buffer.clear();
        while left > 0 {
            self.buffer.reserve(PART);
            match timeout_at(end, self.io.read_buf(&mut self.buffer)).await {
                Ok(Ok(count @ 1..)) => left = left.saturating_sub(count),
                _ => return,
            }
            self.buffer.clear();
        }
    }
}

/// What a client does while its request is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientFault {
    /// It has closed the connection.
    Gone,
    /// It has sent more before it had the answer.
    Early,
}

/// The client, while its request is under way. The reading side comes here when the body has ended.
pub(crate) struct Client {
    reader: Option<Back>,
    back: oneshot::Receiver<Back>,
    waits: Option<oneshot::Receiver<()>>,
}

/// The reading side, when nobody reads a body any more.
enum Back {
    /// At the end of the body.
    AtEnd(Reader),
    /// Within it.
    Within(Reader),
}

impl Client {
    /// Waits for what the client should not do. Never ends while its body is under way, nor when
    /// nobody reads the body any more.
    pub(crate) async fn fault(&mut self) -> ClientFault {
        fault(&mut self.reader, &mut self.back).await
    }

    /// Waits until the client does what it should not, or somebody wants the body that it keeps
    /// back until it is told to go on.
    pub(crate) async fn act(&mut self) -> Act {
        tokio::select! {
            fault = fault(&mut self.reader, &mut self.back) => Act::Fault(fault),
            () = wanted(&mut self.waits) => Act::Wanted,
        }
    }

    /// The reading side, and whether the whole body was read.
    pub(crate) fn reader(mut self) -> Option<(Reader, bool)> {
        match self.reader.take().or_else(|| self.back.try_recv().ok())? {
            Back::AtEnd(reader) => Some((reader, true)),
            Back::Within(reader) => Some((reader, false)),
        }
    }
}

/// Something that concerns the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Fault(ClientFault),
    /// It is to send its body now.
    Wanted,
}

async fn fault(reader: &mut Option<Back>, back: &mut oneshot::Receiver<Back>) -> ClientFault {
    if reader.is_none() {
        match back.await {
            Ok(came) => *reader = Some(came),
            Err(_dropped) => return std::future::pending().await,
        }
    }
    match reader {
        Some(Back::AtEnd(reader)) => reader.fault().await,
        Some(Back::Within(_)) | None => std::future::pending().await,
    }
}

async fn wanted(waits: &mut Option<oneshot::Receiver<()>>) {
    let Some(waiting) = waits else { return std::future::pending().await };
    let wanted = waiting.await;
    *waits = None;
    if wanted.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The body of a request.
pub(crate) struct Body {
    reader: Option<Reader>,
    decoder: Decoder,
    back: Option<oneshot::Sender<Back>>,
    wanted: Option<oneshot::Sender<()>>,
    patience: Duration,
    /// When the client's silence has been too long.
    late: Option<Pin<Box<Sleep>>>,
    left: Option<u64>,
}

impl Drop for Body {
    fn drop(&mut self) {
        if let (Some(back), Some(reader)) = (self.back.take(), self.reader.take()) {
            // Nobody wants it when the connection has ended.
            back.send(Back::Within(reader)).ok();
        }
    }
}

/// Why a body does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// The client is gone.
    Gone,
    /// What it sends is refused.
    Refused(Fault),
}

impl Body {
    /// The body that follows a head, and the client as whoever answers sees it.
    pub(crate) fn new(reader: Reader, head: &Head, patience: Duration) -> (Self, Client) {
        let (give_back, back) = oneshot::channel();
        let (wanted, waits) = oneshot::channel();
        let mut body = Self {
            reader: Some(reader),
            decoder: Decoder::new(head.framing),
            back: Some(give_back),
            wanted: head.waits.then_some(wanted),
            patience,
            late: None,
            left: match head.framing {
                Framing::Length(length) => Some(length),
                Framing::Chunked => None,
            },
        };
        body.give_back();
        (body, Client { reader: None, back, waits: head.waits.then_some(waits) })
    }

    fn give_back(&mut self) {
        if self.decoder.is_done()
            && let (Some(back), Some(reader)) = (self.back.take(), self.reader.take())
        {
            // Nobody wants it when the connection has ended.
            back.send(Back::AtEnd(reader)).ok();
        }
    }

    /// Takes the next bytes.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        let Some(reader) = &mut self.reader else { return Poll::Ready(None) };
        if let Some(wanted) = self.wanted.take()
            && reader.buffer.is_empty()
        {
            // Nobody listens when the connection has ended.
            wanted.send(()).ok();
        }
        loop {
            match self.decoder.next(&mut reader.buffer) {
                Ok(Some(bytes)) => {
                    self.late = None;
                    let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    self.left = self.left.map(|left| left.saturating_sub(count));
                    self.give_back();
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Ok(None) if self.decoder.is_done() => {
                    self.give_back();
                    return Poll::Ready(None);
                }
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Some(Err(BodyFault::Refused(fault)))),
            }
            reader.buffer.reserve(PART);
            let mut space = [std::mem::MaybeUninit::uninit(); PART];
            let mut part = ReadBuf::uninit(&mut space);
            match Pin::new(&mut reader.io).poll_read(cx, &mut part) {
                Poll::Ready(Ok(())) if part.filled().is_empty() => {
                    return Poll::Ready(Some(Err(BodyFault::Gone)));
                }
                Poll::Ready(Ok(())) => reader.buffer.extend_from_slice(part.filled()),
                Poll::Ready(Err(_)) => return Poll::Ready(Some(Err(BodyFault::Gone))),
                Poll::Pending => break,
            }
        }
        let patience = self.patience;
        let late = || Box::pin(sleep_until(Instant::now() + patience));
        match self.late.get_or_insert_with(late).as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(BodyFault::Refused(Fault::TooSlow)))),
            Poll::Pending => Poll::Pending,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
