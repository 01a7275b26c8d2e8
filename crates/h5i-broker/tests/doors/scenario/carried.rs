//! What passes, passes whole, as it comes, and in bounded memory.

use std::time::{Duration, Instant};

use h5i_broker::{End, Event};

use crate::client::LONG;
use crate::world::{WAYS, World};

pub(crate) fn events() {
    for way in WAYS {
        let world = World::new();
        world.server.events.send(1).unwrap();
        let mut connection = world.connect(way);
        connection.send(world.text(way, "GET /events", ""));
        let head = connection.head().unwrap();
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        for count in 0..20 {
            // The service sends the next one only when this one has come.
            assert_eq!(connection.chunk().unwrap(), format!("data: {count}\n\n").as_bytes());
            world.server.events.send(count + 2).unwrap();
        }
        // A client that goes is noticed though nothing is sent.
        drop(connection);
        world.server.wait_open(0, LONG);
        world.log.wait(|event| matches!(event, Event::Finished { end: End::Client, .. }));
    }
}

/// Resident memory, in KiB.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn bulk() {
    const SIZE: u64 = 100_000_000;
    for way in WAYS {
        let world = World::new();
        assert_eq!(world.ask(way, "GET /ok", "").text(), "ok");
        let before = resident();
        let mut connection = world.connect(way);
        connection.send(world.text(way, &format!("GET /down?{SIZE}"), ""));
        assert_eq!(connection.head().unwrap().header("content-length"), Some("100000000"));
        assert_eq!(connection.count(SIZE), SIZE);
        connection.send(world.text(way, "POST /count", &format!("content-length: {SIZE}\r\n")));
        let part = vec![b'x'; 1_000_000];
        for _ in 0..SIZE / 1_000_000 {
            assert!(connection.send(&part));
        }
        assert_eq!(connection.answer().unwrap().text(), SIZE.to_string());
        let grown = resident().saturating_sub(before);
        println!("      100 MB each way by {way:?}: {grown} KiB more");
        assert!(grown < 20_000, "{grown} KiB more");
        // Nobody reads: what waits on the way is bounded, too.
        let before = resident();
        let mut deaf = world.connect(way);
        deaf.send(world.text(way, &format!("GET /down?{SIZE}"), ""));
        deaf.head().unwrap();
        assert_eq!(world.ask(way, "GET /ok", "").text(), "ok");
        let grown = resident().saturating_sub(before);
        assert!(grown < 20_000, "{grown} KiB more");
        assert_eq!(deaf.count(SIZE), SIZE, "and nothing is lost");
    }
}

pub(crate) fn broken_off() {
    let world = World::new();
    for way in WAYS {
        // Its size, its chunks or nothing says where it ends; then only TLS does.
        for line in ["GET /cut", "GET /cut-chunks", "GET /cut-open"] {
            let answer = world.ask(way, line, "");
            assert_eq!(answer.status, 200);
            assert!(!answer.whole, "{way:?} {line}: {answer:?}");
            assert!(b"part".starts_with(&answer.body));
        }
        assert!(world.ask(way, "GET /halves", "").whole);
        let closed = world.ask(way, "GET /closed", "");
        assert!(closed.whole && closed.text() == "part");
    }
    world.log.wait(|event| {
        matches!(event, Event::Finished { end: End::Service, status: Some(200), .. })
    });
}

/// How long the broker reads on of who was refused.
const DRAINED_FOR: Duration = Duration::from_secs(1);

/// Who is refused in the middle of what it sends comes to read why.
pub(crate) fn refused_early() {
    let world = World::new();
    for way in WAYS {
        let mut connection = world.connect(way);
        let began = Instant::now();
        connection.send(world.text(way, "BREW /count", "content-length: 200000\r\n"));
        let answer = connection.answer().unwrap();
        assert!(answer.whole && answer.refused() == Some("method"), "{answer:?}");
        // Who sends first and reads then is not stopped in the middle, unless that takes long.
        for _ in 0..20 {
            let sent = connection.send(vec![b'x'; 10_000]);
            assert!(sent || began.elapsed() >= DRAINED_FOR, "{way:?} {:?}", began.elapsed());
        }
        drop(connection);
        // And no byte of it is taken for another request.
        let mut connection = world.connect(way);
        connection.send(world.text(way, "BREW /count", "content-length: 5\r\n"));
        connection.send(world.text(way, "GET /ok", ""));
        assert_eq!(connection.answer().unwrap().status, 403);
        assert!(connection.is_closed());
    }
    assert!(world.server.seen().is_empty());
}

pub(crate) fn expect() {
    let world = World::new();
    for way in WAYS {
        let mut connection = world.connect(way);
        let more = "content-length: 5\r\nexpect: 100-continue\r\n";
        connection.send(world.text(way, "POST /count", more));
        assert_eq!(connection.line().unwrap(), "HTTP/1.1 100 Continue");
        assert_eq!(connection.line().unwrap(), "");
        connection.send("hello");
        assert_eq!(connection.answer().unwrap().text(), "5");
        let seen = world.server.seen().pop().unwrap();
        assert!(seen.header("expect").is_empty(), "{seen:?}");
        // What is refused is refused before the body is sent.
        let mut connection = world.connect(way);
        connection.send(world.text(way, "BREW /count", more));
        assert_eq!(connection.answer().unwrap().status, 403);
    }
}
