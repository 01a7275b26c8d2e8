//! The addresses by which a box's network is wired, and the test for public ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The box's one address beside loopback: the source of everything that is carried, and where the
/// relay listens. RFC 7335 keeps 192.0.0.0/29 for such a use between a host and what runs on it, so
/// that it collides with no private network that a rule may list.
pub const BOX_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 2);

/// The host as the box sees it: what the name `host` resolves to. Rules `host:PORT` open ports here.
pub const HOST_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 1);

/// The box's IPv6 address beside loopback, a unique local one (RFC 4193): programs that follow
/// RFC 6724 then prefer IPv4 where a name has both.
pub const BOX_V6: Ipv6Addr = Ipv6Addr::new(0xfd68, 0x3569, 0, 0, 0, 0, 0, 2);

/// Where the resolver answers in the box, over UDP and TCP, port 53: what the box's
/// `/etc/resolv.conf` must name.
pub const RESOLVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 53);

/// The port of the resolver.
pub(crate) const RESOLVER_PORT: u16 = 53;

/// An IPv4 address in IPv6 clothes is the IPv4 address: the host would connect there.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Whether no flow to this address is ever carried, whatever is listed: the box's own loopback, the
/// relay itself, and what is no destination at all.
pub(crate) fn is_never_carried(address: IpAddr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address == IpAddr::V4(Ipv4Addr::BROADCAST)
        || address == IpAddr::V4(BOX_V4)
        || address == IpAddr::V6(BOX_V6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_the_relay_are_never_carried_in_any_spelling() {
        for text in ["127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "192.0.0.2", "ff02::1"] {
            let address = canonical(text.parse().unwrap());
            assert!(is_never_carried(address), "{text}");
        }
        assert!(is_never_carried(canonical("::ffff:127.0.0.1".parse().unwrap())));
        assert!(is_never_carried("fd68:3569::2".parse().unwrap()));
        for text in ["8.8.8.8", "10.0.0.1", "192.0.0.1", "2600::1"] {
            assert!(!is_never_carried(text.parse().unwrap()), "{text}");
        }
    }
}
