//! What a grant lists.

use h5i_broker::{Denial, Event};
use h5i_policy::{Allowed, Method, Pattern};

use crate::world::{WAYS, World};

pub(crate) fn paths() {
    let world = World::with(|make| {
        let listed = ["/repos/acme/site/**", "/ok"].map(|text| Pattern::new(text).unwrap());
        make.grant.paths = Allowed::Only(listed.into());
    });
    for way in WAYS {
        for (target, status) in [
            ("/repos/acme/site/x", 200),
            ("/repos/acme/%73ite/x", 200),
            ("/repos/acme/site/a%20b?x=../..", 200),
            ("/ok", 200),
            ("/", 403),
            ("/%6fk", 200),
            ("/OK", 403),
            ("/repos/acme/Site/x", 403),
            ("/repos/acme/site2/x", 403),
            ("/repos/acme", 403),
            ("/other/repos/acme/site/x", 403),
            ("/repos/acme/site/../other", 400),
            ("/repos/acme/site/%2e%2e/other", 400),
            ("/repos/acme/site/.%2e/other", 400),
            ("/repos/acme/site/..%2fother", 400),
            ("/repos/acme/site/x%2f..%2f..%2fother", 400),
            ("/repos/acme/site/x%2fy", 200),
            ("/repos/acme%2fsite/x", 403),
            ("/repos%2facme/site/x", 403),
            ("/repos/acme/site/%2e%2e%5cother", 400),
            ("/repos/acme/site/%252e%252e/other", 400),
            ("/repos//acme/site/x", 400),
            ("//repos/acme/site/x", 400),
            ("/repos/acme/site;/x", 400),
            ("/repos/acme/site/x%00", 400),
            ("/repos/acme/site/x%", 400),
            ("/repos/acme/site/%ff", 400),
            ("/repos/acme/site/\\..\\x", 400),
            ("*", 400),
        ] {
            let before = world.server.seen().len();
            let answer = world.ask(way, &format!("GET {target}"), "");
            assert_eq!(answer.status, status, "{way:?} {target}: {}", answer.text());
            let passed = usize::from(status == 200);
            assert_eq!(world.server.seen().len(), before + passed, "{target}");
        }
        let seen = world.server.seen();
        let sent = |text: &str| seen.iter().any(|seen| seen.head.starts_with(text));
        // What was matched is what is sent.
        assert!(sent("GET /repos/acme/site/x HTTP/1.1") && !sent("GET /repos/acme/%73ite"));
        assert!(sent("GET /repos/acme/site/a%20b?x=../.. HTTP/1.1"));
    }
    // What would be another request behind the rules.
    for header in
        ["X-HTTP-Method-Override: DELETE", "x_http_method: PUT", "X-Original-URL: /secret"]
    {
        for way in WAYS {
            let answer = world.ask(way, "GET /ok", &format!("{header}\r\n"));
            assert_eq!(answer.refused(), Some("malformed"), "{header}");
        }
    }
    let all = World::new();
    assert_eq!(all.ask(WAYS[0], "GET /ok", "X-HTTP-Method-Override: DELETE\r\n").status, 200);
    let refused = world.refused(Denial::Path);
    assert!(matches!(refused, Event::Refused { request: Some(text), .. } if text == "GET /"));
}

pub(crate) fn methods() {
    let world = World::with(|make| {
        make.grant.methods = Allowed::Only([Method::Get, Method::Post].into());
    });
    for way in WAYS {
        for (method, status) in [
            ("GET", 200),
            ("POST", 200),
            ("HEAD", 403),
            ("PUT", 403),
            ("DELETE", 403),
            ("OPTIONS", 403),
            ("TRACE", 403),
            ("get", 403),
            ("PROPFIND", 403),
        ] {
            let mut connection = world.connect(way);
            connection.send(world.text(way, &format!("{method} /ok"), ""));
            assert_eq!(connection.head().unwrap().status, status, "{way:?} {method}");
        }
    }
    // Any of the known ones is not any at all: TRACE answers with what it got.
    let world = World::new();
    for way in WAYS {
        assert_eq!(world.ask(way, "TRACE /ok", "").refused(), Some("method"));
        let mut connection = world.connect(way);
        connection.send(world.text(way, "HEAD /ok", ""));
        let head = connection.head().unwrap();
        assert_eq!((head.status, head.header("content-length")), (200, Some("2")));
        // And nothing after it: the next answer begins right there.
        connection.send(world.text(way, "GET /ok", ""));
        assert_eq!(connection.answer().unwrap().text(), "ok");
    }
}
