//! The rules of a box's network, as questions that the gate, the resolver and the relay ask.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use h5i_policy::{Cidr, HostName, NetMode, NetPolicy, NetRule, NetTarget, Protocol};

use crate::address::HOST_V4;
use crate::gate::Range;

/// The rules that hold now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    mode: NetMode,
    /// Those that lead to names; asked for each name that is pinned.
    names: Vec<NetRule>,
    /// All others.
    allow: Vec<NetRule>,
    ranges: BTreeSet<Range>,
}

impl Rules {
    /// Rules have no meaning outside of mode `allow`.
    pub(crate) fn new(policy: &NetPolicy) -> Self {
        let listed: Vec<NetRule> = match policy.mode {
            NetMode::Allow => policy.allow.iter().cloned().collect(),
            _ => Vec::new(),
        };
        let leads_to_name =
            |rule: &NetRule| matches!(rule.target(), NetTarget::Name(_) | NetTarget::Below(_));
        let (names, allow): (Vec<_>, Vec<_>) = listed.into_iter().partition(leads_to_name);
        let ranges = if policy.mode == NetMode::Open { public() } else { ranges(&allow) };
        Self { mode: policy.mode, names, allow, ranges }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.mode == NetMode::Open
    }

    /// The rules that allow `name`, whatever their port.
    pub(crate) fn of_name<'a>(&'a self, name: &'a HostName) -> impl Iterator<Item = &'a NetRule> {
        self.names.iter().filter(|rule| rule.allows_name(name, rule.port(), rule.protocol()))
    }

    /// Whether the resolver answers for `name`.
    pub(crate) fn resolves(&self, name: &HostName) -> bool {
        self.is_open() || self.of_name(name).next().is_some()
    }

    /// Whether any port of the host's loopback is allowed.
    pub(crate) fn lists_host(&self) -> bool {
        self.allow.iter().any(|rule| *rule.target() == NetTarget::HostLoopback)
    }

    /// The rule that allows a flow to this port of the host's loopback.
    pub(crate) fn host(&self, port: u16, protocol: Protocol) -> Option<&NetRule> {
        self.allow.iter().find(|rule| {
            *rule.target() == NetTarget::HostLoopback
                && (rule.port(), rule.protocol()) == (port, protocol)
        })
    }

    /// The rule that lists the address of a flow.
    pub(crate) fn address(&self, to: SocketAddr, protocol: Protocol) -> Option<&NetRule> {
        self.allow.iter().find(|rule| rule.allows_address(to.ip(), to.port(), protocol))
    }

    /// Whether any rule lists the address, at any port.
    pub(crate) fn lists_address(&self, address: IpAddr) -> bool {
        self.allow
            .iter()
            .any(|rule| matches!(rule.target(), NetTarget::Addresses(r) if r.contains(address)))
    }

    /// What the gate lets through to the relay whatever names resolve to: no range within another.
    pub(crate) fn ranges(&self) -> &BTreeSet<Range> {
        &self.ranges
    }
}

/// All of the public network, by TCP.
fn public() -> BTreeSet<Range> {
    let everything = ["0.0.0.0/0", "::/0"].into_iter().filter_map(|all| Cidr::new(all).ok());
    everything
        .flat_map(|all| all.public_part())
        .map(|addresses| Range { addresses, protocol: Protocol::Tcp, port: None })
        .collect()
}

/// The largest ranges that rules list.
fn ranges(rules: &[NetRule]) -> BTreeSet<Range> {
    let mut all: Vec<Range> = rules
        .iter()
        .filter_map(|rule| {
            let addresses = match rule.target() {
                NetTarget::Addresses(range) => *range,
                NetTarget::HostLoopback => Cidr::from(IpAddr::V4(HOST_V4)),
                _ => return None,
            };
            Some(Range { addresses, protocol: rule.protocol(), port: Some(rule.port()) })
        })
        .collect();
    // Two ranges are apart or one within the other, and the outer one sorts first.
    all.sort_by_key(|range| (range.protocol, range.port, range.addresses));
    all.dedup_by(|inner, outer| {
        let same = (inner.port, inner.protocol) == (outer.port, outer.protocol);
        same && outer.addresses.covers(&inner.addresses)
    });
    all.into_iter().collect()
}

/// Whether an address is of the public network: none of IANA's special-purpose ranges, which hold
/// private, loopback, link-local (cloud metadata among them), shared, benchmark and documentation
/// addresses, and the ranges by which IPv6 reaches IPv4 (mapped, NAT64, 6to4, Teredo).
pub(crate) fn is_public(address: IpAddr) -> bool {
    !Cidr::from(address).public_part().is_empty()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    fn rules(mode: NetMode, allow: &[&str]) -> Rules {
        let mut policy = NetPolicy::default();
        policy.mode = mode;
        policy.allow = allow.iter().map(|rule| NetRule::new(rule).unwrap()).collect();
        Rules::new(&policy)
    }

    #[test]
    fn ranges_never_overlap() {
        let listed = ["10.0.0.0/8:80", "10.1.0.0/16:80", "10.1.0.0/16:81", "192.0.0.0/29:5432"];
        let rules = rules(NetMode::Allow, &[&listed[..], &["host:5432"]].concat());
        let found: Vec<_> =
            rules.ranges().iter().map(|r| (r.addresses.to_string(), r.port)).collect();
        assert_eq!(
            found,
            [
                ("10.0.0.0/8".to_owned(), Some(80)),
                ("10.1.0.0/16".to_owned(), Some(81)),
                ("192.0.0.0/29".to_owned(), Some(5432))
            ]
        );
    }

    #[test]
    fn a_mode_without_rules_has_none() {
        assert!(rules(NetMode::None, &["10.0.0.0/8:80"]).ranges().is_empty());
        let name = HostName::new("a.example").unwrap();
        assert!(!rules(NetMode::None, &["a.example"]).resolves(&name));
        assert!(rules(NetMode::Allow, &["a.example"]).resolves(&name));
        assert!(rules(NetMode::Open, &[]).resolves(&name));
    }

    #[test]
    fn every_spelling_of_private_space_is_special() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:a00:1::",
            "2001::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "100::1",
            "fec0::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["1.1.1.1", "8.8.8.8", "172.32.0.1", "2600::1", "2a00:1450::1"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_private_is_public_and_no_ipv4_address_is_in_the_clothes_of_ipv6(
            bits: u32, high: u128, host: u16,
        ) {
            let v4 = Ipv4Addr::from_bits(bits);
            if is_public(v4.into()) {
                let private = v4.is_private() || v4.is_loopback() || v4.is_link_local();
                let no_host = v4.is_unspecified() || v4.is_broadcast() || v4.is_multicast();
                prop_assert!(!private && !no_host && !v4.is_documentation(), "{v4}");
            }
            let v6 = Ipv6Addr::from_bits(high);
            if is_public(v6.into()) {
                prop_assert_eq!(v6.segments()[0] >> 13, 1, "{} is outside of 2000::/3", v6);
            }
            let [a, b] = [bits >> 16, bits & 0xffff].map(|half| u16::try_from(half).unwrap());
            for clothed in [
                v4.to_ipv6_mapped(),
                v4.to_ipv6_compatible(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
                Ipv6Addr::new(0x64, 0xff9b, 1, host, 0, 0, a, b),
                Ipv6Addr::new(0x2002, a, b, host, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, host, 0, 0, 0, !a, !b),
            ] {
                prop_assert!(!is_public(clothed.into()), "{clothed}");
            }
        }
    }
}
