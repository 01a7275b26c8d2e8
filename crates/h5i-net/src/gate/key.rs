//! The keys of the gate's sets: address, protocol, port, each padded to four bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use h5i_policy::{Cidr, Protocol};

use super::expression::Family;

/// The number of a protocol in an IP header.
pub(crate) const fn protocol_number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Udp => 17,
        _ => 6,
    }
}

/// A range of destinations that the gate lets through to the relay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range {
    pub(crate) addresses: Cidr,
    pub(crate) protocol: Protocol,
    /// `None` for every port.
    pub(crate) port: Option<u16>,
}

impl Range {
    pub(super) fn family(&self) -> Family {
        if self.addresses.is_ipv6() { Family::V6 } else { Family::V4 }
    }

    /// The first and the last key of the range.
    pub(super) fn ends(&self) -> (Vec<u8>, Vec<u8>) {
        let number = protocol_number(self.protocol);
        let (low, high) = self.port.map_or((0, u16::MAX), |port| (port, port));
        let first = self.addresses.address();
        let length = u32::from(self.addresses.prefix_length());
        let last = match first {
            IpAddr::V4(v4) => {
                let below = u32::MAX.checked_shr(length).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() | below))
            }
            IpAddr::V6(v6) => {
                let below = u128::MAX.checked_shr(length).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() | below))
            }
        };
        (key(first, number, low), key(last, number, high))
    }
}

/// The key of one destination.
pub(super) fn key(address: IpAddr, protocol: u8, port: u16) -> Vec<u8> {
    let mut key = match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    key.extend([protocol, 0, 0, 0]);
    key.extend(port.to_be_bytes());
    key.extend([0, 0]);
    key
}

/// A destination from its key.
pub(super) fn read(key: &[u8]) -> Option<(IpAddr, u8, u16)> {
    let (address, rest) = match key.len() {
        12 => {
            let (address, rest) = key.split_first_chunk::<4>()?;
            (IpAddr::from(*address), rest)
        }
        24 => {
            let (address, rest) = key.split_first_chunk::<16>()?;
            (IpAddr::from(*address), rest)
        }
        _ => return None,
    };
    let [protocol, _, _, _, high, low, ..] = *rest else { return None };
    Some((address, protocol, u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back() {
        for address in ["192.0.2.9", "2001:db8::9"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(read(&key(address, 17, 443)), Some((address, 17, 443)));
        }
        assert_eq!(read(&[0; 13]), None);
    }

    #[test]
    fn a_range_ends_at_its_last_address_and_port() {
        let range = |text: &str, port| Range {
            addresses: Cidr::new(text).unwrap(),
            protocol: Protocol::Tcp,
            port,
        };
        let ends = |text, port| {
            let (first, last) = range(text, port).ends();
            (read(&first).unwrap(), read(&last).unwrap())
        };
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(
            ends("10.0.0.0/8", Some(5)),
            ((address("10.0.0.0"), 6, 5), (address("10.255.255.255"), 6, 5))
        );
        assert_eq!(
            ends("0.0.0.0/0", None),
            ((address("0.0.0.0"), 6, 0), (address("255.255.255.255"), 6, 65535))
        );
        assert_eq!(
            ends("2600::1", Some(5)),
            ((address("2600::1"), 6, 5), (address("2600::1"), 6, 5))
        );
    }
}
