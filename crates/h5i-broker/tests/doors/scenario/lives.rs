//! How long a grant holds.

use std::io::{Read, Write};
use std::time::{Duration, SystemTime};

use h5i_broker::{ChangeError, Denial, End, Event, Issue, IssueError, Uses, Way};
use h5i_policy::Millis;
use h5i_testkit::Moment;

use crate::client::{Connection, LONG};
use crate::world::{RUN, WAYS, World};

/// Within what an open stream is cut, by what is promised.
const PROMISED: Duration = Duration::from_secs(1);
/// The same with what a busy machine lets one thread wait. What is not cut goes on without an end.
const SOON: Duration = Duration::from_secs(5);

type Ending = fn(&World, &str);

/// How long a grant lives that is to end by itself, in milliseconds: what is done with it before
/// comes to its turn within that.
const LIFE: u64 = 5000;

/// What ends a grant, how that is told, and what the next request hears.
const ENDINGS: &[(Ending, End, &str)] = &[
    (|world, grant| world.broker().revoke(grant, None).unwrap(), End::Revoked, "revoked"),
    (|world, grant| world.broker().revoke(grant, Some(RUN)).unwrap(), End::Revoked, "revoked"),
    (|world, _| world.broker().end(RUN), End::RunEnded, "expired"),
    (|world, _| world.broker().suspend(), End::Suspended, "suspended"),
];

/// Waits until the service's side of every stream is over, which is soon after `began` on a machine
/// that works.
fn is_cut(world: &World, began: Moment, what: impl std::fmt::Debug) -> Duration {
    world.server.wait_open(0, LONG);
    let took = began.elapsed();
    assert!(took < SOON, "{what:?} after {took:?}");
    took
}

/// A stream whose first event has come.
fn stream(world: &World, way: Way) -> Connection {
    let mut connection = world.connect(way);
    connection.send(world.text(way, "GET /events", ""));
    assert_eq!(connection.head().unwrap().status, 200);
    assert_eq!(connection.chunk().unwrap(), b"data: 0\n\n");
    connection
}

pub(crate) fn cut() {
    let mut took = Vec::new();
    for way in WAYS {
        for (ending, end, word) in ENDINGS {
            let world = World::new();
            world.server.events.send(1).unwrap();
            let mut open = stream(&world, way);
            let mut kept = world.connect(way);
            kept.send(world.text(way, "GET /ok", ""));
            assert_eq!(kept.answer().unwrap().text(), "ok");
            let began = Moment::now();
            ending(&world, World::name(way));
            // Not an end: an error, or the connection's end within the body.
            open.chunk().unwrap_err();
            took.push(is_cut(&world, began, end));
            world.log.wait(|event| {
                matches!(event, Event::Finished { end: own, status: Some(200), .. } if own == end)
            });
            // The next byte of a new request, on a connection that was open before.
            kept.send(world.text(way, "GET /ok", ""));
            let answer = kept.answer().unwrap();
            assert_eq!((answer.status, answer.refused()), (401, Some(*word)), "{way:?} {end:?}");
            assert_eq!(world.ask(way, "GET /ok", "").refused(), Some(*word));
        }
        // Twin: the stream of another run goes on.
        let world = World::new();
        world.issue(2);
        world.server.events.send(1).unwrap();
        let mut open = stream(&world, way);
        world.broker().end(2);
        world.broker().revoke("other", None).unwrap();
        world.server.events.send(2).unwrap();
        assert_eq!(open.chunk().unwrap(), b"data: 1\n\n");
        assert!(matches!(world.broker().revoke("none", None), Err(ChangeError::NoGrant { .. })));
        assert!(matches!(
            world.broker().revoke("reverse", Some(2)),
            Err(ChangeError::NotHeld { .. })
        ));
    }
    // One may have had to wait for this machine, most have not.
    took.sort();
    assert!(took[took.len() / 2] < PROMISED, "{took:?}");
}

