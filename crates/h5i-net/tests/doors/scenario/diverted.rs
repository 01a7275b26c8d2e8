//! Flows that somebody else carries.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use h5i_net::{Divert, Diverted, Event, Refusal, Verdict};
use h5i_policy::NetMode;

use crate::world::{LONG, PUBLIC, World};
use crate::{dns, hello, server};

/// Hands over what it is given.
struct Broker(Mutex<Sender<Diverted>>);

impl Divert for Broker {
    fn divert(&self, flow: Diverted) {
        self.0.lock().unwrap().send(flow).ok();
    }
}

/// A box in which flows to `api.example` are diverted, at an address that `shared.example` has, too.
fn world(mode: NetMode, rules: &[&str]) -> (World, Receiver<Diverted>, String) {
    let world = World::new(mode, rules);
    let (send, receive) = channel();
    let services = BTreeSet::from([("api.example".parse().unwrap(), 443)]);
    world.network().divert(services, Arc::new(Broker(Mutex::new(send)))).unwrap();
    for name in ["api.example", "shared.example"] {
        world.names.set(name, &[PUBLIC]);
    }
    if mode == NetMode::Allow && rules.contains(&"shared.example:443") {
        dns::resolve(&world, "shared.example");
    }
    let [service] = dns::resolve(&world, "api.example")[..] else { panic!("one address") };
    (world, receive, format!("{service}:443"))
}

fn to(port: u16) -> String {
    format!("{PUBLIC}:{port}")
}

fn stream(flow: Diverted) -> UnixStream {
    let stream = UnixStream::from(flow.socket);
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// A flow to the service is somebody else's, whole and in both directions; the service itself hears
/// nothing of it.
pub(super) fn to_the_service() {
    let (world, broker, service) = world(NetMode::Allow, &["api.example:443"]);
    // Nobody is asked for its address, so it needs not be one that the box may know.
    assert!(world.names.asked().is_empty() && service.starts_with("198.18.0."));
    let heard = server::hears(world.listen(&to(443)));
    for (record, step) in [(16384, 16384), (11, 4)] {
        let words = hello::records(&hello::message(&[hello::named("api.example")]), record);
        let mut client = world.connect(&service).unwrap();
        client.set_nodelay(true).unwrap();
        words.chunks(step).for_each(|part| client.write_all(part).unwrap());
        let flow = broker.recv_timeout(LONG).unwrap();
        assert_eq!((flow.host.as_str(), flow.port), ("api.example", 443));
        let link = std::fs::read_link(format!("/proc/self/fd/{}", client.as_raw_fd())).unwrap();
        assert_eq!(link.to_str().unwrap(), format!("socket:[{}]", flow.holder.unwrap()));
        let number = flow.flow;
        let mut other = stream(flow);
        let mut first = vec![0; words.len()];
        other.read_exact(&mut first).unwrap();
        assert_eq!(first, words);
        let (long, mut back) = (vec![7; 3 << 20], Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                other.write_all(&long).unwrap();
                other.shutdown(std::net::Shutdown::Write).unwrap();
            });
            client.read_to_end(&mut back).unwrap();
        });
        assert_eq!(back.len(), long.len());
        client.write_all(b"more").unwrap();
        drop(client);
        let mut rest = String::new();
        other.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "more");
        let ended = world.log.wait(|e| matches!(e, Event::FlowEnded(f) if f.flow == number));
        let Event::FlowEnded(ended) = ended else { unreachable!() };
        assert_eq!(ended.name.unwrap().as_str(), "api.example");
        assert_eq!((ended.sent, ended.received), (words.len() as u64 + 4, 3 << 20));
    }
    heard.try_recv().unwrap_err();
    // One that is dropped is a reset for the box.
    let mut client = world.connect(&service).unwrap();
    client.write_all(&hello::to("api.example")).unwrap();
    drop(broker.recv_timeout(LONG).unwrap());
    let end = client.read(&mut [0; 8]);
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}

/// What is not TLS to the service is carried by nobody: the rule is there for the broker alone.
pub(super) fn nothing_else() {
    let (world, broker, service) = world(NetMode::Allow, &["api.example:443"]);
    let heard = server::hears(world.listen(&to(443)));
    let none = hello::records(&hello::message(&[]), 16384);
    let hidden = hello::message(&[hello::named("api.example"), (0xfe0d, vec![0; 60])]);
    for (flow, (words, reason)) in [
        (hello::to("other.example"), Refusal::OtherName),
        (none, Refusal::NoServerName),
        (hello::records(&hidden, 16384), Refusal::EncryptedHello),
        (b"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n".to_vec(), Refusal::NotTls),
        (b"SSH-2.0-x\r\n".to_vec(), Refusal::NotTls),
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = world.connect(&service).unwrap();
        client.write_all(&words).unwrap();
        client.read_to_end(&mut Vec::new()).ok();
        let number = flow as u64 + 1;
        let ended = world.log.wait(|e| matches!(e, Event::FlowEnded(f) if f.flow == number));
        let Event::FlowEnded(ended) = ended else { unreachable!() };
        assert_eq!(ended.verdict, Verdict::Refused(reason));
    }
    // One that says nothing ends by itself.
    drop(world.connect(&service).unwrap());
    world.log.wait(|e| matches!(e, Event::FlowEnded(f) if f.flow == 6));
    broker.try_recv().unwrap_err();
    heard.try_recv().unwrap_err();
}

/// Another listed name of the same address is reached as ever, and so is another port.
pub(super) fn neighbours() {
    for mode in [NetMode::Allow, NetMode::Open] {
        let rules: &[&str] = match mode {
            NetMode::Allow => &["api.example:443", "shared.example:443", "api.example:8443"],
            _ => &[],
        };
        let (world, broker, service) = world(mode, rules);
        // Where the name is listed for something else as well, it has its own address.
        assert_eq!(service, to(443));
        for (port, name) in [(443, "shared.example"), (8443, "api.example")] {
            let heard = server::hears(world.listen(&to(port)));
            let words = hello::to(name);
            let mut client = world.connect(&to(port)).unwrap();
            client.write_all(&words).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(heard.recv_timeout(LONG).unwrap(), words, "{name} {mode:?}");
        }
        broker.try_recv().unwrap_err();
        let mut client = world.connect(&to(443)).unwrap();
        client.write_all(&hello::to("api.example")).unwrap();
        assert_eq!(broker.recv_timeout(LONG).unwrap().host.as_str(), "api.example");
    }
}

/// A flow that somebody else carries is closed with its rule.
pub(super) fn revoked() {
    let (world, broker, service) = world(NetMode::Allow, &["api.example:443"]);
    let mut client = world.connect(&service).unwrap();
    client.write_all(&hello::to("api.example")).unwrap();
    let mut other = stream(broker.recv_timeout(LONG).unwrap());
    let mut undecided = world.connect(&service).unwrap();
    undecided.write_all(&hello::to("api.example")[..20]).unwrap();
    world.log.wait_nth(2, |event| matches!(event, Event::FlowOpened { .. }));
    world.network().cut().unwrap();
    other.read_to_end(&mut Vec::new()).unwrap();
    for mut closed in [client, undecided] {
        assert!(matches!(closed.read(&mut [0; 8]), Err(_) | Ok(0)));
    }
    world.log.wait_nth(2, |event| crate::world::refusal(event) == Some(Refusal::Revoked));
}
