//! Where a datagram was going before the gate led it to the relay: the kernel's table of flows,
//! asked by netlink (`linux/netfilter/nfnetlink_conntrack.h`). TCP has a socket option for it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::attributes::{self, Attributes};
use crate::netlink::Netlink;

const GET: u16 = (1 << 8) | 1;
const DELETE: u16 = (1 << 8) | 2;
const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
const UDP: u8 = 17;

/// The original destination of the UDP flow whose answers go from `relay` to `client`.
pub(super) fn original(
    netlink: &mut Netlink,
    relay: SocketAddr,
    client: SocketAddr,
) -> io::Result<SocketAddr> {
    let answer = netlink.fetch(GET, by_reply(relay, client))?;
    let found = answer.body.get(4..).and_then(destination);
    found.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Has the kernel forget the flow: its next datagram is judged by the gate as a new one's first.
pub(super) fn forget(
    netlink: &mut Netlink,
    relay: SocketAddr,
    client: SocketAddr,
) -> io::Result<()> {
    netlink.ask(DELETE, 0, by_reply(relay, client))
}

fn by_reply(relay: SocketAddr, client: SocketAddr) -> Vec<u8> {
    let family = if client.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut body = vec![u8::try_from(family).unwrap_or(0), 0, 0, 0];
    body.extend(Attributes::new().nest(REPLY, &tuple(relay, client)).as_bytes());
    body
}

/// Addresses, protocol and ports of one direction.
fn tuple(from: SocketAddr, to: SocketAddr) -> Attributes {
    let addresses = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            Attributes::new().bytes(1, &from.octets()).bytes(2, &to.octets())
        }
        (from, to) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            Attributes::new().bytes(3, &octets(from)).bytes(4, &octets(to))
        }
    };
    let protocol = Attributes::new()
        .bytes(1, &[UDP])
        .bytes(2, &from.port().to_be_bytes())
        .bytes(3, &to.port().to_be_bytes());
    Attributes::new().nest(1, &addresses).nest(2, &protocol)
}

fn destination(attributes: &[u8]) -> Option<SocketAddr> {
    let original = attributes::find(attributes, ORIGINAL)?;
    let (addresses, protocol) = (attributes::find(original, 1)?, attributes::find(original, 2)?);
    let address = match (attributes::find(addresses, 2), attributes::find(addresses, 4)) {
        (Some(v4), _) => IpAddr::from(<[u8; 4]>::try_from(v4).ok()?),
        (_, Some(v6)) => IpAddr::from(<[u8; 16]>::try_from(v6).ok()?),
        _ => return None,
    };
    let port = attributes::find(protocol, 3)?.try_into().ok().map(u16::from_be_bytes)?;
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_reads_back() {
        for (from, to) in
            [("192.0.2.1:5", "192.0.2.2:443"), ("[2001:db8::1]:5", "[2001:db8::2]:443")]
        {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let answer = Attributes::new().nest(ORIGINAL, &tuple(from, to));
            assert_eq!(destination(answer.as_bytes()), Some(to));
            assert_eq!(destination(&answer.as_bytes()[..20]), None);
        }
    }
}
