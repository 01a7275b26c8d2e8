//! Services by `intercept` whose address a box can't be told.

use std::net::IpAddr;

use h5i_net::Resolve;
use h5i_policy::{Cidr, Grant, NetMode, NetRule, NetTarget, Protocol, ResolvedPolicy, Via};

use crate::failure::{Failure, Kind};
use crate::shown::Shown;

/// Refuses a rule for another port of a service by `intercept` whose addresses are all private.
///
/// A name whose flows all go to the broker has an address that stands for it. One that is listed at
/// another port needs its own, and no box is told a private address that is not listed: the grant
/// would find no service, without a word. The name is looked up only where there is such a rule.
///
/// # Errors
/// `refused`, with the grant and the rule.
pub(crate) fn check_private(
    policy: &ResolvedPolicy,
    resolver: &dyn Resolve,
) -> Result<(), Failure> {
    if policy.net.mode != NetMode::Allow {
        return Ok(());
    }
    for (name, grant) in &policy.grants {
        let Some(rule) = other_port(policy, grant) else { continue };
        // What can't be looked up now is told when the box asks.
        let Ok(found) = resolver.resolve(&grant.host) else { continue };
        let told = |address: &IpAddr| is_told(policy, *address);
        if found.addresses.is_empty() || found.addresses.iter().any(told) {
            continue;
        }
        let message = format!(
            "grant `{}` is for a private service, and `{rule}` lists its name for another port, for \
             which the box would have to be told a private address",
            Shown::text(name)
        );
        return Err(Failure::told(Kind::Refused, message).hint(
            "list that port by the service's address instead, or ask the service by a grant by reverse",
        ));
    }
    Ok(())
}

/// A rule by which flows to the grant's host go elsewhere than to the broker.
fn other_port<'a>(policy: &'a ResolvedPolicy, grant: &Grant) -> Option<&'a NetRule> {
    if grant.via != Via::Intercept {
        return None;
    }
    let diverted = |rule: &NetRule| {
        let same = |other: &Grant| {
            other.via == Via::Intercept && (&other.host, other.port) == (&grant.host, rule.port())
        };
        rule.protocol() == Protocol::Tcp && policy.grants.values().any(same)
    };
    let mut rules = policy.net.allow.iter();
    rules
        .find(|rule| rule.allows_name(&grant.host, rule.port(), rule.protocol()) && !diverted(rule))
}

/// Whether a box may be told this address of a name.
fn is_told(policy: &ResolvedPolicy, address: IpAddr) -> bool {
    let lists = |rule: &NetRule| matches!(rule.target(), NetTarget::Addresses(range) if range.contains(address));
    let listed = !address.is_loopback() && policy.net.allow.iter().any(lists);
    listed || !Cidr::from(address).public_part().is_empty()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use h5i_net::Addresses;
    use h5i_policy::HostName;

    use super::*;

    /// Knows two names, and is asked for nothing without need.
    struct Names;

    impl Resolve for Names {
        fn resolve(&self, name: &HostName) -> io::Result<Addresses> {
            let address = match name.as_str() {
                "in.corp.example" => IpAddr::from([10, 0, 0, 7]),
                "out.example" => IpAddr::from([8, 8, 8, 8]),
                _ => return Err(io::ErrorKind::NotFound.into()),
            };
            Ok(Addresses::new(vec![address], Duration::from_secs(1)))
        }
    }

    fn refusal(host: &str, via: Via, rules: &[&str]) -> Option<String> {
        let mut policy = ResolvedPolicy::default();
        let mut grant = Grant::to(host.parse().unwrap());
        grant.via = via;
        policy.grants.insert("g".into(), grant);
        policy.net.mode = NetMode::Allow;
        policy.net.allow = rules.iter().map(|rule| NetRule::new(rule).unwrap()).collect();
        check_private(&policy, &Names).err().map(|failure| failure.message)
    }

    #[test]
    fn another_port_of_a_private_service_is_refused_by_its_name() {
        let refused = |rules: &[&str]| refusal("in.corp.example", Via::Intercept, rules);
        for rule in ["in.corp.example:22", "*.corp.example:8443", "in.corp.example:443/udp"] {
            let message = refused(&[rule]).expect(rule);
            assert!(message.starts_with("grant `g` is for a private service"), "{message}");
            assert!(message.contains(&format!("`{rule}`")), "{message}");
        }
        for rules in [
            &["in.corp.example"][..],
            &["*.corp.example:443"],
            &["other.test:22", "10.0.0.7:22"],
            // Whose address is listed, the box may be told.
            &["in.corp.example:22", "10.0.0.0/8:22"],
        ] {
            assert_eq!(refused(rules), None, "{rules:?}");
        }
        assert_eq!(refusal("in.corp.example", Via::Reverse, &["in.corp.example:22"]), None);
        assert_eq!(refusal("out.example", Via::Intercept, &["out.example:22"]), None);
        assert_eq!(refusal("unknown.example", Via::Intercept, &["unknown.example:22"]), None);
    }
}
