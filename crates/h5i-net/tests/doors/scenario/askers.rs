//! Who was refused: each refusal names the box's socket that tried.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::{Arc, Mutex};

use h5i_confine::{KnownHolders, SessionHandle};
use h5i_net::{Budgets, Event, EventSink, Network, RESOLVER, Refusal, RefusedProtocol, SinkClosed};
use h5i_policy::NetMode;
use h5i_testkit::{Need, have};
use hickory_proto::rr::RecordType;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use super::real;
use crate::world::{LONG, Log, OTHER, PUBLIC, PUBLIC_V6, World, connect, policy, v6};
use crate::{dns, server};

/// The inode of a socket of this process.
fn inode(fd: RawFd) -> u64 {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
    let text = link.to_str().unwrap().to_owned();
    text.trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
}

/// The socket of a refused destination, if it is on record.
fn of_address(world: &World, to: SocketAddr, what: RefusedProtocol) -> Option<Option<u64>> {
    world.log.all().into_iter().find_map(|event| match event {
        Event::RefusedAddress { address, protocol, count: 1, socket } => {
            (address == to.ip() && protocol == what).then_some(socket)
        }
        _ => None,
    })
}

fn of_name(world: &World, name: &str, nth: usize) -> Option<u64> {
    let event = world.log.wait_nth(
        nth,
        |event| matches!(event, Event::RefusedName { name: told, count: 1, .. } if told.trim_end_matches('.') == name),
    );
    let Event::RefusedName { socket, .. } = event else { unreachable!() };
    socket
}

pub(super) fn addresses() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7"]);
    server::says(world.listen(&format!("{PUBLIC}:7")), b"hello");
    let destinations = [format!("{PUBLIC}:8"), format!("{OTHER}:7"), v6(PUBLIC_V6, 7)];
    for to in destinations.map(|to| to.parse::<SocketAddr>().unwrap()) {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let make = || rustix::net::socket(family, SocketType::STREAM, None).unwrap();
        let socket = world.inside(make);
        assert_eq!(rustix::net::connect(&socket, &to), Err(Errno::CONNREFUSED), "{to}");
        // It was on record before it was refused.
        let told = of_address(&world, to, RefusedProtocol::Tcp(to.port()));
        assert_eq!(told, Some(Some(inode(socket.as_raw_fd()))), "{to}");
    }
    // The twin: the same call where a rule lists the destination is refused to nobody.
    let before = world.log.all().len();
    assert_eq!(world.talk(&format!("{PUBLIC}:7"), b"").unwrap(), b"hello");
    let refused = |event: &Event| matches!(event, Event::RefusedAddress { .. });
    assert!(!world.log.all()[before..].iter().any(refused));
    // A datagram does not wait, but its socket is still there.
    for to in [format!("{PUBLIC}:53"), v6(PUBLIC_V6, 53)] {
        let to: SocketAddr = to.parse().unwrap();
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = world.inside(|| UdpSocket::bind(any).unwrap());
        socket.send_to(b"x", to).unwrap_err();
        world.log.wait(|event| {
            matches!(event, Event::RefusedAddress { address, protocol, .. }
                if *address == to.ip() && *protocol == RefusedProtocol::Udp(53))
        });
        let told = of_address(&world, to, RefusedProtocol::Udp(53));
        assert_eq!(told, Some(Some(inode(socket.as_raw_fd()))), "{to}");
    }
}

