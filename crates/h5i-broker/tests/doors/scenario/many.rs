//! Many at once, and slow ones.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use h5i_broker::{Patience, Way};
use h5i_testkit::Moment;

use super::carried::resident;
use crate::client::{Connection, LONG};
use crate::world::World;

/// Open descriptors.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

pub(crate) fn idle() {
    let world = World::new();
    world.server.events.send(1).unwrap();
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").text(), "ok");
    let (memory, files) = (resident(), descriptors());
    let mut streams: Vec<Connection> = (0..1000)
        .map(|_| {
            let mut connection = Connection::plain(world.port);
            connection.send(world.text(Way::Reverse, "GET /events", ""));
            connection
        })
        .collect();
    for stream in &mut streams {
        assert_eq!(stream.head().unwrap().status, 200);
        stream.chunk().unwrap();
    }
    let (memory, files) = (resident() - memory, descriptors() - files);
    println!(
        "      1,000 idle streams: {memory} KiB and {files} descriptors more, with the service's and \
         the clients' ends"
    );
    assert!(memory < 200_000, "{memory} KiB");
    assert!(files <= 4_100, "{files} descriptors");
    // 1,024 at once are carried, and one more is told so.
    streams.extend((0..24).map(|_| {
        let mut connection = Connection::plain(world.port);
        connection.send(world.text(Way::Reverse, "GET /events", ""));
        assert_eq!(connection.head().unwrap().status, 200);
        connection.chunk().unwrap();
        connection
    }));
    let mut more = Connection::plain(world.port);
    assert_eq!(more.answer().unwrap().refused(), Some("at-once"));
    // None was lost.
    world.server.events.send(2).unwrap();
    for stream in &mut streams {
        assert_eq!(stream.chunk().unwrap(), b"data: 1\n\n");
    }
    drop(streams);
    world.server.wait_open(0, LONG);
}

/// The bound is on all grants together: who asks by one leaves no more for the others.
pub(crate) fn bounded() {
    let world = World::with(|make| make.at_once = 4);
    world.server.events.send(1).unwrap();
    let stream = |way| {
        let mut connection = world.connect(way);
        connection.send(world.text(way, "GET /events", ""));
        assert_eq!(connection.head().unwrap().status, 200);
        connection.chunk().unwrap();
        connection
    };
    let mut open: Vec<Connection> =
        [Way::Reverse, Way::Intercept, Way::Reverse, Way::Intercept].map(stream).into();
    assert_eq!(Connection::plain(world.port).answer().unwrap().refused(), Some("at-once"));
    assert!(world.raw(Way::Intercept, "").is_none());
    // A place that one leaves is the next one's, by whichever grant.
    drop(open.remove(1));
    let end = Instant::now() + LONG;
    loop {
        let answer = world.ask(Way::Reverse, "GET /ok", "");
        if answer.refused() != Some("at-once") {
            break assert_eq!(answer.text(), "ok");
        }
        assert!(Instant::now() < end, "the place is still taken");
    }
    world.server.events.send(2).unwrap();
    for stream in &mut open {
        stream.chunk().unwrap();
    }
}

/// Who opens and closes connections has no more asked than there are places.
pub(crate) fn fleeting() {
    let world = World::new();
    world.peers.1.shut(true);
    for _ in 0..1024 {
        drop(TcpStream::connect(("127.0.0.1", world.port)).unwrap());
    }
    // They are closed, and it is still to be found out whose they were.
    assert_eq!(Connection::plain(world.port).answer().unwrap().refused(), Some("at-once"));
    world.peers.1.shut(false);
    world.peers.1.passed(1024);
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").text(), "ok");
}

pub(crate) fn slow() {
    assert_eq!(Patience::default().head, Duration::from_secs(10));
    // Each impatience in a world of its own: where the machine is slow no other comes before it.
    let short = Duration::from_millis(300);
    let world = World::with(|make| make.patience.head = short);
    let way = Way::Reverse;
    // A head that never ends: each byte comes in time, the whole does not.
    let mut connection = TcpStream::connect(("127.0.0.1", world.port)).unwrap();
    let began = Moment::now();
    connection.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut heard = [0; 64];
    let answer = loop {
        connection.write_all(b"G").ok();
        if let Ok(count) = std::io::Read::read(&mut connection, &mut heard) {
            break String::from_utf8_lossy(&heard[..count]).into_owned();
        }
        assert!(began.elapsed() < Duration::from_secs(8), "it is still served");
    };
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    // One that says nothing at all.
    assert!(Connection::plain(world.port).is_closed());
    // A body that stops.
    let world = World::with(|make| make.patience.body = short);
    let mut connection = world.connect(way);
    connection.send(world.text(way, "POST /count", "content-length: 5\r\n"));
    connection.send("hel");
    assert_eq!(connection.answer().unwrap().status, 408);
    // A service that says nothing, or nothing more.
    let world = World::with(|make| make.patience.answer = short);
    assert_eq!(world.ask(way, "GET /hang", "").refused(), Some("unreachable"));
    // Its first word is not to come too late.
    let world = World::with(|make| make.patience.stream = Duration::from_secs(4));
    world.server.events.send(1).unwrap();
    let answer = world.ask(way, "GET /events", "");
    assert!(!answer.whole && answer.body == b"data: 0\n\n");
    // Who is in time is served, one after the other.
    let world = World::new();
    let mut connection = world.connect(way);
    for _ in 0..3 {
        connection.send(world.text(way, "GET /ok", ""));
        assert_eq!(connection.answer().unwrap().text(), "ok");
    }
}
