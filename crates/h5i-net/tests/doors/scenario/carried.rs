//! What is carried arrives as it was sent.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;

use h5i_net::{Event, Verdict};
use h5i_policy::NetMode;

use crate::world::{PUBLIC, World};
use crate::{dns, server};

/// Bytes that never repeat in step with any buffer.
fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Sends and receives at once; what came back.
fn exchange(stream: TcpStream, sent: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = (stream.try_clone().unwrap(), stream);
    thread::scope(|scope| {
        scope.spawn(move || {
            writer.write_all(sent).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        reader.read_to_end(&mut received).unwrap();
        received
    })
}

pub(super) fn whole() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7", "a.example:80", "93.184.216.34:8"]);
    server::echoes(world.listen(&format!("{PUBLIC}:7")));
    let sent = bytes(20 << 20, 7);
    assert!(exchange(world.connect("93.184.216.34:7").unwrap(), &sent) == sent);
    let ended = world.log.wait(|event| matches!(event, Event::FlowEnded(_)));
    let Event::FlowEnded(ended) = ended else { unreachable!() };
    let count = sent.len() as u64;
    assert_eq!((ended.sent, ended.received, ended.verdict), (count, count, Verdict::Done));
    // Through the reader of requests.
    world.names.set("a.example", &[PUBLIC]);
    dns::resolve(&world, "a.example");
    server::echoes(world.listen(&format!("{PUBLIC}:80")));
    let mut request =
        format!("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n", 5 << 20)
            .into_bytes();
    request.extend(&sent[..5 << 20]);
    assert!(exchange(world.connect("93.184.216.34:80").unwrap(), &request) == request);
    // A reader that takes nothing until the sender can send no more.
    let (begin, begun) = std::sync::mpsc::channel::<()>();
    let begun = Arc::new(std::sync::Mutex::new(begun));
    let size = 64 << 20;
    server::each(world.listen(&format!("{PUBLIC}:8")), move |mut stream| {
        begun.lock().unwrap().recv().ok();
        let mut total = 0;
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            total += count;
        }
        stream.write_all(total.to_string().as_bytes()).ok();
    });
    let mut stream = world.connect("93.184.216.34:8").unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let chunk = vec![0; 1 << 20];
    loop {
        match stream.write(&chunk) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
        assert!(sent < size, "nothing holds the sender up");
    }
    begin.send(()).unwrap();
    stream.set_nonblocking(false).unwrap();
    while sent < size {
        sent += stream.write(&chunk[..chunk.len().min(size - sent)]).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert_eq!(told, size.to_string());
}

pub(super) fn half_closed() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7", "93.184.216.34:8"]);
    server::says(world.listen("93.184.216.34:7"), b"after your end");
    assert_eq!(world.talk("93.184.216.34:7", b"x").unwrap(), b"after your end");
    // The server ends first.
    let (send, receive) = std::sync::mpsc::channel();
    server::each(world.listen("93.184.216.34:8"), move |mut stream| {
        stream.write_all(b"mine").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).ok();
        send.send(heard).ok();
    });
    let mut stream = world.connect("93.184.216.34:8").unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"mine");
    stream.write_all(b"yours").unwrap();
    drop(stream);
    assert_eq!(receive.recv().unwrap(), b"yours");
}

pub(super) fn resets() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7", "93.184.216.34:9"]);
    server::each(world.listen("93.184.216.34:7"), |mut stream| {
        stream.read_exact(&mut [0]).ok();
        let zero = Some(std::time::Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&stream, zero).unwrap();
    });
    let mut stream = world.connect("93.184.216.34:7").unwrap();
    stream.write_all(b"x").unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    // Nobody listens there.
    world.talk("93.184.216.34:9", b"x").unwrap_err();
    world.log.wait(|event| {
        matches!(event, Event::FlowEnded(e) if e.verdict == Verdict::Unreachable(libc::ECONNREFUSED))
    });
    // A client that is gone, seen by the server.
    server::echoes(world.listen("93.184.216.34:9"));
    let mut stream = world.connect("93.184.216.34:9").unwrap();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let zero = Some(std::time::Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(&stream, zero).unwrap();
    drop(stream);
    world.log.wait(|event| {
        matches!(event, Event::FlowEnded(e) if e.verdict == Verdict::Reset && e.destination.port() == 9)
    });
}

pub(super) fn many() {
    const FLOWS: usize = 1000;
    let world = World::new(NetMode::Allow, &["93.184.216.34:7"]);
    let listener = world.listen("93.184.216.34:7");
    // Accepts all before it answers any: they are open at once.
    thread::spawn(move || {
        let streams: Vec<_> = listener.incoming().take(FLOWS).map_while(Result::ok).collect();
        for mut stream in streams {
            let mut heard = [0; 8];
            stream.read_exact(&mut heard).unwrap();
            stream.write_all(&heard).unwrap();
        }
    });
    let mut streams = Vec::new();
    for number in 0..FLOWS as u64 {
        let mut stream = world.connect("93.184.216.34:7").unwrap();
        stream.write_all(&number.to_le_bytes()).unwrap();
        streams.push(stream);
    }
    for (number, stream) in streams.iter_mut().enumerate() {
        let mut heard = [0; 8];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(u64::from_le_bytes(heard), number as u64);
    }
    drop(streams);
}
