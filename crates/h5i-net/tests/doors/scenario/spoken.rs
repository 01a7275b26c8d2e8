//! What clients say of where they want to go.

use std::io::{Read, Write};
use std::sync::mpsc::Receiver;

use h5i_net::{Event, Refusal};
use h5i_policy::NetMode;

use crate::world::{LONG, PUBLIC, World, refusal};
use crate::{dns, hello, server};

/// A box that may reach two names at one address, and a third one nowhere; what the server hears.
fn world(port: u16) -> (World, Receiver<Vec<u8>>, String) {
    let rules = ["a.example", "b.example"].map(|name| format!("{name}:{port}"));
    let world = World::new(NetMode::Allow, &[&rules[0], &rules[1]]);
    for name in ["a.example", "b.example", "c.example"] {
        world.names.set(name, &[PUBLIC]);
    }
    for name in ["a.example", "b.example"] {
        assert_eq!(dns::resolve(&world, name).len(), 1);
    }
    let to = format!("{PUBLIC}:{port}");
    let heard = server::hears(world.listen(&to));
    (world, heard, to)
}

/// Says `words`, in parts of `step` bytes, and waits for the end; what the server heard.
fn say(world: &World, heard: &Receiver<Vec<u8>>, to: &str, words: &[u8], step: usize) -> Vec<u8> {
    let mut stream = world.connect(to).unwrap();
    stream.set_nodelay(true).unwrap();
    for part in words.chunks(step) {
        if stream.write_all(part).is_err() {
            break;
        }
    }
    stream.shutdown(std::net::Shutdown::Write).ok();
    stream.read_to_end(&mut Vec::new()).ok();
    heard.recv_timeout(LONG).unwrap()
}

/// The reason of the last flow that ended, or was refused.
fn last(world: &World) -> Option<Refusal> {
    let opened = |event: &Event| matches!(event, Event::FlowOpened { .. });
    let opened = world.log.all().iter().filter(|event| opened(event)).count() as u64;
    let event =
        world.log.wait(|event| matches!(event, Event::FlowEnded(ended) if ended.flow == opened));
    refusal(&event)
}

pub(super) fn tls() {
    let (world, heard, to) = world(443);
    for name in ["a.example", "b.example", "A.EXAMPLE"] {
        let words = hello::to(name);
        assert_eq!(say(&world, &heard, &to, &words, 9999), words, "{name}");
    }
    for (number, name) in [(1, "a.example"), (2, "b.example"), (3, "a.example")] {
        let named = |ended: &h5i_net::FlowEnded| {
            ended.flow == number && ended.name.as_ref().is_some_and(|own| own.as_str() == name)
        };
        world.log.wait(|event| matches!(event, Event::FlowEnded(ended) if named(ended)));
    }
    let cut = hello::records(&hello::message(&[hello::named("a.example")]), 7);
    assert_eq!(say(&world, &heard, &to, &cut, 3), cut);
    let hidden = hello::message(&[hello::named("a.example"), (0xfe0d, vec![0; 60])]);
    let two = hello::message(&[hello::named("a.example"), hello::named("c.example")]);
    let (none, plain) = (hello::message(&[]), hello::message(&[hello::named("c.example")]));
    for (message, reason) in [
        (&plain, Refusal::OtherName),
        (&none, Refusal::NoServerName),
        (&hidden, Refusal::EncryptedHello),
        (&two, Refusal::MalformedHello),
    ] {
        for (record, step) in [(16384, 16384), (11, 4)] {
            let words = hello::records(message, record);
            assert_eq!(say(&world, &heard, &to, &words, step), b"", "{reason}");
            assert_eq!(last(&world), Some(reason));
        }
    }
    let old = b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10";
    assert_eq!(say(&world, &heard, &to, old, 99), b"");
    assert_eq!(last(&world), Some(Refusal::NoServerName));
    // By address no name is asked for.
    let twin = World::new(NetMode::Allow, &["93.184.216.34:443"]);
    let heard = server::hears(twin.listen(&to));
    let words = hello::records(&none, 999);
    assert_eq!(say(&twin, &heard, &to, &words, 99), words);
    let words = hello::to("c.example");
    assert_eq!(say(&twin, &heard, &to, &words, 9), words);
    twin.log.wait(|event| {
        matches!(event, Event::FlowEnded(ended)
            if ended.name.as_ref().is_some_and(|name| name.as_str() == "c.example"))
    });
}

