//! Which rules a person should look at twice before saying yes to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use h5i_policy::{Cidr, NetRule, NetTarget};

/// Where clouds answer with the credentials of the machine that asks.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];
const METADATA_NAMES: [&str; 3] = ["instance-data", "metadata", "metadata.google.internal"];
const LINK_LOCAL: [&str; 2] = ["169.254.0.0/16", "fe80::/10"];

/// Why a rule deserves a second look, whoever asks for it; none for most.
pub(crate) fn second_look(rule: &NetRule) -> Option<&'static str> {
    match rule.target() {
        NetTarget::HostLoopback => Some("a port of this host's own loopback"),
        NetTarget::Name(name) if METADATA_NAMES.contains(&name.as_str()) => {
            Some("a name of a cloud's metadata service, which gives out credentials")
        }
        NetTarget::Name(name) if name.is_public_suffix() => {
            Some("a bare public suffix, which is nobody's site")
        }
        NetTarget::Addresses(range) => address(range),
        _ => None,
    }
}

fn address(range: &Cidr) -> Option<&'static str> {
    if METADATA.iter().any(|address| range.contains(*address)) {
        return Some("an address of a cloud's metadata service, which gives out credentials");
    }
    let meets = |other: &Cidr| range.covers(other) || other.covers(range);
    if LINK_LOCAL.iter().any(|own| Cidr::new(own).is_ok_and(|own| meets(&own))) {
        return Some("link-local: what answers there is next to this host, or is this host");
    }
    range.contains(IpAddr::V4(Ipv4Addr::BROADCAST)).then_some("broadcast: to every host nearby")
}

#[cfg(test)]
mod tests {
    use h5i_policy::NetRule;

    use super::second_look;

    fn look(rule: &str) -> Option<&'static str> {
        second_look(&NetRule::new(rule).unwrap())
    }

    #[test]
    fn rules_that_lead_nearby_or_to_nobody_are_remarked() {
        for (rule, word) in [
            ("host:22", "loopback"),
            ("com:443", "public suffix"),
            ("github.io:443", "public suffix"),
            ("metadata.google.internal:80", "metadata"),
            ("169.254.169.254:80", "metadata"),
            ("[fd00:ec2::254]:80", "metadata"),
            ("169.254.1.2:80", "link-local"),
            ("[fe80::1]:80", "link-local"),
            ("169.254.7.0/24:80", "link-local"),
            ("0.0.0.0/0:80", "metadata"),
            ("255.255.255.255:9/udp", "broadcast"),
        ] {
            assert!(look(rule).is_some_and(|why| why.contains(word)), "{rule}: {:?}", look(rule));
        }
    }

    #[test]
    fn ordinary_rules_are_not() {
        for rule in [
            "api.example.com:443",
            "*.example.com:443",
            "acme.github.io:443",
            "192.0.2.7:80",
            "169.253.0.0/16:80",
            "[2001:db8::1]:443",
        ] {
            assert_eq!(look(rule), None, "{rule}");
        }
    }
}
