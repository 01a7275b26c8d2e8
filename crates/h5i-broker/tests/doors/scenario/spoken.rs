//! Protocols beside plain HTTP/1.1.

use std::sync::Arc;

use bytes::Bytes;
use h5i_broker::{Denial, Event, Way};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::trusting;
use crate::server::{CANARY, Speaks};
use crate::world::{HOST, RUN, WAYS, World};

type Handshake = (
    http2::SendRequest<Full<Bytes>>,
    http2::Connection<TokioIo<TlsStream<UnixStream>>, Full<Bytes>, TokioExecutor>,
);

async fn handshake(world: &World, stream: std::os::unix::net::UnixStream) -> Handshake {
    stream.set_nonblocking(true).unwrap();
    let mut config = trusting(world.broker().authority().unwrap());
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = UnixStream::from_std(stream).unwrap();
    let name = ServerName::try_from(HOST).unwrap();
    let tls = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(65_535).handshake(TokioIo::new(tls)).await.unwrap()
}

/// Asks over HTTP/2, all of these on one connection.
pub(crate) fn ask(world: &World, requests: Vec<Request<Full<Bytes>>>) -> Vec<Response<Bytes>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = world.divert(Some(RUN));
    runtime.block_on(async {
        let (mut send, connection) = handshake(world, stream).await;
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for request in requests {
            let (parts, body) = send.send_request(request).await.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            answers.push(Response::from_parts(parts, body));
        }
        answers
    })
}

/// A stream over HTTP/2 that nobody reads; `then` is done when everything in between is full.
pub(crate) fn http2_deaf(then: impl FnOnce(&World)) {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = world.divert(Some(RUN));
    let request = get(&world.host(Way::Intercept), "/flood");
    let held = runtime.block_on(async {
        let (mut send, connection) = handshake(&world, stream).await;
        let connection = tokio::spawn(connection);
        (send.send_request(request).await.unwrap(), connection)
    });
    // What is not taken out of the window is not asked for again.
    let mut full = world.server.full.clone();
    loop {
        let at = *runtime.block_on(full.wait_for(Option::is_some)).unwrap();
        // The broker has had its turn when it has answered somebody else.
        assert_eq!(world.ask(Way::Intercept, "GET /ok", "").text(), "ok");
        if *full.borrow() == at {
            break;
        }
    }
    then(&world);
    drop(held);
}

pub(crate) fn get(authority: &str, path: &str) -> Request<Full<Bytes>> {
    let uri = format!("https://{authority}{path}");
    Request::builder()
        .uri(uri)
        .header("authorization", "Bearer mine")
        .body(Full::default())
        .unwrap()
}

pub(crate) fn http2() {
    for speaks in [Speaks::Http1, Speaks::Http2] {
        let world = World::with(|make| make.speaks = speaks);
        let own = world.host(Way::Intercept);
        let mut post = get(&own, "/count");
        *post.method_mut() = http::Method::POST;
        *post.body_mut() = Full::new(Bytes::from(vec![b'x'; 300_000]));
        let answers = ask(&world, vec![get(&own, "/ok"), get(&own, "/echo"), post]);
        assert_eq!(&answers[0].body()[..], b"ok");
        let echo = String::from_utf8_lossy(answers[1].body()).into_owned();
        assert!(echo.contains(&"*".repeat(CANARY.len())) && !echo.contains("sk-canary"), "{echo}");
        assert_eq!(answers[2].status(), StatusCode::OK);
        let seen = world.server.seen();
        assert_eq!((seen.len(), seen[2].body), (3, 300_000));
        for one in &seen {
            assert_eq!(one.header("authorization"), [format!("Bearer {CANARY}")]);
            assert_eq!(one.head.contains("HTTP/2"), speaks == Speaks::Http2, "{one:?}");
        }
    }
    // And from HTTP/1.1 to HTTP/2.
    let world = World::with(|make| make.speaks = Speaks::Http2);
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").text(), "ok");
    assert!(world.server.seen()[0].head.contains("HTTP/2"));
}

pub(crate) fn http2_names() {
    let world = World::new();
    let own = world.host(Way::Intercept);
    let with_host = |host: &str| {
        let mut request = get(&own, "/ok");
        request.headers_mut().insert("host", host.parse().unwrap());
        request
    };
    let mut plain = get(&own, "/ok");
    *plain.uri_mut() = format!("http://{own}/ok").parse().unwrap();
    let answers = ask(
        &world,
        vec![
            get("other.example", "/ok"),
            with_host("other.example"),
            plain,
            get(&own, "/a/../ok"),
            get(&own, "/%2e%2e/ok"),
            with_host(&own),
        ],
    );
    let refused: Vec<_> =
        answers.iter().map(|answer| answer.headers().get("x-h5i-refused")).collect();
    let words = ["other-host", "other-host", "other-host", "malformed", "malformed"];
    assert_eq!(
        refused[..5],
        words.map(|word| Some(http::HeaderValue::from_static(word))).each_ref().map(Option::as_ref)
    );
    assert_eq!(answers[0].status(), StatusCode::MISDIRECTED_REQUEST);
    assert_eq!((refused[5], &answers[5].body()[..]), (None, &b"ok"[..]));
    assert_eq!(world.server.seen().len(), 1);
    world.refused(Denial::OtherHost);
    assert_eq!(world.log.all().iter().filter(|event| matches!(event, Event::Used(_))).count(), 1);
}

pub(crate) fn upgrades() {
    let world = World::new();
    for way in WAYS {
        for (line, more) in [
            ("GET /ok", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
            ("GET /ok", "Upgrade: h2c\r\n"),
            ("GET /ok", "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"),
            ("CONNECT api.example.com:443", ""),
            ("PRI *", ""),
        ] {
            let answer = world.ask(way, line, more);
            let refused = answer.refused();
            let expected = if line.starts_with("PRI") { "malformed" } else { "upgrade" };
            assert_eq!((answer.status, refused), (400, Some(expected)), "{way:?} {line} {more:?}");
        }
        let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        assert_eq!(world.raw(way, preface).unwrap().refused(), Some("upgrade"));
        assert!(world.server.seen().is_empty());
        assert_eq!(world.ask(way, "GET /ok", "Connection: keep-alive\r\n").text(), "ok");
        world.server.forget();
        // The service's own wish to change is not passed on either.
        assert_eq!(world.ask(way, "GET /switch", "").refused(), Some("bad-answer"));
        world.server.forget();
    }
}
