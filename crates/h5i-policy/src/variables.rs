//! Variables of a run that two parts of a policy would set.

use std::collections::BTreeMap;

use crate::resolved::ResolvedPolicy;

/// A variable that a grant gives a run, and something else as well: one of them would silently lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariableClash {
    /// The variable.
    pub(crate) name: String,
    /// The key of the policy that sets it: `env.pass`, `env.set.NAME` or `grant.NAME`.
    pub(crate) first: String,
    /// The key of the grant that sets it as well.
    pub(crate) second: String,
}

/// The first variable that a grant shares with another grant or with the environment.
pub(crate) fn variable_clash(policy: &ResolvedPolicy) -> Option<VariableClash> {
    let passed = policy.env.pass.iter().map(|name| (name.as_str(), "env.pass".to_owned()));
    let set = policy.env.set.keys().map(|name| (name.as_str(), format!("env.set.{name}")));
    let mut setters: BTreeMap<&str, String> = passed.chain(set).collect();
    for (grant, granted) in &policy.grants {
        for name in granted.variables.base_url.iter().chain(&granted.variables.token) {
            let second = format!("grant.{grant}");
            if let Some(first) = setters.insert(name, second.clone()) {
                return Some(VariableClash { name: name.clone(), first, second });
            }
        }
    }
    None
}
