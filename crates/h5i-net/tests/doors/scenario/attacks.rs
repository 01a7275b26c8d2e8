//! Attempts to get past, or to wear out, what stands at the gate.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};

use h5i_net::{BOX_V4, BOX_V6, Event, RESOLVER, Refusal};
use h5i_policy::NetMode;
use h5i_testkit::Moment;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use super::flows::refused;
use crate::world::{LONG, METADATA, PRIVATE, PUBLIC, World, connect, refusal, v6};
use crate::{dns, hello, namespaces, server};

/// The ports at the box's own addresses that are the relay's: of `tcp` those that listen, of `udp`
/// those that are bound.
pub(super) fn ports(world: &World, protocol: &str) -> Vec<u16> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    let table = world.inside(|| read(protocol).unwrap() + &read(&format!("{protocol}6")).unwrap());
    let own = [BOX_V4.octets().as_slice(), &BOX_V6.octets()].map(|octets| {
        let words = octets.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap()));
        words.map(|word| format!("{word:08X}")).collect::<String>() + ":"
    });
    let listening = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, _, state) = (words.next()?, words.next()?, words.next()?);
        let port = own
            .iter()
            .find_map(|own| local.strip_prefix(own))
            .filter(|_| ["0A", "07"].contains(&state))?;
        u16::from_str_radix(port, 16).ok()
    };
    table.lines().filter_map(listening).collect()
}

pub(super) fn direct() {
    for mode in [NetMode::Open, NetMode::None] {
        let world = World::new(mode, &[]);
        let ports = ports(&world, "tcp");
        assert_eq!(ports.len(), 2);
        let bait = TcpListener::bind(("::1", ports[1])).unwrap();
        server::says(bait, b"secret");
        let answer = world.talk(&v6(&BOX_V6.to_string(), ports[1]), b"x");
        assert_ne!(answer.ok().as_deref(), Some(&b"secret"[..]));
        world.log.wait_refusal(Refusal::Relay);
        // A host service on the very port that a careless relay would dial.
        let bait = TcpListener::bind(("127.0.0.1", ports[0])).unwrap();
        server::says(bait, b"secret");
        let answer = world.talk(&format!("{BOX_V4}:{}", ports[0]), b"x");
        assert_ne!(answer.ok().as_deref(), Some(&b"secret"[..]));
        world.log.wait_nth(2, |event| refusal(event) == Some(Refusal::Relay));
        // Its port can't be taken over.
        let taken = world.inside(|| TcpListener::bind((BOX_V4, ports[0])));
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::AddrInUse);
        let taken = world.inside(|| UdpSocket::bind((RESOLVER, 53)));
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}

