//! Where the secret could come back, and where another could go out.

use h5i_broker::{Event, Way};

use crate::server::{CANARY, Speaks};
use crate::world::{Key, WAYS, World};

fn holds(text: &str) -> bool {
    // As it is, or in base64 at any place of a longer text.
    let forms = ["sk-canary", "c2stY2FuYXJ5", "stY2FuYXJ5", "LWNhbmFye"];
    forms.iter().any(|form| text.contains(form))
}

pub(crate) fn nowhere() {
    let world = World::new();
    for way in WAYS {
        for (line, more) in [
            ("GET /ok", ""),
            ("GET /echo", ""),
            ("GET /gzip", ""),
            ("GET /where", ""),
            ("GET /%2f", ""),
            ("BREW /ok", ""),
            ("GET /ok", "Host: x\r\n"),
            ("GET /ok", "Upgrade: x\r\n"),
        ] {
            let answer = world.ask(way, line, more);
            assert!(!holds(&format!("{answer:?} {}", answer.text())), "{line}");
        }
    }
    // It was used, so it could have been.
    assert!(world.server.seen().iter().any(|seen| seen.head.contains(CANARY)));
    let told = format!("{:?} {:?} {:?}", world.log.all(), world.broker().state(), world.broker());
    assert!(!holds(&told), "{told}");
    assert!(!told.contains(&world.token), "{told}");
    assert!(!holds(world.broker().authority().unwrap()));
}

pub(crate) fn own_credentials() {
    let world = World::new();
    let mine = "Authorization: Bearer mine\r\nX-Api-Key: mine\r\nApi-Key: mine\r\nCookie: mine\r\n\
        Proxy-Authorization: mine\r\nX_Api_Key: mine\r\nConnection: X-Hop\r\nX-Hop: mine\r\n\
        X-Kept: yes\r\nBeta: one\r\nRange: bytes=0-3\r\nX-Ms-Range: bytes=0-3\r\n\
        If-Range: x\r\n";
    for way in WAYS {
        let more = match way {
            Way::Intercept => mine.to_owned(),
            // Two headers of one name: the token is found in either.
            _ => mine
                .replace("mine\r\nX-Api", &format!("mine\r\nX-Api-Key: {}\r\nX-Api", world.token)),
        };
        assert_eq!(world.ask(way, "GET /ok", &more).text(), "ok");
        let seen = world.server.seen().pop().unwrap();
        assert_eq!(seen.header("authorization"), [format!("Bearer {CANARY}")], "{seen:?}");
        assert!(!seen.head.contains("mine"), "{seen:?}");
        assert!(!seen.head.contains("h5i_"), "the token is the broker's own: {seen:?}");
        assert_eq!(seen.header("x-kept"), ["yes"]);
        assert_eq!(seen.header("beta"), ["one, login"]);
        let ranges = ["range", "x-ms-range", "if-range"];
        let ranges = ranges.iter().flat_map(|name| seen.header(name));
        assert_eq!(ranges.count(), 0, "a part of the secret could not be found");
        assert_eq!(seen.header("accept-encoding"), ["identity"]);
        assert_eq!(
            seen.header("host"),
            [format!("api.example.com:{}", world.server.address.port())]
        );
    }
}

pub(crate) fn no_secret() {
    let world = World::with(|make| make.key = Key::None);
    for way in WAYS {
        let more = "X-Api-Key: mine\r\nCookie: mine\r\nAccept-Encoding: br\r\n";
        assert_eq!(world.ask(way, "GET /ok", more).text(), "ok");
        let seen = world.server.seen().pop().unwrap();
        assert_eq!((seen.header("x-api-key"), seen.header("cookie")), (vec!["mine"], vec!["mine"]));
        assert_eq!(seen.header("accept-encoding"), ["br"]);
        assert!(seen.header("authorization").is_empty(), "the token is the broker's own");
        assert_eq!(world.ask(way, "GET /echo", "").header("set-cookie"), Some("a=b"));
    }
}

pub(crate) fn echo() {
    for speaks in [Speaks::Http1, Speaks::Http2] {
        let world = World::with(|make| make.speaks = speaks);
        for way in WAYS {
            let answer = world.ask(way, "GET /echo", "X-Kept: yes\r\n");
            assert_eq!(answer.status, 200);
            assert!(answer.whole && !answer.text().contains("sk-canary"), "{}", answer.text());
            let stars = "*".repeat(CANARY.len());
            assert!(answer.text().contains(&format!("Bearer {stars}")), "{}", answer.text());
            assert!(answer.text().contains("x-kept: yes"));
            if speaks == Speaks::Http1 {
                assert_eq!(answer.header("x-echo"), Some(stars.as_str()));
                for gone in ["set-cookie", "alt-svc", "keep-alive"] {
                    assert_eq!(answer.header(gone), None);
                }
                let page = world.ask(way, "GET /page", "X-Kept: yes+no\r\n");
                let text = page.text();
                assert!(!text.contains("canary") && text.contains("Bearer&#32;***"), "{text}");
                assert!(text.contains("yes&#43;no"), "{text}");
                assert!(
                    page.header("x-echo").is_some_and(|echo| echo.trim_matches('*').is_empty())
                );
                let halves = world.ask(way, "GET /halves", "");
                assert_eq!(halves.text(), stars);
            }
        }
        let scrubbed = |event: &Event| matches!(event, Event::Finished { scrubbed: 1.., .. });
        world.log.wait(scrubbed);
    }
    // Where nothing is added, nothing is looked for.
    let world = World::with(|make| make.key = Key::None);
    assert_eq!(world.ask(Way::Reverse, "GET /halves", "").text(), CANARY);
}

pub(crate) fn packed() {
    let world = World::new();
    for way in WAYS {
        for line in ["GET /gzip", "GET /packed", "GET /part", "GET /named-part"] {
            let answer = world.ask(way, line, "");
            assert_eq!((answer.status, answer.refused()), (502, Some("bad-answer")), "{line}");
        }
    }
    let world = World::with(|make| make.key = Key::None);
    assert_eq!(world.ask(Way::Reverse, "GET /gzip", "").header("content-encoding"), Some("gzip"));
    assert_eq!(world.ask(Way::Reverse, "GET /part", "").status, 206);
}
