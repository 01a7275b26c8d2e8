//! A connection in HTTP/1.1, from the program's first byte to its last.
//!
//! Head, framing and body are read here and nowhere else: what is passed on is made anew from what
//! was read. A second parser behind a strict one would have to agree with it in everything; this
//! one has nothing to agree with.

use std::sync::Arc;

use http::Response;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Duration, Instant};

use crate::answer::Answer;
use crate::engine::{Engine, Origin};
use crate::event::{Denial, Way};
use crate::exchange::{Asked, exchange, refuse};
use crate::refusal::Refusal;
use crate::upload::Source;
use crate::wire::Wire;

mod chunks;
mod head;
mod reader;
mod writer;

pub(crate) use chunks::Decoder;
pub(crate) use head::Fault;
pub(crate) use head::LINES;
pub(crate) use head::{Head, Scan, parse};
use reader::{Act, Client, ClientFault, NoHead, Reader};
pub(crate) use reader::{Body, BodyFault};
use writer::{Close, Written, write, write_continue};

/// What is read and forgotten of a client that sends on after it was refused, so that it comes to
/// read why: at most, and for how long.
const DRAINED: usize = 256 * 1024;
const DRAINED_FOR: Duration = Duration::from_secs(1);

/// What becomes of a connection after a request.
enum Next {
    Request(Reader),
    /// Everything was said; the client may still be sending.
    Close(Option<Reader>),
    /// What was said is not all.
    Reset,
}

/// Serves the requests of a connection, one after the other. `wire` is what lies below its two
/// sides.
pub(crate) async fn serve(
    engine: &Arc<Engine>,
    origin: &Origin,
    (input, mut output): (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin),
    wire: &Wire,
) {
    let mut reader = Reader::new(input);
    let mut closing = engine.closing.subscribe();
    let mut first = engine.patience.head;
    loop {
        let head = tokio::select! {
            biased;
            head = reader.head(first, engine.patience.head) => head,
            _ = closing.wait_for(|closing| *closing) => return,
        };
        first = engine.patience.keep;
        let next = match head {
            Ok(head) => answer(engine, origin, head, reader, &mut output).await,
            Err(NoHead::Gone) => return,
            Err(NoHead::Refused(fault)) => {
                let refused = refuse(engine, origin, fault.into(), None, None).await;
                match write(&mut output, refused, false, Close::Yes).await {
                    Written::Whole => Next::Close(Some(reader)),
                    Written::Cut => Next::Reset,
                }
            }
        };
        match next {
            Next::Request(back) => reader = back,
            Next::Close(back) => {
                use tokio::io::AsyncWriteExt;
                // A client that is gone already needs no farewell.
                output.shutdown().await.ok();
                if let Some(mut reader) = back {
                    reader.drain(DRAINED, Instant::now() + DRAINED_FOR).await;
                }
                return;
            }
            Next::Reset => {
                wire.break_off();
                return;
            }
        }
    }
}

/// Answers a connection before it has asked, and closes it.
pub(crate) async fn turn_away(engine: &Arc<Engine>, origin: &Origin, mut wire: Wire, why: Refusal) {
    let refused = refuse(engine, origin, why, None, None).await;
    write(&mut wire, refused, false, Close::Yes).await;
}

async fn answer(
    engine: &Arc<Engine>,
    origin: &Origin,
    head: Head,
    reader: Reader,
    output: &mut (impl AsyncWrite + Send + Unpin),
) -> Next {
    let scheme = match origin.served.way() {
        Way::Intercept => "https",
        _ => "http",
    };
    let no_body = head.method == "HEAD";
    let close = head.close;
    let (body, mut client) = Body::new(reader, &head, engine.patience.body);
    let mut authorities = vec![head.host];
    if let Some((named, authority)) = head.absolute {
        // One of another scheme is another service.
        authorities.push(if named == scheme { authority } else { String::new() });
    }
    let source = if body.is_done() { Source::Empty } else { Source::Http1(body) };
    let (method, target, headers) = (head.method, head.target, head.headers);
    let asked = Asked { method, target, authorities, headers, source };
    let response = {
        let exchange = exchange(engine, origin, asked);
        tokio::pin!(exchange);
        loop {
            tokio::select! {
                biased;
                response = &mut exchange => break Ok(response),
                act = client.act() => match act {
                    Act::Fault(fault) => break Err(fault),
                    Act::Wanted => if !write_continue(output).await {
                        break Err(ClientFault::Gone);
                    },
                },
            }
        }
    };
    match response {
        Ok(response) => finish(response, (no_body, close), client, output).await,
        Err(ClientFault::Gone) => Next::Reset,
        Err(ClientFault::Early) => {
            let early = "a second request was sent before the answer to the first";
            let refusal = Refusal::because(Denial::Malformed, early);
            let refused = refuse(engine, origin, refusal, None, None).await;
            match write(output, refused, false, Close::Yes).await {
                Written::Whole => Next::Close(client.reader().map(|(reader, _)| reader)),
                Written::Cut => Next::Reset,
            }
        }
    }
}

/// Writes an answer, as long as the client keeps still.
async fn finish(
    response: Response<Answer>,
    (no_body, close): (bool, bool),
    mut client: Client,
    output: &mut (impl AsyncWrite + Send + Unpin),
) -> Next {
    let own = matches!(response.body(), Answer::Own(_));
    // A refused client may be in the middle of a body that nobody reads.
    let close = if own || close { Close::Yes } else { Close::No };
    let over = response.body().holding().map(|holding| holding.over());
    let over = async move {
        match over {
            Some(over) => over.await,
            None => std::future::pending().await,
        }
    };
    let written = tokio::select! {
        biased;
        written = write(output, response, no_body, close) => written,
        // The client may be reading nothing.
        _end = over => Written::Cut,
        _fault = client.fault(), if !own => Written::Cut,
    };
    match (written, client.reader()) {
        (Written::Cut, _) => Next::Reset,
        (Written::Whole, Some((reader, true))) if close == Close::No => Next::Request(reader),
        (Written::Whole, reader) => Next::Close(reader.map(|(reader, _)| reader)),
    }
}
