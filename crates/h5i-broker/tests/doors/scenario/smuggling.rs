//! Bytes that could be read in two ways.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use h5i_broker::{Denial, Way};
use h5i_policy::{Allowed, Method, Pattern};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::client::{LONG, no_more};
use crate::server::{CANARY, Seen};
use crate::world::{WAYS, World};

/// What is refused, and what is nearly the same and passes. `@` stands for the lines that every
/// request has: Host, and the token.
const TABLE: &[(&str, &str)] = &[
    (
        "POST /ok HTTP/1.1\r\n@Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Content-Length: 4\r\n\r\nabcd",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        "POST /ok HTTP/1.1\r\n@Content-Length: 5\r\n\r\nabcde",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        "POST /ok HTTP/1.1\r\n@Content-Length: 4\r\n\r\nabcd",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Content-Length: 4, 4\r\n\r\nabcd",
        "POST /ok HTTP/1.1\r\n@Content-Length:  4  \r\n\r\nabcd",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Content-Length: +4\r\n\r\nabcd",
        "POST /ok HTTP/1.1\r\n@content-length:4\r\n\r\nabcd",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Content-Length: 04\r\n\r\nabcd",
        "POST /ok HTTP/1.1\r\n@Content-Length: 0\r\n\r\n",
    ),
    ("POST /ok HTTP/1.1\r\n@Content_Length: 4\r\n\r\nabcd", "POST /ok HTTP/1.1\r\n@\r\n"),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding:chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: \tchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@transfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n",
    ),
    ("GET /ok HTTP/1.1\r\n@X: a\r\n b\r\n\r\n", "GET /ok HTTP/1.1\r\n@X: a b\r\n\r\n"),
    ("GET /ok HTTP/1.1\n@\r\n", "GET /ok HTTP/1.1\r\n@\r\n"),
    ("GET /ok HTTP/1.1\r\n@X: a\nY: b\r\n\r\n", "GET /ok HTTP/1.1\r\n@X: a\r\nY: b\r\n\r\n"),
    ("GET /ok HTTP/1.1\r\n@X: a\rY: b\r\n\r\n", "GET /ok HTTP/1.1\r\n@X: a\tY: b\r\n\r\n"),
    ("GET /ok HTTP/1.1\r\n@X: a\0\r\n\r\n", "GET /ok HTTP/1.1\r\n@X: a0\r\n\r\n"),
    ("GET /ok HTTP/1.1\r\n@X: \x01\r\n\r\n", "GET /ok HTTP/1.1\r\n@X: \u{e9}\r\n\r\n"),
    ("GET /ok HTTP/1.1\r\n@X\r\n\r\n", "GET /ok HTTP/1.1\r\n@X:\r\n\r\n"),
    ("GET /ok HTTP/1.1\r\n@: x\r\n\r\n", "GET /ok HTTP/1.1\r\n@-: x\r\n\r\n"),
    ("GET /ok HTTP/1.0\r\n@\r\n", "GET /ok HTTP/1.1\r\n@\r\n"),
    ("GET /ok HTTP/1.2\r\n@\r\n", "GET /ok HTTP/1.1\r\n@\r\n"),
    ("GET /ok\r\n@\r\n", "GET /ok? HTTP/1.1\r\n@\r\n"),
    ("GET  /ok HTTP/1.1\r\n@\r\n", "GET /ok HTTP/1.1\r\n@\r\n"),
    ("GET /ok HTTP/1.1 \r\n@\r\n", "GET /ok HTTP/1.1\r\n@\r\n"),
    ("GET /o k HTTP/1.1\r\n@\r\n", "GET /o%20k HTTP/1.1\r\n@\r\n"),
    ("\r\nGET /ok HTTP/1.1\r\n@\r\n", "GET /ok HTTP/1.1\r\n@\r\n"),
    ("GET /ok HTTP/1.1\r\n@Host: x\r\n\r\n", "GET /ok HTTP/1.1\r\n@Hosts: x\r\n\r\n"),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n4\nabcd\n0\n\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n00000004\r\nabcd\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n0x4\r\nabcd\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n5\r\nabcd\r\n0\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: x\r\n\r\n",
        "POST /ok HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n00\r\n\r\n",
    ),
    ("GET /ok HTTP/1.1\r\n@Expect: x\r\n\r\n", "GET /ok HTTP/1.1\r\n@Expect: 100-continue\r\n\r\n"),
];

fn text(world: &World, way: Way, pattern: &str) -> String {
    let token = match way {
        Way::Intercept => String::new(),
        _ => format!("Authorization: Bearer {}\r\n", world.token),
    };
    pattern.replacen('@', &format!("Host: {}\r\n{token}", world.host(way)), 1)
}

