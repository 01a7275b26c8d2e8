//! Which socket of the box a flow came from: sock_diag(7), asked for exactly one.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use h5i_policy::Protocol;

use crate::netlink::Netlink;
use crate::network::SocketRequest;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// Where `struct inet_diag_msg` has the inode: family to retransmissions, the addresses, then
/// `expires`, `rqueue`, `wqueue` and `uid`.
const INODE: usize = 4 + 48 + 16;

/// The sockets of the box's network namespace. The question was asked from outside: nothing of it
/// can be seen or answered by the box.
#[derive(Debug)]
pub struct Sockets(Netlink);

/// The socket that [`Sockets`] asks by: made in the box's network namespace.
#[must_use]
pub const fn sockets_request() -> SocketRequest {
    const NETLINK_SOCK_DIAG: i32 = 4;
    SocketRequest { domain: libc::AF_NETLINK, kind: libc::SOCK_RAW, protocol: NETLINK_SOCK_DIAG }
}

impl Sockets {
    /// Asks by a socket as [`sockets_request`] says.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self(Netlink::new(socket))
    }

    /// The inode of the box's socket at `client` that wanted to go `to`. `None` when it is gone
    /// already, or the kernel does not tell.
    pub fn inode(&mut self, protocol: Protocol, client: SocketAddr, to: SocketAddr) -> Option<u64> {
        let answer = self.0.fetch(BY_FAMILY, question(protocol, client, to)).ok()?;
        let inode = answer.body.get(INODE..INODE + 4)?.try_into().ok()?;
        // A socket that is closed, and only waits for the other side, has none.
        Some(u32::from_ne_bytes(inode).into()).filter(|inode| *inode != 0)
    }
}

/// `struct inet_diag_req_v2` for one socket, as the box's program sees its two addresses.
fn question(protocol: Protocol, client: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let family = if client.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // For UDP the kernel takes the other side for the source, "for historical reasons".
    let (protocol, from, to) = match protocol {
        Protocol::Udp => (libc::IPPROTO_UDP, to, client),
        _ => (libc::IPPROTO_TCP, client, to),
    };
    // Both are numbers below 256.
    let mut body: Vec<u8> = [family, protocol].map(|number| number.to_ne_bytes()[LEAST]).into();
    // No extension, and sockets in every state.
    body.extend([0, 0]);
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(from.port().to_be_bytes());
    body.extend(to.port().to_be_bytes());
    body.extend(address(from.ip()));
    body.extend(address(to.ip()));
    // Any interface, and no cookie to compare.
    body.extend(0_u32.to_ne_bytes());
    body.extend([0xff; 8]);
    body
}

/// The place of the least byte of an integer in memory.
const LEAST: usize = if cfg!(target_endian = "little") { 0 } else { 3 };

fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::question;
    use h5i_policy::Protocol;

    #[test]
    fn a_question_has_the_kernels_layout() {
        let (client, to) = ("192.0.0.2:257", "93.184.216.34:443");
        let body = question(Protocol::Tcp, client.parse().unwrap(), to.parse().unwrap());
        assert_eq!(body.len(), 56);
        assert_eq!(body[..2], [2, 6]);
        assert_eq!(body[8..12], [1, 1, 1, 187]);
        assert_eq!((&body[12..16], &body[28..32]), (&[192, 0, 0, 2][..], &[93, 184, 216, 34][..]));
        let body = question(Protocol::Udp, "[::1]:1".parse().unwrap(), "[::2]:2".parse().unwrap());
        assert_eq!((body[..2].to_vec(), body[27], body[43]), (vec![10, 17], 2, 1));
    }
}
