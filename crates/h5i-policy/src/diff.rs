//! What differs between two policies.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::escape::Whole;
use crate::resolved::ResolvedPolicy;
use crate::units::budget;

/// One difference between two policies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The field, as it is named in a policy document; for an entry of a list the list's.
    pub field: String,
    /// The value before; `None` if there was none.
    pub before: Option<String>,
    /// The value after; `None` if there is none.
    pub after: Option<String>,
}

impl fmt::Display for Change {
    /// One line: `limits.wall: 2h → 4h`, `net.allow: + api.example.com:443`. Never cut: a person
    /// consents to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Whole(&self.field))?;
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "{} → {}", Whole(before), Whole(after)),
            (None, Some(after)) => write!(f, "+ {}", Whole(after)),
            (Some(before), None) => write!(f, "- {}", Whole(before)),
            (None, None) => Ok(()),
        }
    }
}

/// Every difference, in the order of the fields' names; empty exactly when the policies are equal.
#[must_use]
pub fn diff(before: &ResolvedPolicy, after: &ResolvedPolicy) -> Vec<Change> {
    let (mut before, mut after) = (Leaves::of(before), Leaves::of(after));
    before.list_as(&after);
    after.list_as(&before);
    let keys: std::collections::BTreeSet<&Leaf> = before.0.keys().chain(after.0.keys()).collect();
    let change = |leaf: &&Leaf| {
        let (before, after) = (before.0.get(leaf).cloned(), after.0.get(leaf).cloned());
        (before != after).then(|| Change { field: leaf.field.clone(), before, after })
    };
    keys.iter().filter_map(change).collect()
}

/// The place of one value: a field, and the entry where the field is a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Leaf {
    field: String,
    entry: Option<String>,
}

/// A policy as single values. Taken from its canonical JSON, so no field can be forgotten.
struct Leaves(BTreeMap<Leaf, String>);

impl Leaves {
    #[expect(clippy::expect_used, reason = "what was just written as JSON can be read as JSON")]
    fn of(policy: &ResolvedPolicy) -> Self {
        let mut leaves = Self(BTreeMap::new());
        let value = serde_json::from_str(&policy.canonical_json()).expect("canonical JSON is JSON");
        leaves.add(String::new(), &value);
        leaves
    }

    /// What is one value here and a list there, as headers are, is a list of one: it is compared by
    /// its entries.
    fn list_as(&mut self, other: &Self) {
        let listed = |field: &str| other.0.keys().any(|l| l.entry.is_some() && l.field == field);
        let single = |leaf: &&Leaf| leaf.entry.is_none() && listed(&leaf.field);
        let leaves: Vec<Leaf> = self.0.keys().filter(single).cloned().collect();
        for leaf in leaves {
            let Some(text) = self.0.remove(&leaf) else { continue };
            if text != budget::NONE {
                self.0.insert(Leaf { entry: Some(text.clone()), ..leaf }, text);
            }
        }
    }

    fn add(&mut self, field: String, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let dot = if field.is_empty() { "" } else { "." };
                    self.add(format!("{field}{dot}{key}"), value);
                }
            }
            Value::Array(entries) => {
                for entry in entries {
                    let entry = text(entry);
                    self.0.insert(Leaf { field: field.clone(), entry: Some(entry.clone()) }, entry);
                }
            }
            other => {
                self.0.insert(Leaf { field, entry: None }, text(other));
            }
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::diff;
    use crate::grant::Grant;
    use crate::net_rule::NetRule;
    use crate::resolved::{NetMode, ResolvedPolicy};
    use crate::units::Millis;

    #[test]
    fn changes_are_named_by_field_and_entry() {
        let before = ResolvedPolicy::default();
        let mut after = before.clone();
        after.limits.wall = Some(Millis::seconds(7200));
        after.net.mode = NetMode::Allow;
        after.net.allow.insert(NetRule::new("api.example.com").expect("rule"));
        let lines: Vec<String> = diff(&before, &after).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "limits.wall: none → 2h",
                "net.allow: + api.example.com:443",
                "net.mode: none → allow"
            ]
        );
        assert_eq!(diff(&after, &after), []);
    }

    #[test]
    fn a_second_header_is_a_change_of_that_one_alone() {
        let with = |headers: &[&str]| {
            let mut policy = ResolvedPolicy::default();
            let mut grant = Grant::to("a.example".parse().expect("a host"));
            for header in headers {
                grant.header.add(header.parse().expect(header)).expect(header);
            }
            policy.grants.insert("g".into(), grant);
            policy
        };
        let told = |before: &[&str], after: &[&str]| {
            let changes = diff(&with(before), &with(after));
            changes.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let two = &["a: 1", "x: {}"][..];
        assert_eq!(told(&["x: {}"], two), ["grant.g.header: + a: 1"]);
        assert_eq!(told(two, &["x: {}"]), ["grant.g.header: - a: 1"]);
        assert_eq!(told(&[], two), ["grant.g.header: + a: 1", "grant.g.header: + x: {}"]);
        assert_eq!(told(&["x: {}"], &["y: {}"]), ["grant.g.header: x: {} → y: {}"]);
        let mut query = with(&["x: {}"]);
        query.grants.get_mut("g").expect("a grant").query = Some("key".parse().expect("a name"));
        let changes = diff(&with(&["x: {}"]), &query);
        assert_eq!(changes[0].to_string(), "grant.g.query: + key");
    }
}