pub(crate) fn table() {
    let world = World::new();
    for way in WAYS {
        for (bad, good) in TABLE {
            let before = whole(&world);
            let mut connection = world.connect(way);
            connection.send(text(&world, way, bad));
            let answer = connection.answer().unwrap_or_else(|| panic!("no answer to {bad:?}"));
            assert_eq!(answer.status, 400, "{way:?} {bad:?}");
            assert_eq!(answer.refused(), Some("malformed"), "{bad:?}");
            assert!(connection.is_closed(), "{bad:?}");
            assert_eq!(whole(&world), before, "the service saw {bad:?}");
            let mut connection = world.connect(way);
            connection.send(text(&world, way, good));
            let mut answer = connection.answer().unwrap();
            if answer.status == 100 {
                answer = connection.answer().unwrap();
            }
            assert_eq!(answer.status, 200, "{way:?} {good:?}: {}", answer.text());
            assert_eq!(whole(&world), before + 1, "the service saw one for {good:?}");
        }
    }
    world.refused(Denial::Malformed);
}

/// Requests that the service saw to their ends.
fn whole(world: &World) -> usize {
    world.server.seen().iter().filter(|seen| seen.whole).count()
}

pub(crate) fn pipelined() {
    let world = World::new();
    for way in WAYS {
        let before = world.server.seen().len();
        let one = text(&world, way, "GET /hang HTTP/1.1\r\n@\r\n");
        let two = text(&world, way, "GET /ok HTTP/1.1\r\n@\r\n");
        let mut connection = world.connect(way);
        connection.send(format!("{one}{two}"));
        let answer = connection.answer().unwrap();
        assert_eq!((answer.status, answer.refused()), (400, Some("malformed")), "{way:?}");
        assert!(connection.is_closed());
        // A body that is longer than it says is the beginning of another request.
        let long = text(&world, way, "POST /hang HTTP/1.1\r\n@Content-Length: 1\r\n\r\nGET /ok");
        let mut connection = world.connect(way);
        connection.send(long);
        assert_eq!(connection.answer().unwrap().status, 400, "{way:?}");
        let seen = world.server.seen();
        assert!(seen[before..].iter().all(|seen| !seen.head.contains("/ok")), "{seen:?}");
        // One after the other, on one connection.
        let mut connection = world.connect(way);
        for _ in 0..3 {
            connection.send(&two);
            assert_eq!(connection.answer().unwrap().text(), "ok");
        }
    }
}

pub(crate) fn broken_off() {
    let world = World::new();
    for body in ["4\r\nabcd\r\n4\r\nab", "4\r\nabcd\r\n", "4\r\nabcd\r\n0\r\n", "4\r\nabcd\r\nx"] {
        let before = world.server.seen().len();
        let head = "POST /count HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n";
        let mut stream = TcpStream::connect(("127.0.0.1", world.port)).unwrap();
        stream.write_all(text(&world, Way::Reverse, head).as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        no_more(&stream);
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).ok();
        assert!(!heard.starts_with(b"HTTP/1.1 200"), "{body:?}");
        let seen = world.server.seen();
        assert!(seen[before..].iter().all(|seen| !seen.whole), "{body:?}: {seen:?}");
    }
    let whole =
        text(&world, Way::Reverse, "POST /count HTTP/1.1\r\n@Content-Length: 4\r\n\r\nabcd");
    assert_eq!(world.raw(Way::Reverse, &whole).unwrap().text(), "4");
}

/// Pieces that chance would not find.
const PIECES: &[&str] = &[
    "GET /listed/a HTTP/1.1\r\n@\r\n",
    "POST /listed/b HTTP/1.1\r\n@Content-Length: 3\r\n\r\nabc",
    "POST /listed/c HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "GET /secret HTTP/1.1\r\n@\r\n",
    "GET ",
    "POST ",
    "/listed/x",
    "/listed/../secret",
    "/secret",
    " HTTP/1.1\r\n",
    "@",
    "Content-Length: 3\r\n",
    "Content-Length: 30\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Authorization: Bearer mine\r\n",
    "X-Api-Key: mine\r\n",
    "Cookie: mine\r\n",
    "X_Api_Key: mine\r\n",
    "Connection: close, Authorization\r\n",
    "Expect: 100-continue\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "0\r\n\r\n",
    "3\r\nabc\r\n",
    " ",
    ":",
    "\0",
    "%2e%2e",
];

