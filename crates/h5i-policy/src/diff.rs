//! What differs between two policies.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::escape::Whole;
use crate::resolved::ResolvedPolicy;

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
    let (before, after) = (Leaves::of(before), Leaves::of(after));
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
}
