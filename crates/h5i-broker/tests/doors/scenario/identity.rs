//! Whose request it is.

use data_encoding::BASE64;
use h5i_broker::{Denial, Event, Way};
use h5i_policy::{Allowed, Pattern};

use crate::client::Connection;
use crate::world::{RUN, WAYS, World, program};

fn with_token(world: &World, header: &str) -> String {
    format!("GET /ok HTTP/1.1\r\nHost: {}\r\n{header}\r\n\r\n", world.host(Way::Reverse))
}

pub(crate) fn tokens() {
    let world = World::new();
    let (_, second) = world.issue(2);
    let variables = world.broker().issue(&h5i_broker::Issue::to(3)).unwrap();
    // Of the third run the last one is for another grant.
    let other = variables.iter().rfind(|(name, _)| name == "TOKEN").unwrap().1.clone();
    world.broker().end(2);
    for (token, run) in [
        (String::new(), None),
        ("x".to_owned(), None),
        (world.token[..world.token.len() - 1].to_owned(), None),
        (format!("{}x", world.token), None),
        (world.token.to_uppercase(), None),
        (second, Some(2)),
        (other, Some(3)),
    ] {
        let answer =
            world.raw(Way::Reverse, &with_token(&world, &format!("Authorization: Bearer {token}")));
        let answer = answer.unwrap();
        assert_eq!(answer.status, 401, "{token}");
        assert!(answer.header("www-authenticate").is_some());
        assert!(token.is_empty() || !answer.text().contains(&token) || token == "x");
        assert_eq!(answer.header("connection"), Some("close"));
        world.log.wait(|event| matches!(event, Event::Refused { run: own, .. } if *own == run));
    }
    assert_eq!(
        world.raw(Way::Reverse, &with_token(&world, "X: y")).unwrap().refused(),
        Some("token")
    );
    assert!(world.server.seen().is_empty(), "nothing passed");
    // The same token in the hands of another run's program.
    *world.peers.0.lock().unwrap() = Some(program("/bin/sh", Some(9)));
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").refused(), Some("token"));
    // On record it is who asked that was refused.
    world
        .log
        .wait(|event| matches!(event, Event::Refused { run: Some(9), token_of: Some(RUN), .. }));
    *world.peers.0.lock().unwrap() = Some(program("/bin/sh", Some(RUN)));
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").text(), "ok");
    // Issued again, the old one is dead.
    let (_, again) = world.issue(RUN);
    assert_eq!(world.ask(Way::Reverse, "GET /ok", "").status, 401);
    let header = format!("Authorization: Bearer {again}");
    assert_eq!(world.raw(Way::Reverse, &with_token(&world, &header)).unwrap().text(), "ok");
}

pub(crate) fn places() {
    let world = World::with(|make| {
        make.grant.header.add("x-auth: key={}".parse().unwrap()).unwrap();
        make.grant.header.add("x-more: {}".parse().unwrap()).unwrap();
    });
    let basic = |user: &str| BASE64.encode(format!("{user}:{}", world.token).as_bytes());
    for header in [
        format!("Authorization: Bearer {}", world.token),
        format!("Authorization: Basic {}", basic("x-access-token")),
        format!("Authorization: Basic {}", basic("")),
        format!("X-Api-Key: {}", world.token),
        format!("X-Auth: key={}", world.token),
        format!("X-More: {}", world.token),
    ] {
        let answer = world.raw(Way::Reverse, &with_token(&world, &header)).unwrap();
        assert_eq!(answer.text(), "ok", "{header}");
    }
    for header in [
        format!("Cookie: {}", world.token),
        format!("X-Auth: {}", world.token),
        format!("Authorization: {}", world.token),
        format!("Authorization: Basic {}", BASE64.encode(world.token.as_bytes())),
    ] {
        let answer = world.raw(Way::Reverse, &with_token(&world, &header)).unwrap();
        assert_eq!(answer.refused(), Some("token"), "{header}");
    }
}

pub(crate) fn nobody() {
    let world = World::new();
    let pem = world.broker().authority().unwrap();
    for (run, status) in [(None, 401), (Some(8), 401), (Some(RUN), 200)] {
        let mut connection = Connection::tls(world.divert(run), pem, crate::world::HOST);
        connection.send(world.text(Way::Intercept, "GET /ok", ""));
        assert_eq!(connection.answer().unwrap().status, status, "{run:?}");
    }
    assert_eq!(world.server.seen().len(), 1);
}

pub(crate) fn programs() {
    let world = World::with(|make| {
        make.grant.programs = Allowed::Only([Pattern::new("/usr/bin/agent").unwrap()].into());
    });
    for way in WAYS {
        for (holder, status) in [
            (None, 403),
            (Some(program("/usr/bin/npm", Some(RUN))), 403),
            (Some(program("/usr/bin/agent", Some(RUN))), 200),
        ] {
            *world.peers.0.lock().unwrap() = holder.clone();
            let answer = world.ask(way, "GET /ok", "");
            assert_eq!(answer.status, status, "{way:?} {holder:?}");
            assert!(status == 200 || answer.refused() == Some("program"));
        }
    }
    let npm = world.log.wait(|event| {
        matches!(event, Event::Refused { program: Some(program), denial: Denial::Program, .. }
            if program.path.ends_with("npm"))
    });
    assert!(matches!(npm, Event::Refused { run: Some(RUN), .. }), "{npm:?}");
    // Where all may, who did is on record.
    let world = World::new();
    *world.peers.0.lock().unwrap() = Some(program("/usr/bin/npm", Some(RUN)));
    for way in WAYS {
        assert_eq!(world.ask(way, "GET /ok", "").status, 200);
        let used = world.log.wait(|event| matches!(event, Event::Used(used) if used.way == way));
        let Event::Used(used) = used else { panic!("{used:?}") };
        assert_eq!(used.program, Some(program("/usr/bin/npm", None).program));
        assert_eq!((used.method.as_str(), used.path.as_str(), used.run), ("GET", "/ok", RUN));
    }
}
