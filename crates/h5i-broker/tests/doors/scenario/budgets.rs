//! What a grant may spend, and the credential that it spends.

use h5i_broker::{End, Event, Way};
use h5i_policy::Bytes;

use crate::server::{CANARY, RENEWED};
use crate::world::{Key, RUN, WAYS, World};

pub(crate) fn each() {
    for way in WAYS {
        let world = World::with(|make| make.grant.requests = Some(2));
        for status in [200, 200, 429, 429] {
            let answer = world.ask(way, "GET /ok", "");
            assert_eq!(answer.status, status);
            assert!(status == 200 || answer.refused() == Some("budget"));
        }
        assert_eq!(world.server.seen().len(), 2);

        // Bytes of answers: to the byte, then broken off.
        let world = World::with(|make| make.grant.bytes_down = Some(Bytes::new(100_000)));
        let answer = world.ask(way, "GET /down?60000", "");
        assert!(answer.whole && answer.body.len() == 60_000);
        let answer = world.ask(way, "GET /down?60000", "");
        assert!(!answer.whole && answer.body.len() <= 40_000, "{}", answer.body.len());
        assert_eq!(world.ask(way, "GET /ok", "").refused(), Some("budget"));
        let finished =
            world.log.wait(|event| matches!(event, Event::Finished { end: End::Budget, .. }));
        assert!(matches!(finished, Event::Finished { received: 40_000, .. }), "{finished:?}");
        world.log.wait(|event| matches!(event, Event::Withdrawn { end: End::Budget, .. }));

        // Bytes of requests: what says its size is refused before it begins.
        let world = World::with(|make| make.grant.bytes_up = Some(Bytes::new(100_000)));
        let body = |size: usize| format!("content-length: {size}\r\n\r\n{}", "x".repeat(size));
        let send = |text: String| {
            let mut connection = world.connect(way);
            let head = world.text(way, "POST /count", "");
            connection.send(head.strip_suffix("\r\n").unwrap());
            connection.send(text);
            connection.answer()
        };
        assert_eq!(send(body(60_000)).unwrap().text(), "60000");
        assert_eq!(send(body(60_000)).unwrap().refused(), Some("budget"));
        assert_eq!(world.server.seen().len(), 1);
        assert_eq!(send(body(1_000)).unwrap().text(), "1000");
        // What does not say it is cut within its chunk, and never whole.
        let chunk = format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", 60_000)
            + &"x".repeat(60_000)
            + "\r\n0\r\n\r\n";
        let answer = send(chunk.clone()).unwrap();
        assert_eq!((answer.status, answer.refused()), (429, Some("budget")));
        let last =
            world.log.wait(|event| matches!(event, Event::Finished { end: End::Budget, .. }));
        assert!(matches!(last, Event::Finished { sent: 39_000, status: None, .. }), "{last:?}");
        let whole = world.server.seen().iter().filter(|seen| seen.whole).count();
        assert_eq!(whole, 2);
        // Another run's budget is its own.
        assert_eq!(world.ask(way, "GET /ok", "").refused(), Some("budget"));
        let _issued = world.issue(RUN + 1);
        let state = world.broker().state();
        let left = |run| state.iter().find(|one| one.grant == World::name(way) && one.run == run);
        assert_eq!(left(RUN + 1).unwrap().left.sent, Some(100_000));
        assert_eq!(left(RUN).unwrap().ended, Some(End::Budget));
    }
}

pub(crate) fn renewed() {
    let small = "content-length: 5\r\n\r\nhello".to_owned();
    let chunked = "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_owned();
    let large = format!("content-length: 100000\r\n\r\n{}", "x".repeat(100_000));
    for way in WAYS {
        for (body, expected) in [(&small, "5"), (&chunked, "5"), (&large, "who?")] {
            let world = World::with(|make| make.key = Key::Renewable);
            let mut connection = world.connect(way);
            let head = world.text(way, "POST /login", "");
            connection.send(head.strip_suffix("\r\n").unwrap());
            connection.send(body);
            let answer = connection.answer().unwrap();
            assert_eq!(answer.text(), expected, "{way:?}");
            let seen = world.server.seen();
            assert_eq!(seen[0].header("authorization"), [format!("Bearer {CANARY}")]);
            if expected == "5" {
                assert_eq!(seen[1].header("authorization"), [format!("Bearer {RENEWED}")]);
                assert_eq!((seen.len(), seen[1].body, seen[1].whole), (2, 5, true));
            }
            // From then on it is the new one, at once.
            assert_eq!(world.ask(way, "GET /login", "").status, 200);
        }
        // Twin: without another one the service's word is passed on.
        let world = World::new();
        let answer = world.ask(way, "GET /login", "");
        assert_eq!((answer.status, answer.refused()), (401, None));
    }
}

pub(crate) fn missing() {
    for way in WAYS {
        let world = World::with(|make| make.key = Key::Missing);
        let answer = world.ask(way, "GET /ok", "");
        assert_eq!((answer.status, answer.refused()), (502, Some("no-credential")));
        assert!(world.server.seen().is_empty());
        assert!(!world.log.all().iter().any(|event| matches!(event, Event::Used(_))));
    }
    // A grant that names a secret for which there is nobody to ask.
    let world = World::with(|make| {
        make.key = Key::None;
        make.grant.secret = Some("env:KEY".parse().unwrap());
    });
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").refused(), Some("no-credential"));
}
