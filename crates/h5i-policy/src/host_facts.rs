//! What the caller found on the host, as far as a policy depends on it.

use std::collections::{BTreeMap, BTreeSet};

use crate::host_path::HostPath;
use crate::net_rule::NetRule;

/// What the caller found on the host. It is written into the resolved policy, so that the digest
/// covers it and a frozen policy does not change when the host does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostFacts {
    /// Paths of the operating system to be readable, each with the relative paths below it that
    /// are masked.
    pub system: BTreeMap<HostPath, BTreeSet<String>>,
    /// Paths of toolchains to be readable, in the same form.
    pub toolchains: BTreeMap<HostPath, BTreeSet<String>>,
    /// Network groups from the configuration of the host's tools, by name without `@`.
    pub groups: BTreeMap<String, HostGroup>,
}

/// The rules of a group that the host's tools have, each with the place where it was found.
pub type HostGroup = BTreeMap<NetRule, String>;

impl HostFacts {
    /// Nothing was found.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
