//! What a policy may ask for and this version can't enforce yet.

use std::fmt;

use crate::react::Reaction;
use crate::resolved::{GrantOrigin, NetBudget, NetMode, ReadGrant, RecordOutput, ResolvedPolicy};
use crate::secret_ref::SecretRef;
use crate::tier::Tier;

/// One field that this version can't enforce. A policy with such a field is refused at `create`,
/// never ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unenforced {
    /// The field, as it is named in a policy document.
    pub field: String,
    /// What the policy asks for.
    pub asked: String,
    /// Why that can't be had.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

impl fmt::Display for Unenforced {
    /// One sentence: field, value, reason. What to do instead stands in its own field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} {}", self.field, crate::escape::Escaped(&self.asked), self.why)
    }
}

/// One thing that can't be enforced yet.
struct Row {
    field: &'static str,
    asks: fn(&ResolvedPolicy) -> Option<String>,
    why: &'static str,
    instead: &'static str,
}

/// Everything that can't be enforced yet. Building a mechanism means to delete its rows.
const ROWS: &[Row] = &[
    Row {
        field: "tier",
        asks: |policy| tier(policy, Tier::Container),
        why: "can't be enforced by this version: it comes with the container tier",
        instead: "choose --tier process or supervised",
    },
    Row {
        field: "tier",
        asks: |policy| tier(policy, Tier::Microvm),
        why: "can't be enforced by this version: it comes with the microvm tier",
        instead: "choose --tier process or supervised",
    },
    Row {
        field: "net.mode",
        asks: |policy| {
            let listed = matches!(policy.net.mode, NetMode::Allow | NetMode::Open);
            (listed && policy.tier < Tier::Supervised).then(|| quoted(&policy.net.mode))
        },
        why: "needs a network that the host filters, which only tier supervised and stronger have",
        instead: "choose --tier supervised, or net.mode \"none\" or \"host\"",
    },
    Row {
        field: "net.budget",
        asks: |policy| {
            let set = policy.net.budget != NetBudget::default();
            (set && policy.net.mode == NetMode::Host).then(|| "a budget".to_owned())
        },
        why: "can't be enforced on the host's own network, where nothing counts",
        instead: "leave it out, or choose net.mode \"allow\" or \"open\" at tier supervised",
    },
    Row {
        field: "fs.hide",
        asks: |policy| {
            let named = |grant: &ReadGrant| grant.origin == GrantOrigin::Policy;
            let (path, _) = policy.fs.read.iter().find(|(_, grant)| named(grant))?;
            (!policy.fs.hide.is_empty()).then(|| format!("patterns, beside fs.read {path}"))
        },
        why: "can't be enforced by this version in host paths that fs.read grants",
        instead: "leave out fs.read, or fs.hide; in the workspace fs.hide holds",
    },
    Row {
        field: "grant",
        asks: |policy| {
            let names: Vec<&str> = policy.grants.keys().map(String::as_str).collect();
            (!names.is_empty() && policy.tier < Tier::Supervised).then(|| names.join(", "))
        },
        why: "needs a network that the host holds, which only tier supervised and stronger have",
        instead: "choose --tier supervised, or a profile without grants",
    },
    Row {
        field: "env.pass",
        asks: |policy| {
            let mut secrets = policy.grants.values().filter_map(|grant| match &grant.secret {
                Some(SecretRef::Env(name)) => Some(name),
                _ => None,
            });
            secrets.find(|name| policy.env.pass.contains(*name)).cloned()
        },
        why: "can't be had beside a grant whose secret it holds: that stays on the host",
        instead: "leave the variable out of env.pass",
    },
    Row {
        field: "react.canary-read",
        asks: |policy| {
            let asked = reaction(policy.react.canary_read)?;
            policy.fs.canaries.is_empty().then_some(asked)
        },
        why: "has nothing to wait for: fs.canaries names no credential that is planted",
        instead: "name one in fs.canaries, as in [\"~/.aws/credentials\"], or leave it out",
    },
    Row {
        field: "fs.canaries",
        asks: |policy| {
            let planted = !policy.fs.canaries.is_empty();
            (planted && policy.tier == Tier::Workspace).then(|| "planted credentials".to_owned())
        },
        why: "can't be had at tier workspace, whose runs nobody watches",
        instead: "choose --tier process, or leave it out",
    },
    Row {
        field: "react.refused-connect",
        asks: |policy| {
            let asked = reaction(policy.react.refused_connect)?;
            (policy.tier < Tier::Supervised).then_some(asked)
        },
        why: "needs a network that the host watches, which only tier supervised and stronger have",
        instead: "choose --tier supervised, or set it to \"continue\"",
    },
    Row {
        field: "record_output",
        asks: |policy| {
            let asked = policy.record_output == RecordOutput::On;
            (asked && policy.tier == Tier::Workspace).then(|| quoted(&policy.record_output))
        },
        why: "can't be done at tier workspace, whose runs have the caller's own output",
        instead: "choose --tier process, or set it to \"off\"",
    },
];

