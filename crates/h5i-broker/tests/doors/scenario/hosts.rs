//! Which service is meant.

use h5i_broker::{ChangeError, Denial, Diverted, Way};

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::client::{Connection, LONG, trusting};
use crate::world::{HOST, RUN, WAYS, World};

pub(crate) fn names() {
    let world = World::new();
    for way in WAYS {
        let (port, own) = (world.port, world.host(way));
        let token = format!("Authorization: Bearer {}\r\n", world.token);
        let request = |target: &str, host: &str| {
            world
                .raw(way, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{token}\r\n"))
                .unwrap()
        };
        let scheme = if way == Way::Intercept { "https" } else { "http" };
        let wrong = if way == Way::Intercept { "http" } else { "https" };
        for host in [
            "other.example".to_owned(),
            format!("{own}."),
            format!("{own}0"),
            format!("x.{own}"),
            format!("u@{own}"),
            own.split(':').next().unwrap().to_owned(),
            format!("[::1]:{port}"),
            format!("127.0.0.2:{port}"),
            String::new(),
        ] {
            let answer = request("/ok", &host);
            assert_eq!(
                (answer.status, answer.refused()),
                (421, Some("other-host")),
                "{way:?} {host}"
            );
        }
        for target in [
            format!("{scheme}://other.example/ok"),
            format!("{wrong}://{own}/ok"),
            format!("{scheme}://u:p@{own}/ok"),
        ] {
            assert_eq!(request(&target, &own).refused(), Some("other-host"), "{target}");
        }
        assert!(world.server.seen().is_empty());
        assert_eq!(request("/ok", &own).text(), "ok");
        assert_eq!(request("/ok", &own.to_uppercase()).text(), "ok");
        assert_eq!(request(&format!("{scheme}://{own}/ok"), &own).text(), "ok");
        if way == Way::Reverse {
            assert_eq!(request("/ok", &format!("localhost:{port}")).text(), "ok");
        }
        world.server.forget();
    }
}

pub(crate) fn server_names() {
    let world = World::new();
    let pem = world.broker().authority().unwrap();
    // Another name, by a client that would trust whatever is shown: it is told, and asks nothing.
    let handshake = |name: &str| {
        let stream = world.divert(Some(RUN));
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut config = trusting(pem);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut tls = StreamOwned::new(tls, stream);
        tls.write_all(b"x").and_then(|()| tls.flush())
    };
    for name in ["other.example", "127.0.0.1"] {
        let error = handshake(name).unwrap_err();
        assert!(error.to_string().contains("UnrecognisedName"), "{name}: {error}");
        world.refused(Denial::OtherHost);
    }
    handshake(HOST).unwrap();
    // No TLS at all.
    let mut stream = world.divert(Some(RUN));
    stream.write_all(world.text(Way::Intercept, "GET /ok", "").as_bytes()).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).ok();
    assert!(!heard.starts_with(b"HTTP"), "{heard:?}");
    world.refused(Denial::Malformed);
    assert!(world.server.seen().is_empty());
    assert_eq!(world.ask(Way::Intercept, "GET /ok", "").text(), "ok");
}

/// What was read of a connection before it was handed over is its beginning.
pub(crate) fn read_already() {
    let world = World::new();
    for count in [1, 5, 64] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        let text = world.text(Way::Intercept, "GET /ok", "");
        let pem = world.broker().authority().unwrap().to_owned();
        let asking = std::thread::spawn(move || {
            let name = ServerName::try_from(HOST).unwrap();
            let tls = ClientConnection::new(Arc::new(trusting(&pem)), name).unwrap();
            let mut connection = Connection::over(tls, ours);
            connection.send(text);
            connection.answer().unwrap().text()
        });
        let mut already = vec![0; count];
        theirs.read_exact(&mut already).unwrap();
        let mut diverted = Diverted::new(theirs.into(), "intercept");
        (diverted.already, diverted.run) = (already, Some(RUN));
        world.broker().intercept(diverted).unwrap();
        assert_eq!(asking.join().unwrap(), "ok");
    }
    let (one, _other) = UnixStream::pair().unwrap();
    let nobody = world.broker().intercept(Diverted::new(one.into(), "none"));
    assert!(matches!(nobody, Err(ChangeError::NoGrant { .. })));
}

pub(crate) fn redirects() {
    let world = World::new();
    for way in WAYS {
        let answer = world.ask(way, "GET /where", "");
        assert_eq!(
            (answer.status, answer.header("location")),
            (302, Some("https://other.example/ok"))
        );
    }
    // The resolver fails on any other name.
    assert_eq!(world.server.seen().len(), WAYS.len());
}

pub(crate) fn untrusted() {
    let world = World::with(|make| make.trusted = false);
    for way in WAYS {
        let answer = world.ask(way, "GET /ok", "");
        assert_eq!((answer.status, answer.refused()), (502, Some("unreachable")));
    }
    assert!(world.server.seen().is_empty());
    assert_eq!(World::new().ask(Way::Reverse, "GET /ok", "").text(), "ok");
    // The box's certificate is for the grant's host only, and trusts no connection but this one.
    let world = World::new();
    let stranger = World::new();
    let pem = stranger.broker().authority().unwrap();
    let mut connection = Connection::tls(world.divert(Some(RUN)), pem, HOST);
    assert!(!connection.send("GET /ok HTTP/1.1\r\n\r\n") || connection.answer().is_none());
}
