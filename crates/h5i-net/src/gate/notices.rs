//! Announcements of the gate: the first packet to each destination that it refuses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use super::GROUP;
use crate::attributes::{self, Attributes};
use crate::netlink::Netlink;

const CONFIGURE: u16 = (4 << 8) | 1;
const PACKET: u16 = 4 << 8;

/// The first refused packet to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Notice {
    pub(crate) address: IpAddr,
    /// Number of the protocol in the IP header.
    pub(crate) protocol: u8,
    /// 0 for protocols without ports.
    pub(crate) port: u16,
}

/// The socket that the announcements come to (`nfnetlink_log`).
#[derive(Debug)]
pub(crate) struct Notices {
    netlink: Netlink,
}

impl Notices {
    /// Subscribes to the gate's group.
    pub(crate) fn subscribe(mut netlink: Netlink) -> io::Result<Self> {
        let [high, low] = GROUP.to_be_bytes();
        let mut ask = |attributes: Attributes| {
            let mut body = vec![0, 0, high, low];
            body.extend(attributes.as_bytes());
            netlink.ask(CONFIGURE, 0, body)
        };
        // Bind this group; copy packets; tell of each at once.
        ask(Attributes::new().bytes(1, &[1]))?;
        ask(Attributes::new().bytes(2, &[0, 0, 0, 64, 2, 0]).be32(5, 1))?;
        Ok(Self { netlink })
    }

    /// What has come; empty when nothing has.
    pub(crate) fn receive(&mut self) -> io::Result<Vec<Notice>> {
        let answers = match self.netlink.receive() {
            // Lost announcements are in the gate's counts.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Vec::new(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Vec::new()),
            other => other?,
        };
        Ok(answers
            .iter()
            .filter(|answer| answer.kind == PACKET)
            .filter_map(|answer| notice(attributes::find(answer.body.get(4..)?, 9)?))
            .collect())
    }
}

impl AsFd for Notices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

/// Reads the head of a packet that the box's kernel made.
fn notice(packet: &[u8]) -> Option<Notice> {
    let (address, protocol, transport) = match packet.first()? >> 4 {
        4 => {
            let octets: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            let length = usize::from(packet[0] & 0xf) * 4;
            (IpAddr::V4(Ipv4Addr::from(octets)), *packet.get(9)?, packet.get(length..)?)
        }
        6 => {
            let octets: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            (IpAddr::V6(Ipv6Addr::from(octets)), *packet.get(6)?, packet.get(40..)?)
        }
        _ => return None,
    };
    let port = match protocol {
        6 | 17 => u16::from_be_bytes([*transport.get(2)?, *transport.get(3)?]),
        _ => 0,
    };
    Some(Notice { address, protocol, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_destination_of_a_packet_is_read_and_a_cut_one_is_none() {
        let mut packet = vec![0; 24];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        packet[22..24].copy_from_slice(&443_u16.to_be_bytes());
        let address = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(notice(&packet), Some(Notice { address, protocol: 6, port: 443 }));
        packet[9] = 1;
        assert_eq!(notice(&packet), Some(Notice { address, protocol: 1, port: 0 }));
        packet[9] = 17;
        for length in 0..24 {
            assert_eq!(notice(&packet[..length]), None);
        }
    }
}
