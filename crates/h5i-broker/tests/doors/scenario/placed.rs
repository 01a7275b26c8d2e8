//! Where the secret goes: into several headers, or into the query.

use h5i_broker::{Denial, Event, Way};
use http::HeaderValue;

use super::spoken::{ask, get};
use crate::client::Answer;
use crate::server::{CANARY, Seen, Speaks};
use crate::world::{Key, RUN, WAYS, World};

/// A secret that no query has as it is, and how it is sent.
const ODD: &str = "sk-odd/9rT3+kQ9=xV4 mB1&nZ8%";
const SENT: &str = "key=sk-odd%2F9rT3%2BkQ9%3DxV4%20mB1%26nZ8%25";
/// What every spelling of it has.
const PART: &str = "9rT3";

/// A world whose secret goes into the parameter `key`.
fn by_query(speaks: Speaks) -> World {
    World::with(|make| {
        make.speaks = speaks;
        make.key = Key::Sourced(ODD);
        make.grant.query = Some("key".parse().unwrap());
    })
}

/// The query of a request that the service saw.
fn query(seen: &Seen) -> &str {
    let target = seen.head.split(' ').nth(1).unwrap();
    target.split_once('?').map_or("", |(_, query)| query)
}

/// A request whose token is in nothing but its target.
fn raw(world: &World, target: &str) -> Answer {
    let host = world.host(Way::Reverse);
    world.raw(Way::Reverse, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap()
}

fn targets() -> [(&'static str, String); 5] {
    [
        ("/ok", SENT.to_owned()),
        ("/ok?a=1", format!("a=1&{SENT}")),
        ("/ok?key=mine", SENT.to_owned()),
        ("/ok?a=1&%6bey=mine&b&key=mine", format!("a=1&b&{SENT}")),
        // In another case it is another parameter.
        ("/ok?KEY=1", format!("KEY=1&{SENT}")),
    ]
}

pub(crate) fn parameter() {
    for speaks in [Speaks::Http1, Speaks::Http2] {
        let world = by_query(speaks);
        let last = || world.server.seen().pop().unwrap();
        for (target, sent) in targets() {
            for way in WAYS {
                let more = match way {
                    Way::Intercept => "authorization: Bearer mine\r\nx-api-key: mine\r\n",
                    _ => "x-api-key: mine\r\n",
                };
                assert_eq!(world.ask(way, &format!("GET {target}"), more).text(), "ok");
                assert_eq!(query(&last()), sent, "{way:?} {target}");
                assert!(!last().head.contains("mine"), "{:?}", last());
                assert!(last().header("authorization").is_empty());
            }
            let answers = ask(&world, vec![get(&world.host(Way::Intercept), target)]);
            assert_eq!(&answers[0].body()[..], b"ok");
            assert_eq!(query(&last()), sent, "HTTP/2 {target}");
            assert!(!last().head.contains("mine"), "{:?}", last());
        }
    }
    // Where the secret goes elsewhere, a query is the client's own business.
    let world = World::new();
    for way in WAYS {
        assert_eq!(world.ask(way, "GET /ok?key=mine", "").text(), "ok");
        assert_eq!(query(&world.server.seen().pop().unwrap()), "key=mine");
    }
}

pub(crate) fn smuggled() {
    const REFUSED: &[&str] = &[
        "a=1;key=mine",
        "a=1;%6bey=mine",
        "?key=mine",
        "key[]=mine",
        "key%5b0%5d=mine",
        "+key=mine",
        "key%20=mine",
        "key%00=mine",
        "%256bey=mine",
        // One that would have been taken out beside it changes nothing.
        "key=mine&a;key=mine",
    ];
    let world = by_query(Speaks::Http1);
    let other = World::new();
    for query in REFUSED {
        let target = format!("/ok?{query}");
        for way in WAYS {
            let answer = world.ask(way, &format!("GET {target}"), "");
            assert_eq!((answer.status, answer.refused()), (400, Some("malformed")), "{query}");
            assert!(answer.text().contains("parameter of the credential"), "{}", answer.text());
            assert_eq!(other.ask(way, &format!("GET {target}"), "").text(), "ok", "{query}");
        }
        let answers = ask(&world, vec![get(&world.host(Way::Intercept), &target)]);
        let refused = answers[0].headers().get("x-h5i-refused");
        assert_eq!(refused, Some(&HeaderValue::from_static("malformed")), "{query}");
    }
    // Nor by what is no origin-form, or has a fragment.
    for way in WAYS {
        let own = world.host(way);
        let scheme = if way == Way::Intercept { "https" } else { "http" };
        for (target, refused) in [
            (format!("{scheme}://{own}/ok?a;key=mine"), true),
            (format!("{scheme}://{own}?a;key=mine"), true),
            ("/ok?a#&key=mine".to_owned(), true),
            ("/ok?a%".to_owned(), true),
            (format!("{scheme}://{own}/ok?key=mine"), false),
        ] {
            let answer = world.ask(way, &format!("GET {target}"), "");
            assert_eq!(answer.status == 400, refused, "{target}: {}", answer.text());
        }
    }
    let seen = world.server.seen();
    assert_eq!(seen.len(), WAYS.len());
    assert!(seen.iter().all(|seen| query(seen) == SENT), "{seen:?}");
    world.refused(Denial::Malformed);
    // What is refused spends nothing.
    let used = world.log.all().into_iter().filter(|event| matches!(event, Event::Used(_)));
    assert_eq!(used.count(), WAYS.len());
}

pub(crate) fn token_in_query() {
    let world = by_query(Speaks::Http1);
    let encoded = world.token.replace('_', "%5f");
    for target in [
        format!("/ok?key={}", world.token),
        format!("/ok?%6bey={encoded}"),
        format!("/ok?a=1&key=mine&key={}", world.token),
    ] {
        assert_eq!(raw(&world, &target).text(), "ok", "{target}");
        let seen = world.server.seen().pop().unwrap();
        assert!(!seen.head.contains("h5i_") && !seen.head.contains(&encoded), "{seen:?}");
        assert!(query(&seen).ends_with(SENT), "{seen:?}");
    }
    let passed = world.server.seen().len();
    for target in [
        format!("/ok?KEY={}", world.token),
        format!("/ok?other={}", world.token),
        format!("/ok?key={}x", world.token),
        format!("/ok?key[]={}", world.token),
        format!("/{}", world.token),
    ] {
        assert_eq!(raw(&world, &target).refused(), Some("token"), "{target}");
    }
    assert_eq!(world.server.seen().len(), passed);
    // Where the secret goes elsewhere, that is no place for a token.
    let other = World::new();
    assert_eq!(raw(&other, &format!("/ok?key={}", other.token)).refused(), Some("token"));
}

pub(crate) fn handed_back() {
    for speaks in [Speaks::Http1, Speaks::Http2] {
        let world = by_query(speaks);
        let sent = SENT.strip_prefix("key=").unwrap();
        let stars = format!("key={}", "*".repeat(sent.len()));
        for way in WAYS {
            let moved = world.ask(way, "GET /moved?a=1", "");
            let location = moved.header("location").unwrap();
            assert!(location.ends_with(&format!("/moved?a=1&{stars}")), "{location}");
            let echo = world.ask(way, "GET /echo", "");
            assert!(echo.text().contains(&stars), "{}", echo.text());
            for answer in [moved, echo] {
                assert!(!format!("{answer:?}{}", answer.text()).contains(PART), "{answer:?}");
            }
        }
        let answers = ask(&world, vec![get(&world.host(Way::Intercept), "/moved")]);
        let location = answers[0].headers()["location"].to_str().unwrap();
        assert!(location.contains(&stars) && !location.contains(PART), "{location}");
        world.log.wait(|event| matches!(event, Event::Finished { scrubbed: 1.., .. }));
        // The service saw it, or it could not have come back.
        assert!(world.server.seen().iter().all(|seen| seen.head.contains(PART)));
    }
    // A short one, too, as it was sent.
    let world = World::with(|make| {
        make.key = Key::Sourced("9/T 3");
        make.grant.query = Some("key".parse().unwrap());
    });
    let moved = world.ask(Way::Reverse, "GET /moved", "");
    assert!(moved.header("location").unwrap().ends_with("/moved?key=*********"), "{moved:?}");
    assert_eq!(query(&world.server.seen()[0]), "key=9%2FT%203");
}

pub(crate) fn nowhere() {
    let world = by_query(Speaks::Http1);
    for way in WAYS {
        for target in ["/ok?a=1", "/echo?a=1", "/moved", "/gzip?a=1", "/cut?a=1", "/ok?a;key=1"] {
            let answer = world.ask(way, &format!("GET {target}"), "");
            assert!(!format!("{answer:?}{}", answer.text()).contains(PART), "{target}");
        }
    }
    let untrusted = World::with(|make| {
        make.key = Key::Sourced(ODD);
        make.grant.query = Some("key".parse().unwrap());
        make.trusted = false;
    });
    let answer = untrusted.ask(Way::Reverse, "GET /ok", "");
    assert_eq!(answer.refused(), Some("unreachable"));
    assert!(!answer.text().contains(PART), "{}", answer.text());
    for world in [&world, &untrusted] {
        let told =
            format!("{:?} {:?} {:?}", world.log.all(), world.broker().state(), world.broker());
        assert!(!told.contains(PART), "{told}");
    }
    // Records have the path alone.
    let paths = world.log.all().into_iter().filter_map(|event| match event {
        Event::Used(used) => Some(used.path),
        Event::Refused { request, .. } => request,
        _ => None,
    });
    let paths: Vec<String> = paths.collect();
    assert!(paths.contains(&"/ok".to_owned()) && paths.contains(&"GET /ok".to_owned()));
    assert!(paths.iter().all(|path| !path.contains('?')), "{paths:?}");
    assert!(world.server.seen().iter().any(|seen| query(seen).ends_with(SENT)));
}

pub(crate) fn headers() {
    for speaks in [Speaks::Http1, Speaks::Http2] {
        let world = World::with(|make| {
            make.speaks = speaks;
            make.key = Key::Sourced(CANARY);
            for header in [
                "x-first: {}",
                "x-pair: Basic {basic:user}",
                "a-version: 2024-01",
                "b_the_version: 2025",
            ] {
                make.grant.header.add(header.parse().unwrap()).unwrap();
            }
        });
        let pair = data_encoding::BASE64.encode(format!("user:{CANARY}").as_bytes());
        let own = |seen: Seen, what: &str| {
            assert_eq!(seen.header("x-first"), [CANARY], "{what}");
            assert_eq!(seen.header("x-pair"), [format!("Basic {pair}")], "{what}");
            assert_eq!(seen.header("a-version"), ["2024-01"], "{what}");
            assert_eq!(seen.header("b_the_version"), ["2025"], "{what}");
            assert_eq!(seen.header("b-version"), ["other"], "{what}");
            assert!(!seen.head.contains("mine"), "{what} {seen:?}");
        };
        let mine = "X-First: mine\r\nx_first: mine\r\nX-Pair: mine\r\nA-Version: mine\r\n\
                    A_version: mine\r\nA-Version: mine\r\nB-The-Version: mine\r\n\
                    B_the-Version: mine\r\nb_the_version: mine\r\nB-Version: other\r\n";
        for way in WAYS {
            assert_eq!(world.ask(way, "GET /ok", mine).text(), "ok");
            own(world.server.seen().pop().unwrap(), &format!("{way:?} {speaks:?}"));
            let echo = world.ask(way, "GET /echo", mine).text();
            assert!(!echo.contains(CANARY) && !echo.contains(&pair[8..28]), "{echo}");
            assert!(echo.contains("a-version: 2024-01"), "{echo}");
        }
        let mut request = get(&world.host(Way::Intercept), "/ok");
        for name in [
            "x-first",
            "x_first",
            "x-pair",
            "a-version",
            "a_version",
            "b-the-version",
            "b_the-version",
            "b_the_version",
        ] {
            request.headers_mut().append(name, HeaderValue::from_static("mine"));
        }
        request.headers_mut().append("b-version", HeaderValue::from_static("other"));
        assert_eq!(&ask(&world, vec![request])[0].body()[..], b"ok");
        own(world.server.seen().pop().unwrap(), "HTTP/2");
    }
    // Under other names they stay the client's.
    let world = World::new();
    for way in WAYS {
        assert_eq!(world.ask(way, "GET /ok", "A-Version: mine\r\n").text(), "ok");
        assert_eq!(world.server.seen().pop().unwrap().header("a-version"), ["mine"]);
    }
    assert!(world.log.all().iter().any(|event| matches!(event, Event::Used(u) if u.run == RUN)));
}