pub(super) fn refused_flood() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7"]);
    server::says(world.listen("93.184.216.34:7"), b"hello");
    let began = Moment::now();
    for attempt in 0..10_000_u32 {
        // More destinations than the gate keeps apart.
        let to = SocketAddr::from((
            [93, 184, 218, (attempt % 250) as u8],
            1000 + (attempt / 250) as u16,
        ));
        let error = world.inside(|| connect(to)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
    assert!(began.elapsed() < 3 * LONG, "{:?}", began.elapsed());
    assert_eq!(world.talk("93.184.216.34:7", b"").unwrap(), b"hello");
    world.network().report().unwrap();
    let told = world.log.all().iter().filter(|e| matches!(e, Event::RefusedAddress { .. })).count();
    assert!((4000..9000).contains(&told), "{told}");
    let counted = world.log.all().into_iter().map(|event| match event {
        Event::RefusedAddress { count, .. } | Event::MoreRefusedAddresses { count, .. } => count,
        _ => 0,
    });
    // A machine that stands still for a second has a connection asked for twice.
    let counted = counted.sum::<u64>();
    assert!((10_000..10_050).contains(&counted), "{counted}");
}

pub(super) fn resolver() {
    let world = World::new(NetMode::Allow, &["a.example:7"]);
    world.names.set("a.example", &[PUBLIC]);
    let socket = world.inside(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    let to = SocketAddr::from((RESOLVER, 53));
    for number in 0..20_000 {
        let name = format!("{}{number}.b.example", "secret".repeat(8));
        socket.send_to(&dns::question(&name, RecordType::A), to).unwrap();
    }
    for packet in [&[0; 4][..], &[0xff; 512], &[0; 60_000]] {
        socket.send_to(packet, to).unwrap();
    }
    let mut pointing = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1];
    assert_eq!(dns::exchange(&world, &pointing).unwrap()[3] & 15, 1);
    pointing.truncate(13);
    assert_eq!(dns::exchange(&world, &pointing).unwrap()[3] & 15, 1);
    // A long name over TCP, and a connection that says nothing: neither holds anybody up.
    let idle = world.inside(|| connect(to)).unwrap();
    let mut long = world.inside(|| connect(to)).unwrap();
    long.write_all(&[0xff, 0xff]).unwrap();
    long.write_all(&vec![63; 65_535]).ok();
    assert!(matches!(long.read(&mut [0]), Ok(0) | Err(_)));
    let crowd: Vec<_> = (0..100).map(|_| world.inside(|| connect(to)).unwrap()).collect();
    assert_eq!(dns::ask_by_stream(&world, "a.example").1.len(), 1);
    assert_eq!(dns::resolve(&world, "a.example").len(), 1);
    drop((idle, crowd));
    let told = world.log.all().len();
    assert!(told < 2000, "{told} events");
    world.network().report().unwrap();
    world.log.wait(|event| matches!(event, Event::MoreRefusedNames { .. }));
    assert_eq!(world.names.asked(), ["a.example"]);
    assert_eq!(dns::ask(&world, "b.example", RecordType::A).0, ResponseCode::Refused);
}

pub(super) fn fragments() {
    let world = World::new(NetMode::Allow, &["a.example:443"]);
    world.names.set("a.example", &[PUBLIC]);
    dns::resolve(&world, "a.example");
    let heard = server::hears(world.listen("93.184.216.34:443"));
    let words = hello::to("a.example");
    let held: Vec<_> = (0..100)
        .map(|count| {
            let mut stream = world.connect("93.184.216.34:443").unwrap();
            stream.write_all(&words[..count.min(words.len() - 1)]).unwrap();
            stream
        })
        .collect();
    let mut twin = world.connect("93.184.216.34:443").unwrap();
    twin.write_all(&words).unwrap();
    drop(twin);
    assert_eq!(heard.recv_timeout(LONG).unwrap(), words);
    drop(held);
    for _ in 0..100 {
        assert_eq!(heard.recv_timeout(LONG).unwrap(), b"");
    }
    // One that never ends.
    let mut endless = world.connect("93.184.216.34:443").unwrap();
    let mut message = vec![1, 0, 0xff, 0xf0];
    message.resize(70_000, 0);
    endless.write_all(&hello::records(&message, 100)).ok();
    assert!(endless.read_exact(&mut [0]).is_err());
    world.log.wait_refusal(Refusal::MalformedHello);
}

pub(super) fn crowd() {
    // More than one datagram of netlink holds, by rules and by names, and all of it cut at once.
    let rules: Vec<String> = (0..2000_u32)
        .map(|n| format!("93.{}.{}.{}:9", 100 + n / 4000, n / 200 % 200, n % 200))
        .collect();
    let mut rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    rules.extend(["*.a.example:7", "*.a.example:443", "*.a.example:8443"]);
    let world = World::new(NetMode::Allow, &rules);
    server::says(world.listen("93.184.216.34:9"), b"hello");
    let rule = h5i_policy::NetRule::new("93.184.216.34:9").unwrap();
    world.network().allow(&rule).unwrap();
    for name in 0..60_u8 {
        let addresses: Vec<String> = (0..60_u8).map(|n| format!("93.200.{name}.{n}")).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let name = format!("n{name}.a.example");
        world.names.set(&name, &addresses);
        assert_eq!(dns::resolve(&world, &name).len(), 8);
    }
    assert_eq!(world.talk("93.184.216.34:9", b"").unwrap(), b"hello");
    let began = Moment::now();
    world.network().cut().unwrap();
    assert!(began.elapsed().as_secs() < 1, "{:?}", began.elapsed());
    refused(&world, "93.184.216.34:9");
}

/// The gate's first rule accepts everything.
pub(super) fn hole() {
    let world = World::new(NetMode::Open, &[]);
    for address in [PRIVATE, METADATA, PUBLIC] {
        server::says(world.listen(&format!("{address}:7")), b"secret");
    }
    refused(&world, &format!("{PRIVATE}:7"));
    world.inside(namespaces::open_gate);
    let said = |address: &str| world.talk(&format!("{address}:7"), b"").ok();
    for address in [PRIVATE, METADATA] {
        assert_ne!(said(address).as_deref(), Some(&b"secret"[..]), "{address}");
    }
    world.log.wait_nth(2, |event| refusal(event) == Some(Refusal::NotPublic));
    assert_eq!(said(PUBLIC).as_deref(), Some(&b"secret"[..]));
    world.network().cut().unwrap();
    assert_ne!(said(PUBLIC).as_deref(), Some(&b"secret"[..]));
    world.log.wait_refusal(Refusal::NotListed);
}

pub(super) fn two_boxes() {
    let one = World::new(NetMode::Allow, &["93.184.216.34:7"]);
    let own = one.inside(|| TcpListener::bind("0.0.0.0:3000").unwrap());
    server::says(own, b"dev of one");
    let two = World::new(NetMode::Open, &[]);
    for to in ["127.0.0.1:3000", "192.0.0.2:3000"] {
        assert_eq!(one.talk(to, b"").unwrap(), b"dev of one");
        assert_ne!(two.talk(to, b"").ok().as_deref(), Some(&b"dev of one"[..]));
    }
    two.network().cut().unwrap();
    refused(&two, "93.184.216.34:7");
    server::says(one.listen("93.184.216.34:7"), b"hello");
    // The host of the second world is where this thread is; the first one's is left as it was.
    one.connect("93.184.216.34:7").unwrap();
}
