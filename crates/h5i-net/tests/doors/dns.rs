//! A client of the box's resolver.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use h5i_net::RESOLVER;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};

use crate::world::{LONG, World, connect};

/// A question in the DNS's encoding.
pub(crate) fn question(name: &str, record: RecordType) -> Vec<u8> {
    let mut message = Message::new(77, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), record));
    message.to_vec().unwrap()
}

/// The code and the addresses of an answer.
pub(crate) fn read(bytes: &[u8]) -> (ResponseCode, Vec<IpAddr>) {
    let message = Message::from_vec(bytes).unwrap();
    let addresses = message.answers.iter().filter_map(|record| match &record.data {
        RData::A(a) => Some(IpAddr::V4(a.0)),
        RData::AAAA(aaaa) => Some(IpAddr::V6(aaaa.0)),
        _ => None,
    });
    (message.metadata.response_code, addresses.collect())
}

fn server() -> SocketAddr {
    SocketAddr::from((RESOLVER, 53))
}

/// Sends a packet to the resolver over UDP and yields what comes back. A packet that was lost in a
/// flood is sent again, as every client does.
pub(crate) fn exchange(world: &World, packet: &[u8]) -> std::io::Result<Vec<u8>> {
    let socket = world.inside(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    socket.set_read_timeout(Some(LONG / 5)).unwrap();
    let mut buffer = vec![0; 4096];
    for _ in 0..5 {
        socket.send_to(packet, server())?;
        if let Ok(count) = socket.recv(&mut buffer) {
            buffer.truncate(count);
            return Ok(buffer);
        }
    }
    Err(std::io::ErrorKind::TimedOut.into())
}

/// Asks over UDP.
pub(crate) fn ask(world: &World, name: &str, record: RecordType) -> (ResponseCode, Vec<IpAddr>) {
    read(&exchange(world, &question(name, record)).unwrap())
}

/// The IPv4 addresses of a name that must resolve.
pub(crate) fn resolve(world: &World, name: &str) -> Vec<IpAddr> {
    let (code, addresses) = ask(world, name, RecordType::A);
    assert_eq!(code, ResponseCode::NoError, "{name}");
    addresses
}

/// Asks over TCP.
pub(crate) fn ask_by_stream(world: &World, name: &str) -> (ResponseCode, Vec<IpAddr>) {
    let question = question(name, RecordType::A);
    let mut stream = world.inside(|| connect(server())).unwrap();
    let length = u16::try_from(question.len()).unwrap().to_be_bytes();
    stream.write_all(&length).unwrap();
    stream.write_all(&question).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer).unwrap();
    read(&answer)
}