pub(crate) fn cut_elsewhere() {
    for way in WAYS {
        // Before there is an answer.
        let world = World::new();
        let mut waiting = world.connect(way);
        waiting.send(world.text(way, "GET /hang", ""));
        world.server.wait_open(1, LONG);
        let began = Moment::now();
        world.broker().revoke(World::name(way), None).unwrap();
        is_cut(&world, began, way);
        assert_eq!(waiting.answer().unwrap().refused(), Some("revoked"));
        // While the program does not read, and everything in between is full.
        let world = World::new();
        let mut deaf = world.connect(way);
        deaf.send(world.text(way, "GET /flood", ""));
        world.server.wait_open(1, LONG);
        deaf.head().unwrap();
        let began = Moment::now();
        world.broker().revoke(World::name(way), None).unwrap();
        world.server.wait_open(0, LONG);
        // All of it is over, not only the service's side.
        let ended = |event: &Event| matches!(event, Event::Finished { end: End::Revoked, .. });
        world.log.wait(ended);
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert!(deaf.is_closed());
    }
    super::spoken::http2_deaf(|world| {
        let began = Moment::now();
        world.broker().revoke("intercept", None).unwrap();
        is_cut(world, began, "HTTP/2");
    });
    // By time: the stream lives as long as the grant, and not much longer.
    for way in WAYS {
        let world = World::with(|make| make.grant.lasts = Some(Millis::new(LIFE)));
        let began = Moment::now();
        let (port, token) = world.issue(RUN);
        world.server.events.send(1).unwrap();
        let mut open = match way {
            Way::Intercept => stream(&world, way),
            _ => {
                let mut open = Connection::plain(port);
                let host = world.host(way);
                open.send(format!(
                    "GET /events HTTP/1.1\r\nHost: {host}\r\nX-Api-Key: {token}\r\n\r\n"
                ));
                open.head().unwrap();
                open.chunk().unwrap();
                open
            }
        };
        open.chunk().unwrap_err();
        assert!(began.elapsed() < Duration::from_millis(LIFE) + SOON, "{:?}", began.elapsed());
        world.log.wait(|event| matches!(event, Event::Withdrawn { end: End::Expired, .. }));
        assert_eq!(world.ask(way, "GET /ok", "").status, 401);
        world.log.wait(|event| matches!(event, Event::Finished { end: End::Expired, .. }));
    }
}

/// What was answered is told before the end of the run whose last act it was.
pub(crate) fn answered() {
    let world = World::new();
    for run in 100..150 {
        let (port, token) = world.issue(run);
        let mut connection = Connection::plain(port);
        let host = format!("127.0.0.1:{port}");
        let bearer = format!("authorization: Bearer {token}");
        connection.send(format!("GET /ok HTTP/1.1\r\nHost: {host}\r\n{bearer}\r\n\r\n"));
        assert_eq!(connection.answer().unwrap().text(), "ok");
        world.broker().end(run);
        let told = world.log.all();
        let at = |wanted: &dyn Fn(&Event) -> bool| told.iter().rposition(wanted);
        let finished = at(&|event| matches!(event, Event::Finished { .. }));
        let withdrawn = at(&|event| matches!(event, Event::Withdrawn { .. }));
        let begun = at(&|event| matches!(event, Event::Used { .. }));
        assert!(begun.is_some() && begun < finished && finished < withdrawn, "{told:#?}");
    }
}

pub(crate) fn extended() {
    let world = World::with(|make| make.grant.lasts = Some(Millis::new(LIFE)));
    world.server.events.send(1).unwrap();
    let mut open = stream(&world, Way::Reverse);
    let until = world.broker().extend("reverse", Duration::from_secs(60)).unwrap();
    assert!(until > SystemTime::now() + Duration::from_secs(50));
    // The other grant of the same run was not extended: its end is a moment to wait for.
    world.log.wait(|event| {
        matches!(event, Event::Withdrawn { grant, end: End::Expired, .. } if grant == "intercept")
    });
    world.server.events.send(2).unwrap();
    assert_eq!(open.chunk().unwrap(), b"data: 1\n\n");
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").text(), "ok");
    assert!(matches!(
        world.broker().extend("intercept", Duration::from_secs(1)),
        Err(ChangeError::NotHeld { .. })
    ));
}

pub(crate) fn frozen() {
    let world = World::new();
    world.broker().suspend();
    assert!(matches!(world.broker().issue(&Issue::to(5)), Err(IssueError::Suspended)));
    for way in WAYS {
        assert_eq!(world.ask(way, "GET /ok", "").refused(), Some("suspended"));
    }
    world.broker().resume();
    // Who holds the connection is known without a token.
    assert_eq!(world.ask(Way::Intercept, "GET /ok", "").text(), "ok");
    for _ in 0..2 {
        let answer = world.ask(Way::Reverse, "GET /ok", "");
        assert_eq!((answer.status, answer.refused()), (401, Some("suspended")));
    }
    let (port, token) = world.issue(RUN);
    let mut connection = Connection::plain(port);
    let host = world.host(Way::Reverse);
    connection.send(format!("GET /ok HTTP/1.1\r\nHost: {host}\r\nX-Api-Key: {token}\r\n\r\n"));
    assert_eq!(connection.answer().unwrap().text(), "ok");
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").status, 401, "the old one stays dead");
}

