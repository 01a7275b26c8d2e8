//! Changes to the network of a box that is alive.

use crate::net_rule::NetRule;
use crate::resolved::{NetMode, ResolvedPolicy};

/// A change of the network rules while the box lives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LiveChange {
    /// One more rule; a network of mode `none` becomes one of mode `allow`.
    Allow(NetRule),
    /// One rule less.
    Revoke(NetRule),
    /// All of it, now: mode `none`.
    Cut,
}

/// Why a change can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The box has the host's own network, which nothing filters.
    #[error("the box has the host's network, and nothing filters it")]
    HostNetwork,
    /// Rules have no meaning in an open network.
    #[error("the box has an open network, where rules have no meaning")]
    OpenNetwork,
    /// The rule lists an address that stands for the service of a grant by `intercept`.
    #[error("rule \"{rule}\" lists addresses of 198.18.0.0/24, which stand for services of grants")]
    StandIn {
        /// The rule.
        rule: NetRule,
    },
    /// The rule to be revoked is not listed.
    #[error("rule \"{rule}\" is not listed")]
    NotListed {
        /// The rule.
        rule: NetRule,
    },
    /// The rule to be revoked is not listed, and another one allows what it says.
    #[error("rule \"{rule}\" is not listed; \"{by}\" allows it")]
    Covered {
        /// The rule.
        rule: NetRule,
        /// The rule that is listed.
        by: Box<NetRule>,
    },
}

impl ResolvedPolicy {
    /// The policy that holds after a change. Its digest names it in the records.
    ///
    /// # Errors
    /// [`LiveError`], by variant; a rule that is allowed already is no error.
    pub fn after(&self, change: &LiveChange) -> Result<Self, LiveError> {
        let mut next = self.clone();
        match (change, self.net.mode) {
            (_, NetMode::Host) => return Err(LiveError::HostNetwork),
            (LiveChange::Cut, _) => next.net.mode = NetMode::None,
            (_, NetMode::Open) => return Err(LiveError::OpenNetwork),
            (LiveChange::Allow(rule), _) => {
                next.net.mode = NetMode::Allow;
                next.net.allow.insert(rule.clone());
                if next.rule_over_stand_in().is_some() {
                    return Err(LiveError::StandIn { rule: rule.clone() });
                }
            }
            (LiveChange::Revoke(rule), _) => {
                if !next.net.allow.remove(rule) {
                    let rule = rule.clone();
                    return Err(match self.net.allow.iter().find(|own| own.covers(&rule)) {
                        Some(by) => LiveError::Covered { rule, by: Box::new(by.clone()) },
                        None => LiveError::NotListed { rule },
                    });
                }
            }
        }
        Ok(next.canonical())
    }
}

#[cfg(test)]
mod tests {
    use super::{LiveChange, LiveError};
    use crate::net_rule::NetRule;
    use crate::resolved::{NetMode, ResolvedPolicy};

    fn rule(text: &str) -> NetRule {
        NetRule::new(text).expect(text)
    }

    #[test]
    fn a_rule_that_was_allowed_and_revoked_leaves_no_rule() {
        let before = ResolvedPolicy::default();
        let allowed = before.after(&LiveChange::Allow(rule("a.example"))).expect("allow");
        assert_eq!(allowed.net.mode, NetMode::Allow);
        assert_ne!(allowed.digest(), before.digest());
        let again = allowed.after(&LiveChange::Allow(rule("a.example"))).expect("allow");
        assert_eq!(again.digest(), allowed.digest());
        let revoked = allowed.after(&LiveChange::Revoke(rule("a.example"))).expect("revoke");
        assert!(revoked.net.allow.is_empty());
        assert_eq!(allowed.after(&LiveChange::Cut), Ok(before));
    }

    #[test]
    fn an_address_that_stands_for_a_service_is_not_allowed_beside_its_grant() {
        let mut policy = ResolvedPolicy::default();
        let allow = |text| LiveChange::Allow(rule(text));
        policy.after(&allow("198.18.0.0/16")).expect("no grant");
        let mut grant = crate::Grant::to("a.example".parse().expect("a name"));
        policy.grants.insert("g".into(), grant.clone());
        policy.after(&allow("198.18.0.0/16")).expect("none by intercept");
        grant.via = crate::Via::Intercept;
        policy.grants.insert("g".into(), grant);
        for text in ["198.18.0.0/16", "198.18.0.7:8080", "0.0.0.0/0:22", "198.18.0.128/25"] {
            let refused = LiveError::StandIn { rule: rule(text) };
            assert_eq!(policy.after(&allow(text)), Err(refused), "{text}");
        }
        for text in
            ["198.18.1.0/24", "198.19.0.0/16", "10.0.0.0/8", "[2001:db8::/32]:22", "b.example"]
        {
            policy.after(&allow(text)).expect(text);
        }
    }

    #[test]
    fn what_is_not_listed_cannot_be_revoked_and_the_rule_that_allows_it_is_named() {
        let policy = ResolvedPolicy::default()
            .after(&LiveChange::Allow(rule("*.example.com")))
            .expect("allow");
        let revoke = |text| policy.after(&LiveChange::Revoke(rule(text)));
        assert_eq!(revoke("b.example"), Err(LiveError::NotListed { rule: rule("b.example") }));
        assert_eq!(
            revoke("a.example.com"),
            Err(LiveError::Covered {
                rule: rule("a.example.com"),
                by: rule("*.example.com").into()
            })
        );
    }

    #[test]
    fn a_network_that_nothing_filters_takes_no_rules() {
        let mut policy = ResolvedPolicy::default();
        policy.net.mode = NetMode::Host;
        assert_eq!(policy.after(&LiveChange::Cut), Err(LiveError::HostNetwork));
        policy.net.mode = NetMode::Open;
        let allow = LiveChange::Allow(rule("a.example"));
        assert_eq!(policy.after(&allow), Err(LiveError::OpenNetwork));
        assert_eq!(policy.after(&LiveChange::Cut).map(|p| p.net.mode), Ok(NetMode::None));
    }
}
