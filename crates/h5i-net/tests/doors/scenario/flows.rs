//! Flows by address.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use h5i_net::{BOX_V4, Basis, Event, HOST_V4, Refusal, RefusedProtocol, Verdict};
use h5i_policy::NetMode;
use h5i_testkit::Moment;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use crate::world::{
    HOSTS_OWN, LONG, METADATA, OTHER, PRIVATE, PUBLIC, PUBLIC_V6, World, connect, v6,
};
use crate::{dns, server};

/// Refusals come sooner than this.
const AT_ONCE: Duration = Duration::from_millis(500);

/// The connection is refused at once, and that is on record.
pub(super) fn refused(world: &World, to: &str) {
    let began = Moment::now();
    let error = world.connect(to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}");
    assert!(began.elapsed() < AT_ONCE, "{to} {:?}", began.elapsed());
    let to: SocketAddr = to.parse().unwrap();
    recorded(world, to.ip(), RefusedProtocol::Tcp(to.port()));
}

fn recorded(world: &World, ip: IpAddr, what: RefusedProtocol) {
    world.log.wait(|event| {
        matches!(event, Event::RefusedAddress { address, protocol, count: 1, .. }
            if *address == ip && *protocol == what)
    });
}

pub(super) fn by_address() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7"]);
    server::says(world.listen(&format!("{PUBLIC}:7")), b"hello");
    server::says(world.listen(&format!("{PUBLIC}:8")), b"hello");
    server::says(world.listen(&format!("{OTHER}:7")), b"hello");
    assert_eq!(world.talk(&format!("{PUBLIC}:7"), b"abc").unwrap(), b"hello");
    refused(&world, &format!("{PUBLIC}:8"));
    refused(&world, &format!("{OTHER}:7"));
    let ended = world.log.wait(|event| matches!(event, Event::FlowEnded(_)));
    let Event::FlowEnded(ended) = ended else { unreachable!() };
    assert_eq!((ended.sent, ended.received, ended.verdict), (3, 5, Verdict::Done));
    assert!(matches!(ended.basis, Basis::Address(_)), "{ended:?}");
}

pub(super) fn none() {
    let world = World::new(NetMode::None, &[]);
    world.names.set("a.example", &[PUBLIC]);
    server::says(world.listen(&format!("{PUBLIC}:7")), b"hello");
    refused(&world, &format!("{PUBLIC}:7"));
    refused(&world, &format!("{HOST_V4}:7"));
    let (code, _) = dns::ask(&world, "a.example", RecordType::A);
    assert_eq!(code, ResponseCode::Refused);
    assert!(world.names.asked().is_empty());
    let twin = World::new(NetMode::Allow, &["a.example:7"]);
    twin.names.set("a.example", &[PUBLIC]);
    assert_eq!(dns::resolve(&twin, "a.example").len(), 1);
}

pub(super) fn by_range() {
    let world = World::new(NetMode::Allow, &["93.184.217.0/29:7", "93.184.217.8:7"]);
    for last in [1, 7, 8] {
        let to = format!("93.184.217.{last}:7");
        server::says(world.listen(&to), b"hello");
        assert_eq!(world.talk(&to, b"").unwrap(), b"hello");
    }
    refused(&world, "93.184.217.9:7");
    refused(&world, "93.184.217.1:8");
    refused(&world, "93.184.216.255:7");
}

