//! Requests to the kernel over a netlink socket, each answered before the next.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{Emitable, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader};
use rustix::buffer::spare_capacity;
use rustix::net::{RecvFlags, SendFlags};

/// One request: type, flags beside "request", body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) body: Vec<u8>,
}

/// One answer: type and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: Vec<u8>,
}

const ERROR: u16 = 2;
const DONE: u16 = 3;
const HEADER: usize = 16;
/// The longest message that the kernel sends here: it fills pages of up to 32 KiB.
const LONGEST: usize = 64 << 10;

/// A conversation with the kernel. The socket may have been made in another network namespace; the
/// kernel answers within the call that asks, so nothing here waits.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    /// Where answers are read; kept, for one is asked for with every flow.
    buffer: Vec<u8>,
}

impl Netlink {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, sequence: 0, buffer: Vec::with_capacity(LONGEST) }
    }

    /// Sends the requests as one datagram. The last one that wants an acknowledgement (`NLM_F_ACK`)
    /// ends the exchange; the first error of any does, too.
    pub(crate) fn transact(&mut self, requests: &[Request]) -> io::Result<()> {
        let first = self.sequence.wrapping_add(1);
        self.send(requests)?;
        let acknowledged = requests.iter().rposition(|one| one.flags & NLM_F_ACK != 0);
        let offset = acknowledged.and_then(|at| u32::try_from(at).ok()).unwrap_or(0);
        let last = first.wrapping_add(offset);
        loop {
            for answer in self.receive()? {
                let in_range = answer.sequence.wrapping_sub(first) <= last.wrapping_sub(first);
                if !in_range || answer.kind != ERROR {
                    continue;
                }
                if let Err(error) = status(&answer.body) {
                    self.drain();
                    return Err(error);
                }
                if answer.sequence == last {
                    return Ok(());
                }
            }
        }
    }

    /// Sends one request that is answered by an acknowledgement.
    pub(crate) fn ask(&mut self, kind: u16, flags: u16, body: Vec<u8>) -> io::Result<()> {
        self.transact(&[Request { kind, flags: flags | NLM_F_ACK, body }])
    }

    /// Sends one request that is not answered; an error of it is among what is received.
    pub(crate) fn post(&mut self, kind: u16, body: Vec<u8>) -> io::Result<()> {
        self.send(&[Request { kind, flags: 0, body }]).map(drop)
    }

    /// Sends one request that is answered by a message.
    pub(crate) fn fetch(&mut self, kind: u16, body: Vec<u8>) -> io::Result<Answer> {
        let sequence = self.send(&[Request { kind, flags: 0, body }])?;
        loop {
            for answer in self.receive()? {
                if answer.sequence != sequence {
                    continue;
                }
                if answer.kind == ERROR {
                    status(&answer.body)?;
                }
                return Ok(answer);
            }
        }
    }

    /// Sends one request that is answered by a list of messages.
    pub(crate) fn dump(&mut self, kind: u16, body: Vec<u8>) -> io::Result<Vec<Answer>> {
        let sequence = self.send(&[Request { kind, flags: NLM_F_DUMP, body }])?;
        let mut found = Vec::new();
        loop {
            for answer in self.receive()? {
                match answer.kind {
                    _ if answer.sequence != sequence => {}
                    DONE => return Ok(found),
                    ERROR => status(&answer.body)?,
                    _ => found.push(answer),
                }
            }
        }
    }

    /// What has come without being asked for, for sockets that receive notices.
    pub(crate) fn receive(&mut self) -> io::Result<Vec<Answer>> {
        rustix::io::retry_on_intr(|| {
            self.buffer.clear();
            let room = spare_capacity(&mut self.buffer);
            rustix::net::recv(&self.socket, room, RecvFlags::DONTWAIT)
        })?;
        Ok(split(&self.buffer))
    }

    fn send(&mut self, requests: &[Request]) -> io::Result<u32> {
        let mut datagram = Vec::new();
        for request in requests {
            self.sequence = self.sequence.wrapping_add(1);
            let length = HEADER + request.body.len();
            let mut header = NetlinkHeader::default();
            header.length = u32::try_from(length).map_err(|_e| io::ErrorKind::InvalidInput)?;
            header.message_type = request.kind;
            header.flags = request.flags | NLM_F_REQUEST;
            header.sequence_number = self.sequence;
            let start = datagram.len();
            datagram.resize(start + length.next_multiple_of(4), 0);
            header.emit(&mut datagram[start..start + HEADER]);
            datagram[start + HEADER..start + length].copy_from_slice(&request.body);
        }
        rustix::io::retry_on_intr(|| {
            rustix::net::send(&self.socket, &datagram, SendFlags::empty())
        })?;
        Ok(self.sequence)
    }

    /// Throws away what an exchange that failed has left.
    fn drain(&mut self) {
        while self.receive().is_ok() {}
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn status(body: &[u8]) -> io::Result<()> {
    let code = body.first_chunk().map_or(-libc::EPROTO, |bytes| i32::from_ne_bytes(*bytes));
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code.saturating_neg())) }
}

/// Cuts a datagram into its messages, up to the first one that is cut.
fn split(mut rest: &[u8]) -> Vec<Answer> {
    let mut found = Vec::new();
    while let Some(header) = rest.first_chunk::<HEADER>() {
        let [a, b, c, d, kind_a, kind_b, _, _, s, t, u, v, ..] = *header;
        let length = u32::from_ne_bytes([a, b, c, d]) as usize;
        let Some(body) = rest.get(HEADER..length) else { break };
        let kind = u16::from_ne_bytes([kind_a, kind_b]);
        let sequence = u32::from_ne_bytes([s, t, u, v]);
        found.push(Answer { kind, sequence, body: body.to_vec() });
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}
