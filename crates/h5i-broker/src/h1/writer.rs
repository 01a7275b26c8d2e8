//! An answer in HTTP/1.1, as it comes.

use std::io::Write;

use bytes::{Buf, Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::answer::Answer;

/// What is smaller is copied, so that it goes out in one write with its framing.
const SMALL: usize = 8 * 1024;

/// Whether the connection ends after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    Yes,
    No,
}

/// How far an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Whole,
    Cut,
}

/// Tells a client that waits to send its body.
pub(crate) async fn write_continue(output: &mut (impl AsyncWrite + Unpin)) -> bool {
    output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_ok() && output.flush().await.is_ok()
}

/// Writes head and body; every piece goes out before the next is waited for.
pub(crate) async fn write(
    output: &mut (impl AsyncWrite + Unpin),
    response: Response<Answer>,
    no_body: bool,
    close: Close,
) -> Written {
    let (parts, mut body) = response.into_parts();
    let no_body = no_body
        || parts.status.is_informational()
        || matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = body.size_hint().exact();
    let mut pending = BytesMut::with_capacity(1024);
    head(&mut pending, &parts, if no_body { Framing::None } else { length.into() }, close);
    let chunked = !no_body && length.is_none();
    while !body.is_end_stream() {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            // The head goes out at once when the body is still to come.
            written = flush(output, &mut pending), if !pending.is_empty() => {
                if !written {
                    return Written::Cut;
                }
                continue;
            }
        };
        match frame {
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { continue };
                if data.is_empty() || no_body {
                    continue;
                }
                if !piece(output, &mut pending, data, chunked).await {
                    return Written::Cut;
                }
            }
            Some(Err(_broken)) => return Written::Cut,
            None => break,
        }
    }
    // What tells its end goes with it.
    if chunked {
        pending.extend_from_slice(b"0\r\n\r\n");
    }
    if flush(output, &mut pending).await { Written::Whole } else { Written::Cut }
}

async fn flush(output: &mut (impl AsyncWrite + Unpin), pending: &mut BytesMut) -> bool {
    output.write_all_buf(pending).await.is_ok() && output.flush().await.is_ok()
}

async fn piece(
    output: &mut (impl AsyncWrite + Unpin),
    pending: &mut BytesMut,
    data: Bytes,
    chunked: bool,
) -> bool {
    if chunked {
        pending.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    }
    let end: &[u8] = if chunked { b"\r\n" } else { b"" };
    if data.len() <= SMALL {
        pending.extend_from_slice(&data);
        pending.extend_from_slice(end);
        return flush(output, pending).await;
    }
    let mut all = (&mut *pending).chain(data).chain(end);
    output.write_all_buf(&mut all).await.is_ok() && output.flush().await.is_ok()
}

/// How the client finds the end of the body.
enum Framing {
    None,
    Length(u64),
    Chunked,
}

impl From<Option<u64>> for Framing {
    fn from(length: Option<u64>) -> Self {
        length.map_or(Self::Chunked, Self::Length)
    }
}

fn head(out: &mut BytesMut, parts: &http::response::Parts, framing: Framing, close: Close) {
    let reason = parts.status.canonical_reason().unwrap_or("Status");
    line(out, format_args!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()));
    for (name, value) in &parts.headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::None => {}
        Framing::Length(length) => line(out, format_args!("content-length: {length}\r\n")),
        Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    if close == Close::Yes {
        out.extend_from_slice(b"connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    use bytes::BufMut;
    // A buffer in memory takes everything.
    out.writer().write_fmt(text).ok();
}