pub(crate) fn terms() {
    let world = World::new();
    let mut issue = Issue::to(2);
    issue.uses = Uses::Once;
    world.broker().issue(&issue).unwrap();
    let ask = |run| {
        let pem = world.broker().authority().unwrap();
        let mut connection = Connection::tls(world.divert(Some(run)), pem, crate::world::HOST);
        connection.send(world.text(Way::Intercept, "GET /ok", ""));
        connection.answer().unwrap().status
    };
    assert_eq!((ask(2), ask(2)), (200, 429));
    let mut issue = Issue::to(3);
    issue.not_before = Some(SystemTime::now() + Duration::from_secs(3600));
    world.broker().issue(&issue).unwrap();
    assert_eq!(ask(3), 401);
    let mut issue = Issue::to(4);
    issue.not_after = Some(SystemTime::now());
    world.broker().issue(&issue).unwrap();
    assert_eq!(ask(4), 401);
    let mut issue = Issue::to(5);
    issue.not_before = Some(SystemTime::now() - Duration::from_secs(1));
    issue.not_after = Some(SystemTime::now() + Duration::from_secs(3600));
    world.broker().issue(&issue).unwrap();
    assert_eq!(ask(5), 200);
    let mut issue = Issue::to(6);
    issue.which = h5i_broker::Which::Only(["other".to_owned()].into());
    assert_eq!(world.broker().issue(&issue).unwrap().len(), 2);
    assert_eq!(ask(6), 401);
    issue.which = h5i_broker::Which::Only(["none".to_owned()].into());
    assert!(matches!(world.broker().issue(&issue), Err(IssueError::NoGrant { .. })));
}

pub(crate) fn closed() {
    for way in WAYS {
        let world = World::new();
        world.server.events.send(1).unwrap();
        let mut open = stream(&world, way);
        let before = world.server.seen().len();
        let mut asking = world.connect(way);
        let began = Moment::now();
        *world.log.closed.lock().unwrap() = true;
        asking.send(world.text(way, "GET /ok", ""));
        let answer = asking.answer();
        assert!(answer.is_none_or(|answer| answer.status == 401));
        assert_eq!(world.server.seen().len(), before, "nothing is sent off the record");
        // And what was open is not any more.
        open.chunk().unwrap_err();
        is_cut(&world, began, way);
        assert!(matches!(world.broker().issue(&Issue::to(9)), Err(IssueError::Ended)));
    }
    // Twin: with a record it is sent, and on record before.
    for way in WAYS {
        let world = World::new();
        let (tell, told) = std::sync::mpsc::channel();
        let seen = world.server.seen.clone();
        *world.log.hook.lock().unwrap() = Some(Box::new(move |event| {
            if matches!(event, Event::Used(_)) {
                tell.send(seen.lock().unwrap().len()).unwrap();
            }
        }));
        assert_eq!(world.ask(way, "GET /ok", "").text(), "ok");
        assert_eq!((told.recv().unwrap(), world.server.seen().len()), (0, 1));
    }
}

pub(crate) fn told() {
    let mut world = World::new();
    for _ in 0..5 {
        assert_eq!(world.ask(Way::Reverse, "BREW /ok", "").status, 403);
    }
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").text(), "ok");
    let state = world.broker().state();
    let one = state.iter().find(|one| one.grant == "reverse").unwrap();
    assert_eq!((one.uses, one.received, one.run, one.ended), (1, 2, RUN, None));
    world.server.events.send(1).unwrap();
    let mut open = stream(&world, Way::Reverse);
    let began = Moment::now();
    drop(world.broker.take());
    assert!(began.elapsed() < SOON * 2, "{:?}", began.elapsed());
    open.chunk().unwrap_err();
    let events = world.log.all();
    let counts: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Refused { denial: Denial::Method, count, .. } => Some(*count),
            _ => None,
        })
        .collect();
    assert_eq!(counts, [1, 4]);
    let finished = |event: &&Event| matches!(event, Event::Finished { end: End::Ended, .. });
    assert_eq!(events.iter().filter(finished).count(), 1, "{events:#?}");
    let ended = |event: &&Event| matches!(event, Event::Withdrawn { end: End::Ended, .. });
    assert_eq!(events.iter().filter(ended).count(), 3);
    let used = events.iter().filter(|event| matches!(event, Event::Used(_))).count();
    let finished = events.iter().filter(|event| matches!(event, Event::Finished { .. })).count();
    assert_eq!(used, finished);
    // Nobody listens any more.
    let gone = std::net::TcpStream::connect(("127.0.0.1", world.port)).and_then(|mut stream| {
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])
    });
    gone.unwrap_err();
}
