//! Names and what they resolve to.

use std::io::ErrorKind;
use std::time::Duration;

use h5i_net::{Basis, Event};
use h5i_policy::NetMode;
use h5i_testkit::Moment;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use super::flows::refused;
use crate::world::{HOSTS_OWN, METADATA, OTHER, PRIVATE, PUBLIC, PUBLIC_V6, World, v6};
use crate::{dns, server};

/// The resolver says no within this time.
const AT_ONCE: Duration = Duration::from_millis(100);

pub(super) fn listed() {
    let world = World::new(NetMode::Allow, &["a.example:7"]);
    world.names.set("a.example", &[PUBLIC, PUBLIC_V6]);
    world.names.set("b.example", &[OTHER]);
    server::says(world.listen(&format!("{PUBLIC}:7")), b"hello");
    server::says(world.listen(&v6(PUBLIC_V6, 7)), b"hello six");
    // Before it is asked for, its address is as closed as any.
    refused(&world, &format!("{PUBLIC}:7"));
    assert_eq!(dns::resolve(&world, "A.Example."), [PUBLIC.parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(world.talk(&format!("{PUBLIC}:7"), b"\0").unwrap(), b"hello");
    let (_, six) = dns::ask(&world, "a.example", RecordType::AAAA);
    assert_eq!(six, [PUBLIC_V6.parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(world.talk(&v6(PUBLIC_V6, 7), b"\0").unwrap(), b"hello six");
    assert_eq!(dns::ask_by_stream(&world, "a.example").1.len(), 1);
    let (code, none) = dns::ask(&world, "a.example", RecordType::HTTPS);
    assert_eq!((code, none.len()), (ResponseCode::NoError, 0));
    refused(&world, &format!("{PUBLIC}:8"));
    for name in ["b.example", "x.a.example", "example", "c2VjcmV0.b.example", "_x.a.example"] {
        // The machine may be busy with something else once, not three times.
        let ask = |_| {
            let began = Moment::now();
            assert_eq!(dns::ask(&world, name, RecordType::A).0, ResponseCode::Refused, "{name}");
            began.elapsed()
        };
        let took = (0..3).map(ask).min().unwrap();
        assert!(took < AT_ONCE, "{took:?}");
        world.log.wait(|event| {
            matches!(event, Event::RefusedName { name: told, record: 1, count: 1, .. }
                if told.trim_end_matches('.').eq_ignore_ascii_case(name))
        });
    }
    assert_eq!(dns::ask_by_stream(&world, "b.example").0, ResponseCode::Refused);
    assert!(world.names.asked().iter().all(|name| name == "a.example"));
    world.names.set("a.example", &[]);
    let named = world.log.wait(|event| matches!(event, Event::FlowEnded(_)));
    let Event::FlowEnded(named) = named else { unreachable!() };
    assert!(matches!(named.basis, Basis::Names(ref names) if names.len() == 1), "{named:?}");
}

pub(super) fn wildcard() {
    let world = World::new(NetMode::Allow, &["*.a.example:7"]);
    for name in ["x.a.example", "y.x.a.example", "a.example", "ba.example"] {
        world.names.set(name, &[PUBLIC]);
    }
    for name in ["x.a.example", "y.x.a.example"] {
        assert_eq!(dns::resolve(&world, name).len(), 1);
    }
    for name in ["a.example", "ba.example"] {
        assert_eq!(dns::ask(&world, name, RecordType::A).0, ResponseCode::Refused, "{name}");
    }
}

pub(super) fn slow() {
    let world = World::new(NetMode::Allow, &["a.example:7", "*.slow.example:7"]);
    world.names.set("a.example", &[PUBLIC]);
    world.names.hold("slow.example");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| dns::ask(&world, "x.slow.example", RecordType::A));
        world.names.wait_asked("x.slow.example");
        assert_eq!(dns::resolve(&world, "a.example").len(), 1);
        world.names.let_go();
        assert_eq!(asked.join().unwrap().0, ResponseCode::ServFail);
    });
}

pub(super) fn rebinding() {
    let world = World::new(NetMode::Allow, &["a.example:7", "own.example:7"]);
    world.names.set("a.example", &[PUBLIC, PRIVATE, METADATA, "127.0.0.1", "::ffff:10.1.2.3"]);
    world.names.set("own.example", &[HOSTS_OWN]);
    for address in [PRIVATE, METADATA] {
        server::says(world.listen(&format!("{address}:7")), b"secret");
    }
    assert_eq!(dns::resolve(&world, "a.example"), [PUBLIC.parse::<std::net::IpAddr>().unwrap()]);
    assert!(dns::resolve(&world, "own.example").is_empty());
    let event = world.log.wait(
        |event| matches!(event, Event::Resolved { name, .. } if name.as_str() == "a.example"),
    );
    let Event::Resolved { pinned, withheld, .. } = event else { unreachable!() };
    assert_eq!((pinned.len(), withheld.len()), (1, 3));
    for address in [PRIVATE, METADATA, HOSTS_OWN] {
        refused(&world, &format!("{address}:7"));
    }
    // The twin: listed by address as well.
    let twin = World::new(NetMode::Allow, &["a.example:7", "10.1.2.3:7"]);
    twin.names.set("a.example", &[PRIVATE]);
    server::says(twin.listen(&format!("{PRIVATE}:7")), b"listed");
    assert_eq!(dns::resolve(&twin, "a.example").len(), 1);
    assert_eq!(twin.talk(&format!("{PRIVATE}:7"), b"x").unwrap(), b"listed");
}

pub(super) fn rotating() {
    let world = World::new(NetMode::Allow, &["cdn.example:7"]);
    let addresses: Vec<String> = (1..=8).map(|last| format!("93.184.217.{last}")).collect();
    for address in &addresses {
        server::says(world.listen(&format!("{address}:7")), b"hello");
    }
    let mut seen = Vec::new();
    for round in 0..200 {
        world.names.set("cdn.example", &[&addresses[round % 8], &addresses[(round + 1) % 8]]);
        for address in dns::resolve(&world, "cdn.example") {
            if !seen.contains(&address) {
                seen.push(address);
            }
        }
        // A client that kept an answer from before.
        let kept = seen[round % seen.len()];
        assert_eq!(world.talk(&format!("{kept}:7"), b"\0").unwrap(), b"hello", "{round}");
        world.forget_answers();
    }
    assert!(seen.len() > 2, "{seen:?}");
    let error = world.connect(&format!("{OTHER}:7")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}
