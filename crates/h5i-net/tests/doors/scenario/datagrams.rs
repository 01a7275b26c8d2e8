//! UDP where a rule names it.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::thread;

use h5i_net::{Event, HOST_V4, Refusal};
use h5i_policy::{NetMode, NetRule, Protocol};

use crate::world::{LONG, OTHER, PUBLIC, PUBLIC_V6, World, refusal, v6};
use crate::{dns, namespaces};

/// Sends each datagram back, with `name` before it.
fn echo(socket: UdpSocket, name: &'static str) {
    thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((count, from)) = socket.recv_from(&mut buffer) {
            let answer = [name.as_bytes(), &buffer[..count]].concat();
            socket.send_to(&answer, from).ok();
        }
    });
}

fn outside(world: &World, at: &str) -> UdpSocket {
    namespaces::within(&world.internet, || UdpSocket::bind(at).unwrap())
}

fn client(world: &World, at: &str) -> UdpSocket {
    let socket = world.inside(|| UdpSocket::bind(at).unwrap());
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

fn exchange(socket: &UdpSocket, to: &str, words: &[u8]) -> std::io::Result<(Vec<u8>, SocketAddr)> {
    socket.send_to(words, to)?;
    let mut buffer = vec![0; 65_536];
    let (count, from) = socket.recv_from(&mut buffer)?;
    buffer.truncate(count);
    Ok((buffer, from))
}

pub(super) fn carried() {
    let rules = ["a.example:443/udp", "[2600:1408::34]:53/udp", "host:53/udp", "93.184.216.35:443"];
    let world = World::new(NetMode::Allow, &rules);
    world.names.set("a.example", &[PUBLIC]);
    echo(outside(&world, &format!("{PUBLIC}:443")), "public ");
    echo(outside(&world, &format!("{OTHER}:443")), "other ");
    echo(outside(&world, &v6(PUBLIC_V6, 53)), "six ");
    echo(UdpSocket::bind("127.0.0.1:53").unwrap(), "host ");
    let four = client(&world, "0.0.0.0:0");
    let public = format!("{PUBLIC}:443");
    let refused = |to: &str| {
        assert_eq!(four.send_to(b"x", to).unwrap_err().kind(), ErrorKind::PermissionDenied, "{to}");
    };
    refused(&public);
    dns::resolve(&world, "a.example");
    for words in [vec![7; 1], vec![8; 1200], vec![9; 60_000]] {
        let (answer, from) = exchange(&four, &public, &words).unwrap();
        assert_eq!((answer, from.to_string()), ([b"public ", &words[..]].concat(), public.clone()));
    }
    // Listed for TCP only, another port, another address.
    refused(&format!("{OTHER}:443"));
    refused(&format!("{PUBLIC}:53"));
    let error = world.connect(&public).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let (answer, _) = exchange(&four, &format!("{HOST_V4}:53"), b"x").unwrap();
    assert_eq!(answer, b"host x");
    let (answer, from) = exchange(&client(&world, "[::]:0"), &v6(PUBLIC_V6, 53), b"x").unwrap();
    assert_eq!((&answer[..], from.to_string()), (&b"six x"[..], v6(PUBLIC_V6, 53)));
    let mut world = world;
    drop(world.network.take());
    let ended = world
        .log
        .wait(|event| matches!(event, Event::FlowEnded(e) if e.destination.to_string() == public));
    let Event::FlowEnded(ended) = ended else { unreachable!() };
    assert_eq!((ended.sent, ended.received), (61_201, 61_222));
    assert_eq!(
        (ended.protocol, refusal(&Event::FlowEnded(ended))),
        (Protocol::Udp, Some(Refusal::Ended))
    );
}

pub(super) fn two() {
    let world = World::new(NetMode::Allow, &["93.184.216.0/24:9/udp"]);
    echo(outside(&world, &format!("{PUBLIC}:9")), "public ");
    echo(outside(&world, &format!("{OTHER}:9")), "other ");
    let socket = client(&world, "0.0.0.0:0");
    for round in 0..10 {
        for (to, name) in [(PUBLIC, "public"), (OTHER, "other")] {
            let words = round.to_string();
            let to = format!("{to}:9");
            let (answer, from) = exchange(&socket, &to, words.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(answer).unwrap(), format!("{name} {words}"));
            assert_eq!(from.to_string(), to);
        }
    }
    // A datagram straight to the relay has no destination.
    let ports = super::attacks::ports(&world, "udp");
    assert_eq!(ports.len(), 2);
    socket.send_to(b"x", (h5i_net::BOX_V4, ports[0])).unwrap();
    world.log.wait_refusal(Refusal::Relay);
}

pub(super) fn revoked() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:9/udp", "93.184.216.35:9/udp"]);
    echo(outside(&world, &format!("{PUBLIC}:9")), "public ");
    echo(outside(&world, &format!("{OTHER}:9")), "other ");
    let socket = client(&world, "0.0.0.0:7777");
    let public = format!("{PUBLIC}:9");
    exchange(&socket, &public, b"x").unwrap();
    world.network().revoke(&NetRule::new("93.184.216.34:9/udp").unwrap()).unwrap();
    world.log.wait_refusal(Refusal::Revoked);
    let error = socket.send_to(b"x", &public).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    // The same port, to where it still may.
    drop(socket);
    let socket = client(&world, "0.0.0.0:7777");
    let (answer, _) = exchange(&socket, &format!("{OTHER}:9"), b"x").unwrap();
    assert_eq!(answer, b"other x");
}