pub(super) fn any_name() {
    let world = World::new(NetMode::Allow, &["*.b.example:443", "a.b.example:443,sni=any"]);
    world.names.set("a.b.example", &[PUBLIC]);
    assert_eq!(dns::resolve(&world, "a.b.example").len(), 1);
    let to = format!("{PUBLIC}:443");
    let heard = server::hears(world.listen(&to));
    let hidden = hello::message(&[hello::named("a.b.example"), (0xfe0d, vec![0; 60])]);
    let (none, other) = (hello::message(&[]), hello::message(&[hello::named("c.example")]));
    for message in [&none, &other, &hidden, &hello::message(&[hello::named("a.b.example")])] {
        let words = hello::records(message, 11);
        assert_eq!(say(&world, &heard, &to, &words, 4), words);
    }
    // The name that was sent is on record, and HTTP must name its host as ever.
    world.log.wait(|event| {
        matches!(event, Event::FlowEnded(ended)
            if ended.name.as_ref().is_some_and(|name| name.as_str() == "c.example"))
    });
    let bad = b"GET / HTTP/1.1\r\nHost: c.example\r\n\r\n";
    assert_eq!(say(&world, &heard, &to, bad, 99), b"");
}

pub(super) fn http() {
    for port in [80, 8080] {
        let (world, heard, to) = world(port);
        let beside = if port == 80 { String::new() } else { format!(":{port}") };
        let get = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}{beside}\r\n\r\n");
        let post = format!(
            "POST / HTTP/1.1\r\nHost: b.example{beside}\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n0\r\n\r\n"
        );
        let good = format!("{}{post}{}", get("a.example"), get("b.example"));
        for step in [1, 10, 9999] {
            let said = say(&world, &heard, &to, good.as_bytes(), step);
            assert_eq!(said, good.as_bytes());
        }
        for (bad, reason) in [
            (get("c.example"), Refusal::OtherName),
            (format!("{}{}", get("a.example"), get("c.example")), Refusal::OtherName),
            (format!("{post}{}", get("c.example")), Refusal::OtherName),
            (format!("{}GET / HTTP/1.1\r\n\r\n", get("a.example")), Refusal::MalformedRequest),
            (
                format!("GET http://c.example/ HTTP/1.1\r\nHost: a.example{beside}\r\n\r\n"),
                Refusal::MalformedRequest,
            ),
            (
                format!("\r\nGET / HTTP/1.1\r\nHost: c.example{beside}\r\n\r\n"),
                Refusal::MalformedRequest,
            ),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), Refusal::MalformedRequest),
        ] {
            for step in [1, 9999] {
                let said = say(&world, &heard, &to, bad.as_bytes(), step);
                let said = String::from_utf8(said).unwrap();
                assert!(!said.contains("c.example"), "{bad:?}: {said:?}");
                assert_eq!(last(&world), Some(reason), "{bad:?}");
            }
        }
    }
}

pub(super) fn other() {
    let (world, heard, to) = world(22);
    for words in [&b"SSH-2.0-x\r\n"[..], b"\0\0\0\x08\x04\xd2\x16\x2f", b"EHLO box\r\n"] {
        assert_eq!(say(&world, &heard, &to, words, 99), words);
    }
    // A server that speaks first is heard.
    let greets = world.listen("93.184.216.34:23");
    world.network().allow(&h5i_policy::NetRule::new("a.example:23").unwrap()).unwrap();
    server::each(greets, |mut stream| {
        stream.write_all(b"220 hello\r\n").ok();
    });
    dns::resolve(&world, "a.example");
    let mut stream = world.connect("93.184.216.34:23").unwrap();
    let mut greeting = Vec::new();
    stream.read_to_end(&mut greeting).unwrap();
    assert_eq!(greeting, b"220 hello\r\n");
}

pub(super) fn upgrade() {
    for (to, answer, passes) in [
        ("websocket", "101 Switching Protocols", true),
        ("h2c", "101 Switching Protocols", false),
        ("h2c", "200 OK", true),
    ] {
        let world = World::new(NetMode::Allow, &["a.example:80"]);
        world.names.set("a.example", &[PUBLIC]);
        dns::resolve(&world, "a.example");
        server::each(world.listen("93.184.216.34:80"), move |mut stream| {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_err() {
                    return;
                }
                head.extend(byte);
            }
            stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).ok();
            std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).ok();
            stream.shutdown(std::net::Shutdown::Write).ok();
        });
        let mut stream = world.connect("93.184.216.34:80").unwrap();
        let ask = format!(
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: {to}\r\n\r\n"
        );
        stream.write_all(ask.as_bytes()).unwrap();
        let mut head = vec![0; format!("HTTP/1.1 {answer}\r\n\r\n").len()];
        let head = stream.read_exact(&mut head).map(|()| head);
        assert_eq!(head.is_ok(), passes, "{to} {answer}");
        if !passes {
            world.log.wait_refusal(Refusal::MalformedRequest);
            continue;
        }
        // After a switch everything passes; without one, requests are read on.
        let frame = b"\x81\x05hello GET / HTTP/1.1\r\nHost: c.example\r\n\r\n";
        stream.write_all(frame).unwrap();
        stream.shutdown(std::net::Shutdown::Write).ok();
        let mut echoed = Vec::new();
        let read = stream.read_to_end(&mut echoed);
        if to == "websocket" {
            read.unwrap();
            assert_eq!(echoed, frame);
        } else {
            assert_eq!(echoed, b"");
            world.log.wait_refusal(Refusal::MalformedRequest);
        }
    }
}
