//! Changes of the rules, budgets, and what is on record.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use h5i_net::{
    Budgets, ChangeError, Event, EventSink, Network, PlanError, Refusal, RefusedProtocol,
    SinkClosed, StartError, Verdict, requests,
};
use h5i_policy::{NetMode, NetRule};
use h5i_testkit::Moment;
use hickory_proto::rr::RecordType;

use super::flows::refused;
use crate::world::{Names, PUBLIC, World, policy, refusal};
use crate::{dns, hello, server};

fn rule(text: &str) -> NetRule {
    NetRule::new(text).unwrap()
}

/// An open connection to an echo server, one byte to and fro.
fn open(world: &World, to: &str) -> TcpStream {
    let mut stream = world.connect(to).unwrap();
    ping(&mut stream).unwrap();
    stream
}

fn ping(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"\0")?;
    stream.read_exact(&mut [0])
}

/// A connection is closed before anything passes; that may be seen as soon as it is made.
fn fails(world: &World, to: &str) {
    assert!(world.connect(to).and_then(|mut stream| ping(&mut stream)).is_err());
}

/// It is closed, and soon.
fn closed(stream: &mut TcpStream, since: Moment) {
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
}

pub(super) fn revoke() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7", "93.184.216.34:8"]);
    for port in [7, 8] {
        server::echoes(world.listen(&format!("{PUBLIC}:{port}")));
    }
    let mut going = open(&world, "93.184.216.34:7");
    let mut staying = open(&world, "93.184.216.34:8");
    let began = Moment::now();
    world.network().revoke(&rule("93.184.216.34:7")).unwrap();
    closed(&mut going, began);
    refused(&world, "93.184.216.34:7");
    ping(&mut staying).unwrap();
    world.log.wait_refusal(Refusal::Revoked);
}

pub(super) fn revoke_name() {
    let world = World::new(NetMode::Allow, &["a.example:443", "b.example:443"]);
    server::echoes(world.listen(&format!("{PUBLIC}:443")));
    let [mut going, mut staying] = ["a.example", "b.example"].map(|name| {
        world.names.set(name, &[PUBLIC]);
        dns::resolve(&world, name);
        let mut stream = world.connect(&format!("{PUBLIC}:443")).unwrap();
        let words = hello::to(name);
        stream.write_all(&words).unwrap();
        stream.read_exact(&mut vec![0; words.len()]).unwrap();
        stream
    });
    let began = Moment::now();
    world.network().revoke(&rule("a.example:443")).unwrap();
    closed(&mut going, began);
    ping(&mut staying).unwrap();
}