fn tier(policy: &ResolvedPolicy, tier: Tier) -> Option<String> {
    (policy.tier == tier).then(|| quoted(&tier))
}

fn reaction(asked: Reaction) -> Option<String> {
    (asked != Reaction::Continue).then(|| quoted(&asked))
}

fn quoted(value: &dyn fmt::Display) -> String {
    format!("\"{value}\"")
}

/// What this version can't enforce of `policy`, in the order of the fields; empty if it can
/// enforce all of it.
#[must_use]
pub fn unenforced(policy: &ResolvedPolicy) -> Vec<Unenforced> {
    ROWS.iter()
        .filter_map(|row| {
            let asked = (row.asks)(policy)?;
            let Row { field, why, instead, .. } = row;
            Some(Unenforced { field: (*field).to_owned(), asked, why, instead })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{ROWS, unenforced};
    use crate::canaries::Canaries;
    use crate::grant::Grant;
    use crate::home_path::HomePath;
    use crate::host_name::HostName;
    use crate::host_path::HostPath;
    use crate::react::Reaction;
    use crate::resolved::{GrantOrigin, NetMode, ReadGrant, RecordOutput, ResolvedPolicy};
    use crate::tier::Tier;
    use crate::units::Bytes;

    fn planted() -> Canaries {
        let path = HomePath::new("~/.netrc").expect("a path");
        Canaries::new([path].into()).expect("one")
    }

    #[test]
    fn a_policy_that_asks_for_nothing_yet_to_come_is_enforced_in_full() {
        let mut policy = ResolvedPolicy::default();
        assert_eq!(unenforced(&policy), []);
        policy.net.mode = NetMode::Host;
        assert_eq!(unenforced(&policy), []);
        policy.tier = Tier::Workspace;
        assert_eq!(unenforced(&policy), []);
        policy.fs.hide.insert("*.pem".parse().expect("pattern"));
        assert_eq!(unenforced(&policy), []);
        policy.limits.memory = Some(Bytes::mebibytes(1));
        policy.limits.disk = Some(Bytes::mebibytes(1));
        policy.react.gap = Reaction::Kill;
        policy.react.budget = Reaction::FreezeExport;
        policy.react.refused_call = Reaction::Freeze;
        assert_eq!(unenforced(&policy), []);
        policy.tier = Tier::Process;
        policy.fs.canaries = planted();
        policy.react.canary_read = Reaction::Kill;
        assert_eq!(unenforced(&policy), []);
    }

    #[test]
    fn each_row_is_found_by_its_own_field() {
        type Change = fn(&mut ResolvedPolicy);
        let asks: [(&str, Change); 11] = [
            ("tier = \"container\"", |p| p.tier = Tier::Container),
            ("tier = \"microvm\"", |p| p.tier = Tier::Microvm),
            ("net.mode = \"open\"", |p| p.net.mode = NetMode::Open),
            ("net.budget = a budget", |p| {
                p.net.mode = NetMode::Host;
                p.net.budget.connections = Some(1);
            }),
            ("fs.hide = patterns, beside fs.read /opt", |p| {
                p.fs.hide.insert("*.pem".parse().expect("pattern"));
                let path = HostPath::new("/opt").expect("path");
                p.fs.read.insert(path, ReadGrant::whole(GrantOrigin::Policy));
            }),
            ("grant = a", |p| {
                let host = HostName::new("a.example").expect("name");
                p.grants.insert("a".into(), Grant::to(host));
            }),
            ("env.pass = KEY", |p| {
                p.tier = Tier::Supervised;
                let mut grant = Grant::to(HostName::new("a.example").expect("name"));
                grant.secret = Some("env:KEY".parse().expect("a reference"));
                p.grants.insert("a".into(), grant);
                p.env.pass = ["KEY".to_owned(), "OTHER".to_owned()].into();
            }),
            ("react.canary-read = \"kill\"", |p| p.react.canary_read = Reaction::Kill),
            ("fs.canaries = planted credentials", |p| {
                p.tier = Tier::Workspace;
                p.fs.canaries = planted();
            }),
            ("react.refused-connect = \"freeze\"", |p| {
                p.react.refused_connect = Reaction::Freeze;
            }),
            ("record_output = \"on\"", |p| {
                p.tier = Tier::Workspace;
                p.record_output = RecordOutput::On;
            }),
        ];
        assert_eq!(asks.len(), ROWS.len());
        for (sentence, change) in asks {
            let mut policy = ResolvedPolicy::default();
            change(&mut policy);
            let found = unenforced(&policy);
            assert_eq!(found.len(), 1, "{sentence}");
            assert!(found[0].to_string().starts_with(sentence), "{}", found[0]);
        }
    }

    #[test]
    fn an_allowlist_at_the_process_tier_is_told_of_the_supervised_one() {
        let mut policy = ResolvedPolicy::default();
        policy.net.mode = NetMode::Allow;
        let found = unenforced(&policy);
        assert!(found[0].to_string().contains("supervised"), "{}", found[0]);
        policy.tier = Tier::Supervised;
        assert_eq!(unenforced(&policy), []);
    }
}