pub(super) fn names() {
    let world = World::new(NetMode::Allow, &["a.example:7"]);
    let resolver = SocketAddr::from((RESOLVER, 53));
    let question = dns::question("b.example", RecordType::A);
    // A client that is connected to the resolver, as libc's is, and one that is not.
    let ask = |connected: bool| {
        let socket = world.inside(|| UdpSocket::bind("0.0.0.0:0").unwrap());
        socket.set_read_timeout(Some(LONG)).unwrap();
        if connected {
            socket.connect(resolver).unwrap();
            socket.send(&question).unwrap();
        } else {
            socket.send_to(&question, resolver).unwrap();
        }
        socket.recv(&mut [0; 512]).unwrap();
        socket
    };
    let first = ask(true);
    assert_eq!(of_name(&world, "b.example", 1), Some(inode(first.as_raw_fd())));
    // The second one is counted, and after that was told the next one is a first one again.
    let asked_again = ask(true);
    world.network().report().unwrap();
    assert_eq!(of_name(&world, "b.example", 2), None);
    let other = ask(false);
    let of_other = of_name(&world, "b.example", 3);
    assert_eq!(of_other, Some(inode(other.as_raw_fd())));
    assert_ne!(of_other, Some(inode(asked_again.as_raw_fd())));
    world.network().report().unwrap();
    let mut stream = world.inside(|| connect(resolver)).unwrap();
    let length = u16::try_from(question.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length[..], &question].concat()).unwrap();
    stream.read_exact(&mut [0; 2]).unwrap();
    assert_eq!(of_name(&world, "b.example", 4), Some(inode(stream.as_raw_fd())));
    // The twin: a name that a rule lists is refused to nobody.
    world.names.set("a.example", &[PUBLIC]);
    let before = world.log.all().len();
    assert_eq!(dns::resolve(&world, "a.example"), [PUBLIC.parse::<IpAddr>().unwrap()]);
    let refused = |event: &Event| matches!(event, Event::RefusedName { .. });
    assert!(!world.log.all()[before..].iter().any(refused));
}

/// Looks for the program before an event goes on, as a harness does.
struct Looking {
    log: Arc<Log>,
    handle: SessionHandle,
    known: Mutex<KnownHolders>,
    /// What each event is, and the executable.
    found: Mutex<Vec<(&'static str, String)>>,
}

impl EventSink for Looking {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        let (kind, socket) = match &event {
            Event::FlowOpened { socket, .. } => ("flow", *socket),
            Event::RefusedName { socket, .. } => ("name", *socket),
            Event::RefusedAddress { socket, .. } => ("address", *socket),
            _ => return self.log.event(event),
        };
        let mut known = self.known.lock().unwrap();
        let holder = socket.and_then(|inode| self.handle.holder_of(inode, &mut known));
        let program = holder.map(|holder| String::from_utf8_lossy(&holder.program).into_owned());
        self.found.lock().unwrap().push((kind, program.unwrap_or_default()));
        self.log.event(event)
    }
}

pub(super) fn programs() {
    const CURL: &str = "/usr/bin/curl";
    if !have("programs", Need::Program(CURL)) {
        return;
    }
    let world = World::bare();
    let net = policy(NetMode::Allow, &["a.example:443"]);
    let (session, sockets, _dirs) = real::with_sockets(&net);
    let looking = Arc::new(Looking {
        log: Arc::clone(&world.log),
        handle: session.handle(),
        known: Mutex::default(),
        found: Mutex::default(),
    });
    world.names.set("a.example", &[PUBLIC]);
    let _heard = server::hears(world.listen(&format!("{PUBLIC}:443")));
    let (names, sink) = (Arc::new(world.names.clone()), Arc::clone(&looking) as Arc<dyn EventSink>);
    let network = Network::start(sockets, &net, Budgets::default(), names, sink).unwrap();
    let curl = |args: &[&str]| real::run(&session, CURL, &[&["-sS", "-m9"], args].concat());
    let to_other = format!("http://{OTHER}/");
    // An address that no rule lists, and a name.
    assert!(!curl(&[&to_other]).0);
    assert!(!curl(&["http://b.example/"]).0);
    // A listed one that the box has asked for, but another name in TLS: refused once it is a flow.
    assert!(!curl(&["-m3", "https://a.example/"]).0);
    let pinned = format!("c.example:443:{PUBLIC}");
    assert!(!curl(&["--resolve", &pinned, "https://c.example/"]).0);
    world.log.wait_refusal(Refusal::OtherName);
    drop(network);
    let found = looking.found.lock().unwrap().clone();
    for wanted in ["address", "name", "flow"] {
        // Later questions for a name are counted, and tell nobody.
        let first = found.iter().find(|(kind, _)| *kind == wanted);
        assert_eq!(first.map(|(_, program)| program.as_str()), Some(CURL), "{wanted}: {found:?}");
    }
}
