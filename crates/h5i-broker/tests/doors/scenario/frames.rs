//! HTTP/2 by hand: fields that no library would write.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use h5i_broker::Way;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::client::{LONG, trusting};
use crate::world::{HOST, RUN, World};

type Tls = StreamOwned<ClientConnection, UnixStream>;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// RFC 9113, section 4.1.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Literal fields without an index and without a code. RFC 7541, section 6.2.2.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

fn open(world: &World) -> Tls {
    let stream = world.divert(Some(RUN));
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut config = trusting(world.broker().authority().unwrap());
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from(HOST).unwrap();
    let mut tls = StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream);
    tls.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    tls.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    tls
}

/// The kind of the first frame that says what became of the request.
fn outcome(tls: &mut Tls) -> u8 {
    loop {
        let mut head = [0; 9];
        if tls.read_exact(&mut head).is_err() {
            return GOAWAY;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        tls.read_exact(&mut payload).unwrap();
        if [HEADERS, RST_STREAM, GOAWAY].contains(&head[3]) {
            return head[3];
        }
    }
}

/// Sends one request of these fields, and a body if there is one.
fn ask(world: &World, fields: &[(&str, &str)], body: Option<&[u8]>) -> u8 {
    let mut tls = open(world);
    let flags = END_HEADERS | if body.is_some() { 0 } else { END_STREAM };
    tls.write_all(&frame(HEADERS, flags, 1, &block(fields))).unwrap();
    if let Some(body) = body {
        tls.write_all(&frame(DATA, END_STREAM, 1, body)).unwrap();
    }
    tls.flush().unwrap();
    outcome(&mut tls)
}

pub(crate) fn fields() {
    let world = World::new();
    let own = world.host(Way::Intercept);
    let plain = [(":method", "GET"), (":scheme", "https"), (":authority", &own), (":path", "/ok")];
    let with = |more: &[(&'static str, &'static str)]| [&plain[..], more].concat();
    let other = |place: usize, field: (&'static str, &'static str)| {
        let mut fields = plain.to_vec();
        fields[place] = field;
        fields
    };
    for bad in [
        with(&[("x", "a\r\ny: b")]),
        with(&[("x", "a\nb")]),
        with(&[("x", "a\0")]),
        with(&[("x\r\ny", "a")]),
        with(&[("x: y", "a")]),
        with(&[("X-Upper", "a")]),
        with(&[("", "a")]),
        with(&[("connection", "x")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("upgrade", "h2c")]),
        with(&[(":path", "/other")]),
        with(&[("x", "y"), (":path", "/other")]),
        other(3, (":path", "/ok HTTP/1.1\r\nx: y")),
        other(3, (":path", "/ok\r\n")),
        other(3, (":path", "")),
        other(0, (":method", "GET /x HTTP/1.1\r\n")),
        other(2, (":authority", "api.example.com\r\nx: y")),
        other(1, (":scheme", "http")),
        plain[1..].to_vec(),
        plain[..3].to_vec(),
    ] {
        let kind = ask(&world, &bad, None);
        assert!([HEADERS, RST_STREAM, GOAWAY].contains(&kind));
        assert!(world.server.seen().is_empty(), "the service saw {bad:?}");
        // The same connection's twin, with nothing wrong in it.
        assert_eq!(ask(&world, &with(&[("x", "a")]), None), HEADERS);
        assert_eq!(world.server.seen().len(), 1, "after {bad:?}");
        world.server.forget();
    }
    // A body of another size than it says is not one that has ended.
    let post = |length: &'static str| {
        [&[(":method", "POST")], &plain[1..], &[("content-length", length)]].concat()
    };
    for (length, body) in [("3", "four"), ("5", "four"), ("x", "four")] {
        ask(&world, &post(length), Some(body.as_bytes()));
        assert!(world.server.seen().iter().all(|seen| !seen.whole), "{length}");
    }
    world.server.forget();
    assert_eq!(ask(&world, &post("4"), Some(b"four")), HEADERS);
    assert_eq!(world.server.seen().iter().map(|seen| seen.body).collect::<Vec<_>>(), [4]);
}
