//! Addresses that stand for services in a box.

use std::net::{IpAddr, Ipv4Addr};

use crate::grant::Via;
use crate::net_rule::{NetRule, NetTarget};
use crate::resolved::{NetMode, ResolvedPolicy};

/// The first of the addresses that a box is given for the services of its grants by `intercept`;
/// they differ in the last byte. They are of the range for benchmarks of routers (RFC 2544).
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// Whether a rule lists addresses among which are some that stand for a service.
fn lists_stand_in(rule: &NetRule) -> bool {
    let NetTarget::Addresses(range) = rule.target() else { return false };
    (0..=u8::MAX).any(|last| {
        let [a, b, c, _] = FIRST.octets();
        range.contains(IpAddr::V4(Ipv4Addr::new(a, b, c, last)))
    })
}

impl ResolvedPolicy {
    /// The first rule that lists an address which stands for the service of a grant by `intercept`,
    /// and the first such grant. What is listed by address is connected to as it is, so that a flow
    /// to the service would go there instead of to the broker.
    #[must_use]
    pub fn rule_over_stand_in(&self) -> Option<(&NetRule, &str)> {
        if self.net.mode != NetMode::Allow {
            return None;
        }
        let (grant, _) = self.grants.iter().find(|(_, grant)| grant.via == Via::Intercept)?;
        let rule = self.net.allow.iter().find(|rule| lists_stand_in(rule))?;
        Some((rule, grant))
    }
}
