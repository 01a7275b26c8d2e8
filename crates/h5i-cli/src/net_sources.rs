//! Where each rule of a box's network came from, written down at create.

use std::collections::BTreeMap;
use std::fs;

use h5i_policy::{NetPolicy, NetRule, Resolved};
use serde::{Deserialize, Serialize};

use crate::store::StoredBox;

/// Its name in a box's host directory.
pub(crate) const FILE: &str = "net-sources.json";

/// The sources by rule.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetSources {
    v: u32,
    rules: BTreeMap<NetRule, String>,
}

/// What is written for a box.
///
/// # Errors
/// None that a rule could cause; serde's own.
pub(crate) fn of(resolved: &Resolved) -> serde_json::Result<Vec<u8>> {
    let source = |rule: &NetRule| {
        let source = resolved.provenance.source(&format!("net.allow.{rule}"));
        (rule.clone(), source.to_string())
    };
    let rules = resolved.policy.net.allow.iter().map(source).collect();
    serde_json::to_vec(&NetSources { v: 1, rules })
}

/// Each rule of a box with its source, where that was written down. It is for a person's eyes: what
/// holds is the frozen policy.
pub(crate) fn told(stored: &StoredBox, net: &NetPolicy) -> Vec<(NetRule, Option<String>)> {
    let read = fs::read(stored.host_dir().join(FILE)).ok();
    let sources: NetSources =
        read.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
    net.allow.iter().map(|rule| (rule.clone(), sources.rules.get(rule).cloned())).collect()
}