/// Before it has said what it is, in the middle of a request, half closed in either direction, with an
/// answer that nobody reads, and as a web socket.
pub(super) fn in_every_state() {
    let rules = ["a.example:80", "93.184.216.34:7", "93.184.216.34:8", "93.184.216.34:9"];
    let world = World::new(NetMode::Allow, &rules);
    world.names.set("a.example", &[PUBLIC]);
    dns::resolve(&world, "a.example");
    server::each(world.listen(&format!("{PUBLIC}:80")), |mut stream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read_exact(&mut byte).is_err() {
                return;
            }
            head.extend(byte);
        }
        stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").ok();
        std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).ok();
    });
    // One that never answers, one that ends first, and one that never stops.
    server::each(world.listen(&format!("{PUBLIC}:7")), |mut stream| {
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
        std::thread::park();
    });
    server::each(world.listen(&format!("{PUBLIC}:8")), |mut stream| {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    server::each(world.listen(&format!("{PUBLIC}:9")), |mut stream| {
        while stream.write_all(&[0; 65536]).is_ok() {}
    });
    let connect = |port: u16| world.connect(&format!("{PUBLIC}:{port}")).unwrap();
    let silent = connect(80);
    let mut asking = connect(80);
    asking.write_all(b"GET / HTTP/1.1\r\nHost: a.exa").unwrap();
    let mut switched = connect(80);
    let ask =
        b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    switched.write_all(ask).unwrap();
    switched.read_exact(&mut [0; 36]).unwrap();
    ping(&mut switched).unwrap();
    let mut said_all = connect(7);
    said_all.write_all(b"x").unwrap();
    said_all.shutdown(std::net::Shutdown::Write).unwrap();
    let mut heard_all = connect(8);
    assert_eq!(heard_all.read(&mut [0]).unwrap(), 0);
    let mut unread = connect(9);
    unread.read_exact(&mut [0; 4096]).unwrap();
    world.log.wait_nth(6, |event| matches!(event, Event::FlowOpened { .. }));
    let began = Moment::now();
    for rule in rules {
        world.network().revoke(&self::rule(rule)).unwrap();
    }
    world.log.wait_nth(6, |event| {
        matches!(event, Event::FlowEnded(e) if e.verdict == Verdict::Refused(Refusal::Revoked))
    });
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    for mut stream in [silent, asking, switched, said_all, unread] {
        let mut rest = [0; 65536];
        let error = loop {
            match stream.read(&mut rest) {
                Ok(0) => break ErrorKind::UnexpectedEof,
                Ok(_) => {}
                Err(error) => break error.kind(),
            }
        };
        assert_eq!(error, ErrorKind::ConnectionReset);
    }
    // What had been told the end already learns of it by writing.
    let mut lost = heard_all.write_all(&[0; 65536]);
    for _ in 0..100 {
        lost = lost.and_then(|()| heard_all.write_all(&[0; 65536]));
    }
    lost.unwrap_err();
}

pub(super) fn stricter() {
    let world = World::new(NetMode::Allow, &["a.example:443,sni=any"]);
    server::echoes(world.listen(&format!("{PUBLIC}:443")));
    world.names.set("a.example", &[PUBLIC]);
    dns::resolve(&world, "a.example");
    let a = hello::named("a.example");
    // Another name, none, and a listed one before an encrypted one; and what needs no freedom.
    let hellos = [
        hello::to("c.example"),
        hello::records(&hello::message(&[]), 999),
        hello::records(&hello::message(&[a, (0xfe0d, vec![0; 60])]), 999),
        hello::to("a.example"),
    ];
    let open = hellos.map(|words| {
        let mut stream = world.connect(&format!("{PUBLIC}:443")).unwrap();
        stream.write_all(&words).unwrap();
        stream.read_exact(&mut vec![0; words.len()]).unwrap();
        stream
    });
    let began = Moment::now();
    world.network().replace(&policy(NetMode::Allow, &["a.example:443"])).unwrap();
    let [one, two, three, mut staying] = open;
    for mut going in [one, two, three] {
        closed(&mut going, began);
    }
    ping(&mut staying).unwrap();
}

pub(super) fn allow_and_cut() {
    let world = World::new(NetMode::None, &[]);
    server::echoes(world.listen(&format!("{PUBLIC}:7")));
    world.names.set("a.example", &[PUBLIC]);
    refused(&world, "93.184.216.34:7");
    world.network().allow(&rule("93.184.216.34:7")).unwrap();
    let mut stream = open(&world, "93.184.216.34:7");
    world.network().allow(&rule("a.example:7")).unwrap();
    assert_eq!(dns::resolve(&world, "a.example").len(), 1);
    ping(&mut stream).unwrap();
    let began = Moment::now();
    world.network().cut().unwrap();
    closed(&mut stream, began);
    let error = world.connect("93.184.216.34:7").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let (code, _) = dns::ask(&world, "a.example", RecordType::A);
    assert_eq!(code, hickory_proto::op::ResponseCode::Refused);
    // A rule that can't be served changes nothing.
    world.network().allow(&rule("93.184.216.34:7")).unwrap();
    let error = world.network().replace(&policy(NetMode::Host, &[])).unwrap_err();
    assert!(matches!(error, ChangeError::Plan(PlanError::Mode { .. })), "{error:?}");
    open(&world, "93.184.216.34:7");
}

/// The first stop by a budget.
fn stopped(world: &World) -> Refusal {
    let by_budget = |event: &Event| refusal(event).filter(|refusal| refusal.spent().is_some());
    let event = world.log.wait(|event| by_budget(event).is_some());
    by_budget(&event).unwrap()
}

pub(super) fn budgets() {
    let with = |budgets| {
        let world = World::with_budgets(NetMode::Allow, &["93.184.216.34:7"], budgets);
        server::echoes(world.listen(&format!("{PUBLIC}:7")));
        world
    };
    let mut budgets = Budgets::default();
    budgets.bytes = Some(10_000);
    let world = with(budgets);
    let mut first = open(&world, "93.184.216.34:7");
    ping(&mut first).unwrap();
    first.write_all(&[0; 20_000]).ok();
    let error = first.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let Refusal::Bytes(spent) = stopped(&world) else { panic!("not by its bytes") };
    assert!(spent.used >= 10_000 && spent.allowed == 10_000, "{spent:?}");
    fails(&world, "93.184.216.34:7");

    let mut budgets = Budgets::default();
    budgets.lookups = Some(2);
    let world = World::with_budgets(NetMode::Allow, &["*.a.example:7"], budgets);
    for (name, code) in [("x", "NoError"), ("y", "NoError"), ("z", "Refused"), ("x", "NoError")] {
        let name = format!("{name}.a.example");
        world.names.set(&name, &[PUBLIC]);
        assert_eq!(format!("{:?}", dns::ask(&world, &name, RecordType::A).0), code, "{name}");
    }
    assert_eq!(world.names.asked().len(), 2);

    let mut budgets = Budgets::default();
    budgets.connections = Some(2);
    let world = with(budgets);
    for _ in 0..2 {
        open(&world, "93.184.216.34:7");
    }
    fails(&world, "93.184.216.34:7");
    let Refusal::Connections(spent) = stopped(&world) else { panic!("not by its connections") };
    assert_eq!((spent.used, spent.allowed), (2, 2));

    let mut budgets = Budgets::default();
    budgets.connections_at_once = Some(2);
    let world = with(budgets);
    let two = [0; 2].map(|_| open(&world, "93.184.216.34:7"));
    fails(&world, "93.184.216.34:7");
    let Refusal::AtOnce(spent) = stopped(&world) else { panic!("not by those at once") };
    assert_eq!((spent.used, spent.allowed), (2, 2));
    drop(two);
    world.log.wait(|event| matches!(event, Event::FlowEnded(e) if e.verdict == Verdict::Done));
    open(&world, "93.184.216.34:7");

    let mut budgets = Budgets::default();
    budgets.connections_per_second = Some(3);
    let world = with(budgets);
    let opened = (0..50)
        .filter(|_| world.connect("93.184.216.34:7").is_ok_and(|mut s| ping(&mut s).is_ok()))
        .count();
    assert!((3..50).contains(&opened), "{opened}");
    let Refusal::Rate(spent) = stopped(&world) else { panic!("not by its rate") };
    assert_eq!((spent.used, spent.allowed), (3, 3));
}

pub(super) fn counted() {
    let world = World::new(NetMode::Allow, &["*.a.example:80"]);
    world.names.set("x.a.example", &[PUBLIC]);
    dns::resolve(&world, "x.a.example");
    server::says(world.listen(&format!("{PUBLIC}:80")), b"HTTP/1.1 200 OK\r\n\r\n");
    let request = b"POST / HTTP/1.1\r\nHost: x.a.example\r\nContent-Length: 4\r\n\r\nbody";
    world.talk("93.184.216.34:80", request).unwrap();
    let event = world.log.wait(|event| matches!(event, Event::FlowEnded(_)));
    let Event::FlowEnded(ended) = event else { unreachable!() };
    assert_eq!((ended.sent, ended.received), (request.len() as u64, 19));
    assert_eq!(ended.name.unwrap().as_str(), "x.a.example");
    assert!(ended.duration > Duration::ZERO);
    let all = world.log.all();
    let at = |wanted: &dyn Fn(&Event) -> bool| all.iter().position(wanted).unwrap();
    let resolved = at(&|e| matches!(e, Event::Resolved { .. }));
    let opened = at(&|e| matches!(e, Event::FlowOpened { .. }));
    assert!(resolved < opened);
}

pub(super) fn socket() {
    let rules = ["93.184.216.34:7", "[2600:1408::34]:7", "93.184.216.34:9/udp"];
    let world = World::new(NetMode::Allow, &rules);
    let (v4, v6) = (format!("{PUBLIC}:7"), crate::world::v6(crate::world::PUBLIC_V6, 7));
    let inode = |fd: std::os::fd::RawFd| {
        let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        let text = link.to_str().unwrap().to_owned();
        text.trim_start_matches("socket:[").trim_end_matches(']').parse::<u64>().unwrap()
    };
    let mut seen = 0;
    let mut opened = |world: &World| {
        seen += 1;
        let event = world.log.wait_nth(seen, |e| matches!(e, Event::FlowOpened { .. }));
        let Event::FlowOpened { socket, .. } = event else { unreachable!() };
        socket
    };
    for to in [v4.as_str(), v6.as_str()] {
        server::echoes(world.listen(to));
        let stream = open(&world, to);
        assert_eq!(opened(&world), Some(inode(stream.as_raw_fd())), "{to}");
    }
    let datagrams = world.inside(|| std::net::UdpSocket::bind("0.0.0.0:0").unwrap());
    datagrams.send_to(b"x", format!("{PUBLIC}:9")).unwrap();
    assert_eq!(opened(&world), Some(inode(datagrams.as_raw_fd())));
    // A budget's refusal names it as well.
    let mut budgets = Budgets::default();
    budgets.connections = Some(0);
    let world = World::with_budgets(NetMode::Allow, &rules, budgets);
    // It may be reset before it is seen to be there.
    let stream = world.connect(&v4).ok();
    let refused = world.log.wait(|e| matches!(e, Event::FlowRefused { .. }));
    let Event::FlowRefused { socket, .. } = refused else { unreachable!() };
    // The connection may be reset, and the socket so be closed, before it is asked for.
    let own = stream.map(|stream| inode(stream.as_raw_fd()));
    assert!(socket.zip(own).is_none_or(|(socket, own)| socket == own), "{socket:?}");
}

pub(super) fn told_at_the_end() {
    let mut world = World::new(NetMode::None, &[]);
    for _ in 0..5 {
        refused(&world, "93.184.216.34:7");
        dns::ask(&world, "a.example", RecordType::A);
    }
    let counts = |world: &World| {
        let (mut packets, mut questions) = (0, 0);
        for event in world.log.all() {
            match event {
                Event::RefusedAddress { protocol: RefusedProtocol::Tcp(7), count, .. } => {
                    packets += count;
                }
                Event::RefusedName { count, .. } => questions += count,
                _ => {}
            }
        }
        (packets, questions)
    };
    let (first, asked) = counts(&world);
    assert!(first < 5 && asked == 1, "{first} {asked}");
    world.network().report().unwrap();
    // A machine that stands still has something asked for twice.
    let (reported, asked) = counts(&world);
    assert!((5..10).contains(&reported) && (5..10).contains(&asked), "{reported} {asked}");
    refused(&world, "93.184.216.34:7");
    drop(world.network.take());
    let (ended, _) = counts(&world);
    assert!((reported + 1..reported + 3).contains(&ended), "{ended} after {reported}");
    // Nothing is left that leads anywhere, be it known or not.
    for to in ["93.184.216.34:7", "93.184.216.34:8"] {
        let error = world.connect(to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}");
    }
}

/// A sink that takes nothing.
struct Full;

impl EventSink for Full {
    fn event(&self, _: Event) -> Result<(), SinkClosed> {
        Err(SinkClosed)
    }
}

pub(super) fn sink_closed() {
    let world = World::bare();
    let policy = policy(NetMode::Allow, &["93.184.216.34:7"]);
    let heard = server::hears(world.listen("93.184.216.34:7"));
    let sockets = world.sockets(&requests(&policy).unwrap());
    let names = Arc::new(Names::default());
    let network =
        Network::start(sockets, &policy, Budgets::default(), names, Arc::new(Full)).unwrap();
    if let Ok(mut stream) = world.connect("93.184.216.34:7") {
        stream.write_all(b"secret").ok();
        assert!(stream.read_exact(&mut [0]).is_err());
    }
    assert!(matches!(network.report(), Err(ChangeError::Ended)));
    heard.try_recv().unwrap_err();
    let too_few = Network::start(
        Vec::new(),
        &policy,
        Budgets::default(),
        Arc::new(Names::default()),
        Arc::new(Full),
    );
    assert!(matches!(too_few, Err(StartError::Sockets { given: 0, .. })));
}