const LINES: &[&str] = &[
    "GET /listed/a HTTP/1.1\r\n@",
    "POST /listed/b?x=/../secret HTTP/1.1\r\n@",
    "POST /listed/c HTTP/1.1\r\n@",
    "GET /secret HTTP/1.1\r\n@",
];

const BODIES: &[&str] = &["", "", "abc", "3\r\nabc\r\n0\r\n\r\n", "0\r\n\r\n"];

/// Anything, or something near a request, of which a byte may be another one.
fn written() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let bytes = |text: &&str| text.as_bytes().to_vec();
    let known = proptest::sample::select(PIECES).prop_map(move |piece| bytes(&piece));
    let piece = prop_oneof![8 => known, 1 => proptest::collection::vec(any::<u8>(), 1..8)];
    let anything = proptest::collection::vec(piece, 1..12);
    let lines: Vec<&str> = PIECES.iter().copied().filter(|piece| piece.contains(": ")).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.contains("HTTP/")).collect();
    let near = (
        proptest::sample::select(LINES),
        proptest::collection::vec(proptest::sample::select(lines), 0..4),
        proptest::sample::select(BODIES),
        proptest::option::weighted(0.5, (any::<prop::sample::Index>(), any::<u8>())),
    );
    let near = near.prop_map(|(line, headers, body, other)| {
        let mut text = [line, &headers.concat(), "\r\n", body].concat().into_bytes();
        if let Some((place, byte)) = other {
            *place.get_mut(&mut text) = byte;
        }
        vec![text]
    });
    prop_oneof![1 => anything, 3 => near]
}

pub(crate) fn anything() {
    let world = World::with(|make| {
        make.grant.methods = Allowed::Only([Method::Get, Method::Post].into());
        make.grant.paths = Allowed::Only([Pattern::new("/listed/**").unwrap()].into());
        let soon = Duration::from_millis(40);
        (make.patience.body, make.patience.keep) = (soon, soon);
        // What is whole is read as such where the machine is slow.
        make.patience.head = Duration::from_millis(300);
    });
    let pieces = written();
    let mut runner =
        TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let from = std::cell::Cell::new(0);
    let passed = std::cell::Cell::new(0);
    let check = |pieces: Vec<Vec<u8>>| {
        let lines = text(&world, Way::Reverse, "@");
        let mut stream = TcpStream::connect(("127.0.0.1", world.port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut text = Vec::new();
        for piece in pieces {
            match String::from_utf8(piece) {
                Ok(piece) => text.extend(piece.replace('@', &lines).into_bytes()),
                Err(error) => text.extend(error.into_bytes()),
            }
        }
        stream.write_all(&text).ok();
        // The broker closes what is no request, and what waits for more.
        stream.read_to_end(&mut Vec::new()).ok();
        let seen = world.server.seen();
        for one in &seen[from.get()..] {
            well_formed(one).map_err(|why| TestCaseError::fail(format!("{why}: {one:?}")))?;
            passed.set(passed.get() + 1);
        }
        from.set(seen.len());
        Ok(())
    };
    runner.run(&pieces, check).unwrap();
    assert!(passed.get() > 50, "only {} requests passed: this proves little", passed.get());
}

fn well_formed(seen: &Seen) -> Result<(), &'static str> {
    let ensure = |holds: bool, why| if holds { Ok(()) } else { Err(why) };
    let line = seen.head.lines().next().unwrap_or_default();
    let target = line.strip_suffix(" HTTP/1.1").ok_or("another version")?;
    let path = target.strip_prefix("GET ").or(target.strip_prefix("POST ")).ok_or("a method")?;
    let path = path.split('?').next().unwrap_or_default();
    ensure(path.starts_with("/listed/") && !path.contains(".."), "the path is not listed")?;
    // A name that a mutation made of theirs is another name.
    let credentials = ["authorization", "x-api-key", "cookie"];
    let own = |(name, value): (&str, &str)| {
        value == "mine" && credentials.contains(&name.to_lowercase().replace('_', "-").as_str())
    };
    let own = seen.head.lines().filter_map(|line| line.split_once(": ")).any(own);
    ensure(!own, "the client's own credential")?;
    ensure(!seen.head.replace("\r\n", "").contains(['\r', '\n', '\0']), "a control character")?;
    ensure(seen.header("authorization") == [format!("Bearer {CANARY}")], "the credential")?;
    ensure(seen.header("host").len() == 1, "hosts")?;
    let framed = (seen.header("content-length").len(), seen.header("transfer-encoding").len());
    ensure(framed.0 + framed.1 <= 1, "framed twice")
}
