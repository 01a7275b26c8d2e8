//! Questions over TCP: each message behind its length (RFC 7766).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{RecvFlags, SendFlags, SocketFlags};

/// Connections at once; the oldest one makes room.
const AT_ONCE: usize = 32;
/// The longest question that is read, in bytes.
const LONGEST: usize = 4096;

/// The connections to the resolver.
#[derive(Debug)]
pub(super) struct Streams {
    listener: OwnedFd,
    open: BTreeMap<u64, Stream>,
    last: u64,
}

#[derive(Debug)]
struct Stream {
    socket: OwnedFd,
    client: Option<SocketAddr>,
    read: Vec<u8>,
}

impl Streams {
    pub(super) fn new(listener: OwnedFd) -> Self {
        Self { listener, open: BTreeMap::new(), last: 0 }
    }

    /// Takes one connection; its number and socket, to be watched. `None` when there is no more.
    pub(super) fn accept(&mut self) -> Option<(u64, BorrowedFd<'_>)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        if self.open.len() >= AT_ONCE {
            self.open.pop_first();
        }
        let (socket, client) = rustix::net::acceptfrom_with(&self.listener, flags).ok()?;
        let client = client.and_then(|client| SocketAddr::try_from(client).ok());
        self.last += 1;
        self.open.insert(self.last, Stream { socket, client, read: Vec::new() });
        self.open.get(&self.last).map(|stream| (self.last, stream.socket.as_fd()))
    }

    /// Reads what has come on a connection: whole messages. A connection that ends, or says
    /// something too long, is closed.
    pub(super) fn read(&mut self, number: u64) -> Vec<Vec<u8>> {
        let Some(stream) = self.open.get_mut(&number) else { return Vec::new() };
        let mut messages = Vec::new();
        let mut buffer = [0; LONGEST];
        let ended = match rustix::net::recv(&stream.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => true,
            Ok((count, _)) => {
                stream.read.extend(&buffer[..count]);
                false
            }
            Err(error) => io::Error::from(error).kind() != io::ErrorKind::WouldBlock,
        };
        let mut too_long = false;
        while let Some([high, low]) = stream.read.first_chunk() {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            too_long = length > LONGEST;
            if too_long || stream.read.len() < 2 + length {
                break;
            }
            messages.push(stream.read[2..2 + length].to_vec());
            stream.read.drain(..2 + length);
        }
        if ended || too_long {
            self.open.remove(&number);
        }
        messages
    }

    /// Where a connection came from.
    pub(super) fn client(&self, number: u64) -> Option<SocketAddr> {
        self.open.get(&number)?.client
    }

    /// Sends an answer. A client that does not take it is closed, not waited for.
    pub(super) fn answer(&mut self, number: u64, message: &[u8]) {
        let Some(stream) = self.open.get(&number) else { return };
        let Ok(length) = u16::try_from(message.len()) else { return };
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend(message);
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if rustix::net::send(&stream.socket, &bytes, flags) != Ok(bytes.len()) {
            self.open.remove(&number);
        }
    }
}

impl AsFd for Streams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