pub(super) fn protocols() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:443", "8.8.8.8:853"]);
    for port in [443, 53, 123] {
        let to: SocketAddr = format!("{PUBLIC}:{port}").parse().unwrap();
        let socket = world.inside(|| UdpSocket::bind("0.0.0.0:0").unwrap());
        socket.set_read_timeout(Some(LONG)).unwrap();
        world.inside(|| socket.connect(to)).unwrap();
        let began = Moment::now();
        let error = socket.send(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{to}");
        assert!(began.elapsed() < AT_ONCE);
        recorded(&world, to.ip(), RefusedProtocol::Udp(port));
    }
    // The twin: UDP within the box.
    let own = world.inside(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    let other = world.inside(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    other.send_to(b"x", own.local_addr().unwrap()).unwrap();
    own.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(own.recv(&mut [0; 8]).unwrap(), 1);
    for (family, kind, protocol, to) in [
        (libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP, "93.184.216.34:0"),
        (libc::AF_INET, libc::SOCK_RAW, 47, "93.184.216.35:0"),
    ] {
        raw(&world, family, kind, protocol, to.parse().unwrap());
    }
    recorded(&world, PUBLIC.parse().unwrap(), RefusedProtocol::Icmp);
    recorded(&world, OTHER.parse().unwrap(), RefusedProtocol::Other(47));
    refused(&world, "93.184.216.34:80");
    refused(&world, "8.8.8.8:53");
}

/// Sends a packet of a protocol without ports. The namespace of the test has the right to; a box
/// has none.
fn raw(world: &World, family: i32, kind: i32, protocol: i32, to: SocketAddr) {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    // SAFETY: numbers only.
    let socket = world.inside(|| unsafe { libc::socket(family, kind, protocol) });
    assert!(socket >= 0);
    // SAFETY: the descriptor was just made, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    assert!(socket.as_raw_fd() >= 0);
    let echo = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
    let sent = rustix::net::sendto(&socket, &echo, rustix::net::SendFlags::empty(), &to);
    assert_eq!(sent, Err(rustix::io::Errno::PERM));
}

pub(super) fn ipv6() {
    let world = World::new(NetMode::Allow, &["[2600:1408::34]:7"]);
    assert!(world.network().has_ipv6());
    for port in [7, 8] {
        server::says(world.listen(&v6(PUBLIC_V6, port)), b"hello");
    }
    assert_eq!(world.talk(&v6(PUBLIC_V6, 7), b"abc").unwrap(), b"hello");
    refused(&world, &v6(PUBLIC_V6, 8));
    refused(&world, "[2600:1408::35]:7");
}

pub(super) fn open() {
    let world = World::new(NetMode::Open, &[]);
    for address in [PUBLIC, OTHER, PRIVATE, METADATA] {
        server::says(world.listen(&format!("{address}:7")), b"hello");
    }
    server::says(world.listen(&v6(PUBLIC_V6, 7)), b"hello");
    for reached in [format!("{PUBLIC}:7"), format!("{OTHER}:7"), v6(PUBLIC_V6, 7)] {
        assert_eq!(world.talk(&reached, b"abc").unwrap(), b"hello", "{reached}");
    }
    for address in [
        PRIVATE,
        METADATA,
        "0.1.2.3",
        "100.64.0.1",
        "192.168.77.1",
        "192.168.77.2",
        "172.16.0.1",
        "198.18.0.1",
        "192.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
    ] {
        let error = world.connect(&format!("{address}:7")).unwrap_err();
        // Some the kernel itself refuses.
        assert_ne!(error.kind(), ErrorKind::TimedOut, "{address}");
    }
    refused(&world, &format!("{METADATA}:7"));
    for address in ["fd77::1", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "2002:a01:203::1"] {
        refused(&world, &v6(address, 7));
    }
    for mapped in ["[::ffff:169.254.169.254]:7", "[::ffff:10.1.2.3]:7"] {
        let error = world.connect(mapped).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{mapped}");
    }
    // The host's own public address.
    server::says(TcpListener::bind(format!("{HOSTS_OWN}:7")).unwrap(), b"secret");
    assert_ne!(world.talk(&format!("{HOSTS_OWN}:7"), b"").ok().as_deref(), Some(&b"secret"[..]));
    world.log.wait_refusal(Refusal::HostsOwn);
}

pub(super) fn private_listed() {
    let world = World::new(NetMode::Allow, &["10.1.2.3:7", "198.41.0.4:7"]);
    server::says(world.listen(&format!("{PRIVATE}:7")), b"hello");
    assert_eq!(world.talk(&format!("{PRIVATE}:7"), b"abc").unwrap(), b"hello");
    server::says(TcpListener::bind(format!("{HOSTS_OWN}:7")).unwrap(), b"own");
    assert_eq!(world.talk(&format!("{HOSTS_OWN}:7"), b"").unwrap(), b"own");
    refused(&world, &format!("{METADATA}:7"));
}

pub(super) fn host() {
    let world = World::new(NetMode::Allow, &["host:5432", "host:5433"]);
    server::says(TcpListener::bind("127.0.0.1:5432").unwrap(), b"four");
    server::says(TcpListener::bind("[::1]:5433").unwrap(), b"six");
    server::says(TcpListener::bind("127.0.0.1:5434").unwrap(), b"secret");
    assert_eq!(dns::resolve(&world, "host"), [IpAddr::V4(HOST_V4)]);
    assert_eq!(world.talk(&format!("{HOST_V4}:5432"), b"abc").unwrap(), b"four");
    assert_eq!(world.talk(&format!("{HOST_V4}:5433"), b"abc").unwrap(), b"six");
    refused(&world, &format!("{HOST_V4}:5434"));
    // Loopback is the box's own, listed port or not.
    for to in ["127.0.0.1:5432", "[::1]:5433", "127.0.0.1:5434"] {
        let error = world.connect(to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}");
    }
    let unlisted = World::new(NetMode::Allow, &["93.184.216.34:7"]);
    assert_eq!(dns::ask(&unlisted, "host", RecordType::A).0, ResponseCode::Refused);
}

pub(super) fn own_server() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7"]);
    let own = world.inside(|| TcpListener::bind("0.0.0.0:3000").unwrap());
    server::says(own, b"dev");
    let own = world.inside(|| TcpListener::bind("[::1]:3000").unwrap());
    server::says(own, b"dev");
    for to in ["127.0.0.1:3000".to_owned(), "[::1]:3000".to_owned(), format!("{BOX_V4}:3000")] {
        assert_eq!(world.talk(&to, b"").unwrap(), b"dev", "{to}");
    }
    for to in ["127.0.0.1:3000", "192.168.77.1:3000"] {
        let error = connect(to.parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}");
    }
    let from_host = std::net::TcpStream::connect_timeout(
        &format!("{BOX_V4}:3000").parse().unwrap(),
        Duration::from_millis(200),
    );
    from_host.unwrap_err();
    let mut greeting = Vec::new();
    let mut twin = world.connect("127.0.0.1:3000").unwrap();
    twin.write_all(b"x").unwrap();
    twin.shutdown(std::net::Shutdown::Write).unwrap();
    twin.read_to_end(&mut greeting).unwrap();
    assert_eq!(greeting, b"dev");
}
