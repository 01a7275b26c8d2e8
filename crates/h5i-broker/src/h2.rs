//! A connection in HTTP/2, which only an intercepted program speaks.
//!
//! Framing is binary there, and a field can't hold the end of a line: the `h2` crate is the only
//! parser. What HTTP/1.1 would have refused for its spelling can't be spelled.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answer::Answer;
use crate::engine::{Engine, Origin};
use crate::event::Denial;
use crate::exchange::{Asked, exchange, refuse};
use crate::h1::Fault;
use crate::refusal::Refusal;
use crate::target::Target;
use crate::upload::Source;

/// Requests at once on one connection.
const STREAMS: u32 = 128;
/// What of requests' bodies may wait here: of one, and of a whole connection.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What of an answer may wait here, for one request.
const SEND: usize = 64 * 1024;

pub(crate) async fn serve(
    engine: &Arc<Engine>,
    origin: &Arc<Origin>,
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let asked = Arc::new(AtomicU64::new(0));
    let answered = Arc::new(AtomicU64::new(0));
    let service = {
        let (engine, origin) = (Arc::clone(engine), Arc::clone(origin));
        let (asked, answered) = (Arc::clone(&asked), Arc::clone(&answered));
        service_fn(move |request: Request<Incoming>| {
            asked.fetch_add(1, Ordering::Relaxed);
            let (engine, origin) = (Arc::clone(&engine), Arc::clone(&origin));
            let answered = Arc::clone(&answered);
            async move {
                let response = one(&engine, &origin, request).await;
                answered.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(response)
            }
        })
    };
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND)
        .max_header_list_size(64 * 1024)
        .serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let mut closing = engine.closing.subscribe();
    let mut closed = false;
    let mut seen = 0;
    let mut patience = engine.patience.head;
    loop {
        tokio::select! {
            biased;
            // How it ended is nobody's business: each request has told its own end.
            _ended = &mut connection => return,
            _ = closing.wait_for(|closing| *closing), if !closed => {
                closed = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep(patience), if !closed => {
                patience = engine.patience.keep;
                let now = asked.load(Ordering::Relaxed);
                // Nothing was asked for as long as a connection is kept, and nothing is open.
                if now == seen && origin.served.is_idle() {
                    closed = true;
                    connection.as_mut().graceful_shutdown();
                }
                seen = now;
            }
        }
    }
}

async fn one(
    engine: &Arc<Engine>,
    origin: &Arc<Origin>,
    request: Request<Incoming>,
) -> Response<Answer> {
    match read(request) {
        Ok(asked) => exchange(engine, origin, asked).await,
        Err(refusal) => refuse(engine, origin, refusal, None, None).await,
    }
}

fn read(request: Request<Incoming>) -> Result<Asked, Refusal> {
    let (parts, body) = request.into_parts();
    if parts.method == http::Method::CONNECT {
        return Err(Fault::Upgrade.into());
    }
    let malformed = |why| Refusal::because(Denial::Malformed, why);
    let (Some(scheme), Some(authority)) = (parts.uri.scheme_str(), parts.uri.authority()) else {
        return Err(malformed("there is no :scheme or no :authority"));
    };
    if scheme != "https" {
        return Err(Denial::OtherHost.into());
    }
    if parts.headers.len() > crate::h1::LINES {
        return Err(Denial::Limits.into());
    }
    let path = parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
    let target = Target::new(path).map_err(|fault| Refusal::from(Fault::from(fault)))?;
    let mut authorities = vec![authority.as_str().to_owned()];
    for host in parts.headers.get_all(http::header::HOST) {
        let host = host.to_str().map_err(|_bad| malformed("the Host header is none"))?;
        authorities.push(host.to_owned());
    }
    let source = if body.is_end_stream() { Source::Empty } else { Source::Http2(body) };
    let method = parts.method.as_str().to_owned();
    Ok(Asked { method, target, authorities, headers: parts.headers, source })
}
