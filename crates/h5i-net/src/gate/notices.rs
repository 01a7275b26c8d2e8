//! Announcements of the gate: the first packet to each destination that it refuses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use super::{GROUP, HEAD, Holds, REFUSED};
use crate::attributes::{self, Attributes};
use crate::netlink::{Answer, Netlink};

/// `nfnetlink_log`.
const LOGGED: u16 = 4 << 8;
const CONFIGURE_LOG: u16 = (4 << 8) | 1;
/// `nfnetlink_queue`.
const WAITS: u16 = 3 << 8;
const VERDICT: u16 = (3 << 8) | 1;
const CONFIGURE_QUEUE: u16 = (3 << 8) | 2;
/// The queue that a bare verdict of nftables means.
const QUEUE: u16 = 0;
/// `NF_REPEAT`: the packet passes the chain once more.
const REPEAT: u32 = 4;

/// A destination that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Notice {
    pub(crate) address: IpAddr,
    /// Number of the protocol in the IP header.
    pub(crate) protocol: u8,
    /// 0 for protocols without ports.
    pub(crate) port: u16,
}

/// The first refused packet to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) notice: Notice,
    /// Where it came from, for protocols with ports.
    pub(crate) from: Option<SocketAddr>,
    /// The number of a packet that waits.
    waits: Option<u32>,
}

/// The socket that the announcements come to.
#[derive(Debug)]
pub(crate) struct Notices {
    netlink: Netlink,
    silent: bool,
}

impl Notices {
    /// Subscribes to the gate's group, and serves the queue where the kernel has any.
    pub(crate) fn subscribe(mut netlink: Netlink) -> io::Result<(Self, Holds)> {
        // Bind this group; copy packets; tell of each at once.
        let log = Attributes::new().bytes(1, &[1]).bytes(2, &copies()).be32(5, 1);
        netlink.ask(CONFIGURE_LOG, 0, body(GROUP, &log))?;
        let queue = Attributes::new().bytes(1, &[1, 0, 0, 0]).bytes(2, &copies()[..5]);
        // Without the queue everything is announced and refused; only whose it was is not found.
        let holds = match netlink.ask(CONFIGURE_QUEUE, 0, body(QUEUE, &queue)) {
            Ok(()) => Holds::Yes,
            Err(_) => Holds::No,
        };
        Ok((Self { netlink, silent: true }, holds))
    }

    /// What has come; empty when nothing has. Each must be let go.
    pub(crate) fn receive(&mut self) -> io::Result<Vec<Announced>> {
        let answers = match self.netlink.receive() {
            // Lost announcements are in the gate's counts. A packet that waited and is lost is sent
            // again a second later, to a destination that is known by then.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Vec::new(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Vec::new()),
            other => other.inspect_err(|_| self.silent = false)?,
        };
        self.silent = false;
        let mut found = Vec::new();
        for answer in &answers {
            let waits = waits(answer);
            match announced(answer, waits) {
                Some(announced) => found.push(announced),
                None => self.refuse(waits),
            }
        }
        Ok(found)
    }

    /// Whether nothing was ever announced: then nothing was refused either, for the first packet of
    /// all is announced before it is.
    pub(crate) const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Has the gate refuse a packet that waits.
    pub(crate) fn let_go(&mut self, announced: &Announced) {
        self.refuse(announced.waits);
    }

    fn refuse(&mut self, waits: Option<u32>) {
        let Some(number) = waits else { return };
        let verdict = [REPEAT.to_be_bytes(), number.to_be_bytes()].concat();
        let verdict = Attributes::new().bytes(2, &verdict).be32(3, REFUSED);
        // One that can't be told of is lost, and sent again.
        self.netlink.post(VERDICT, body(QUEUE, &verdict)).ok();
    }
}

impl AsFd for Notices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

/// How much of a packet is copied, and that it is (`NFULNL_COPY_PACKET`, `NFQNL_COPY_PACKET`).
const fn copies() -> [u8; 6] {
    let [a, b, c, d] = HEAD.to_be_bytes();
    [a, b, c, d, 2, 0]
}

/// `struct nfgenmsg`, with the number of a group or queue, and attributes.
fn body(number: u16, attributes: &Attributes) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let mut body = vec![0, 0, high, low];
    body.extend(attributes.as_bytes());
    body
}

/// The number of a packet that waits: the first field of its header.
fn waits(answer: &Answer) -> Option<u32> {
    if answer.kind != WAITS {
        return None;
    }
    let header = attributes::find(answer.body.get(4..)?, 1)?;
    header.first_chunk().map(|number| u32::from_be_bytes(*number))
}

fn announced(answer: &Answer, waits: Option<u32>) -> Option<Announced> {
    let payload = match answer.kind {
        LOGGED => 9,
        WAITS => 10,
        _ => return None,
    };
    let (notice, from) = read(attributes::find(answer.body.get(4..)?, payload)?)?;
    Some(Announced { notice, from, waits })
}

/// Reads the head of a packet that the box's kernel made.
fn read(packet: &[u8]) -> Option<(Notice, Option<SocketAddr>)> {
    let (source, address, protocol, transport) = match packet.first()? >> 4 {
        4 => {
            let at = |place: usize| {
                let octets: [u8; 4] = packet.get(place..place + 4)?.try_into().ok()?;
                Some(IpAddr::V4(Ipv4Addr::from(octets)))
            };
            let length = usize::from(packet[0] & 0xf) * 4;
            (at(12)?, at(16)?, *packet.get(9)?, packet.get(length..)?)
        }
        6 => {
            let at = |place: usize| {
                let octets: [u8; 16] = packet.get(place..place + 16)?.try_into().ok()?;
                Some(IpAddr::V6(Ipv6Addr::from(octets)))
            };
            (at(8)?, at(24)?, *packet.get(6)?, packet.get(40..)?)
        }
        _ => return None,
    };
    let (from, port) = match protocol {
        6 | 17 => {
            let [a, b, c, d] = *transport.first_chunk()?;
            let from = SocketAddr::new(source, u16::from_be_bytes([a, b]));
            (Some(from), u16::from_be_bytes([c, d]))
        }
        _ => (None, 0),
    };
    Some((Notice { address, protocol, port }, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_packet_are_read_and_a_cut_one_is_none() {
        let mut packet = vec![0; 24];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[12..16].copy_from_slice(&[192, 0, 2, 7]);
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        packet[20..22].copy_from_slice(&40_000_u16.to_be_bytes());
        packet[22..24].copy_from_slice(&443_u16.to_be_bytes());
        let address = IpAddr::from([192, 0, 2, 1]);
        let from = "192.0.2.7:40000".parse().unwrap();
        assert_eq!(read(&packet), Some((Notice { address, protocol: 6, port: 443 }, Some(from))));
        packet[9] = 1;
        assert_eq!(read(&packet), Some((Notice { address, protocol: 1, port: 0 }, None)));
        packet[9] = 17;
        for length in 0..24 {
            assert_eq!(read(&packet[..length]), None);
        }
        let mut packet = vec![0; 44];
        packet[0] = 0x60;
        packet[6] = 17;
        packet[23] = 7;
        packet[39] = 1;
        packet[41] = 9;
        packet[43] = 53;
        let notice = Notice { address: "::1".parse().unwrap(), protocol: 17, port: 53 };
        assert_eq!(read(&packet), Some((notice, Some("[::7]:9".parse().unwrap()))));
    }
}
