//! The tightest of two policies, field by field.

use std::collections::{BTreeMap, BTreeSet};

use crate::access::Access;
use crate::canaries::CanariesError;
use crate::escape::Escaped;
use crate::grant::Grant;
use crate::net_rule::NetRule;
use crate::react::React;
use crate::resolved::{
    EnvPolicy, ExportPolicy, FsPolicy, Limits, NetBudget, NetMode, NetPolicy, ResolvedPolicy,
};

/// Why two policies have no common tightening.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeetError {
    /// Both set one variable, to different values.
    #[error(
        "`env.set.{name}` is \"{}\" in one policy and \"{}\" in the other",
        Escaped(one),
        Escaped(other)
    )]
    EnvConflict {
        /// The variable.
        name: String,
        /// The value that sorts first.
        one: String,
        /// The other value.
        other: String,
    },
    /// What both plant can't stand beside each other.
    #[error(transparent)]
    Canaries(#[from] CanariesError),
}

impl ResolvedPolicy {
    /// The loosest policy that is within both: tier the stronger, budgets the smaller, grants and
    /// seeds the intersection, `fs.hide`, `fs.canaries` and `env.set` the union, network
    /// `none < allow < open < host`.
    ///
    /// Idempotent, commutative and associative on policies in canonical form (see
    /// [`canonical`](Self::canonical)); the result is canonical. Grants of one name that lead to
    /// different services, or by different credentials, have nothing in common and are dropped.
    ///
    /// # Errors
    /// [`MeetError::EnvConflict`] where both set one variable differently, [`MeetError::Canaries`]
    /// where they plant files that can't stand beside each other.
    pub fn tighten(&self, other: &Self) -> Result<Self, MeetError> {
        let (a, b) = (self, other);
        Ok(Self {
            tier: a.tier.max(b.tier),
            namespaces: a.namespaces.min(b.namespaces),
            landlock: a.landlock.min(b.landlock),
            debuggers: a.debuggers.min(b.debuggers),
            combine: a.combine.min(b.combine),
            fs: a.fs.meet(&b.fs)?,
            history: a.history.min(b.history),
            net: a.net.meet(&b.net),
            env: a.env.meet(&b.env)?,
            limits: a.limits.meet(&b.limits),
            grants: meet_grants(&a.grants, &b.grants),
            export: a.export.meet(&b.export),
            react: a.react.meet(&b.react),
            record_output: a.record_output.max(b.record_output),
            seed: &a.seed & &b.seed,
            expires: smaller(a.expires, b.expires),
        })
    }

    /// The same policy in its one canonical form: no file grant, mask or network rule that changes
    /// nothing beside the others, and no rule outside of mode `allow`.
    #[must_use]
    pub fn canonical(&self) -> Self {
        let allow = match self.net.mode {
            NetMode::Allow => largest(self.net.allow.iter().cloned()),
            _ => BTreeSet::new(),
        };
        let net = NetPolicy { allow, ..self.net.clone() };
        Self { fs: self.fs.canonical_grants(), net, ..self.clone() }
    }
}

/// The smaller of two budgets, where `None` is no budget.
fn smaller<T: Ord + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// The rules that no other one covers.
fn largest(rules: impl Iterator<Item = NetRule>) -> BTreeSet<NetRule> {
    let rules: BTreeSet<NetRule> = rules.collect();
    let covered = |rule: &NetRule| rules.iter().any(|other| other != rule && other.covers(rule));
    rules.iter().filter(|rule| !covered(rule)).cloned().collect()
}

impl FsPolicy {
    fn meet(&self, other: &Self) -> Result<Self, CanariesError> {
        let accesses: Vec<(Access, String)> = self
            .boundaries()
            .union(&other.boundaries())
            .map(|path| (self.access(path).min(other.access(path)), path.clone()))
            .collect();
        let (hide, canaries) = (&self.hide | &other.hide, self.canaries.union(&other.canaries)?);
        Ok(Self { hide, canaries, ..Self::from_accesses(accesses) })
    }
}

impl NetPolicy {
    fn meet(&self, other: &Self) -> Self {
        let (low, high) = if self.mode <= other.mode { (self, other) } else { (other, self) };
        let allow = match (low.mode, high.mode) {
            (NetMode::Allow, NetMode::Host) => low.allow.clone(),
            (NetMode::Allow, NetMode::Open) => {
                low.allow.iter().flat_map(NetRule::public_part).collect()
            }
            (NetMode::Allow, _) => low
                .allow
                .iter()
                .flat_map(|rule| high.allow.iter().filter_map(|other| rule.meet(other)))
                .collect(),
            _ => BTreeSet::new(),
        };
        let budget = low.budget.meet(&high.budget);
        Self { mode: low.mode, allow: largest(allow.into_iter()), budget }
    }
}

impl NetBudget {
    fn meet(&self, other: &Self) -> Self {
        let (a, b) = (self, other);
        Self {
            bytes: smaller(a.bytes, b.bytes),
            connections: smaller(a.connections, b.connections),
            connections_per_second: smaller(a.connections_per_second, b.connections_per_second),
        }
    }
}

impl EnvPolicy {
    fn meet(&self, other: &Self) -> Result<Self, MeetError> {
        let mut set = self.set.clone();
        for (name, value) in &other.set {
            match set.get(name) {
                Some(own) if own != value => {
                    return Err(MeetError::EnvConflict {
                        name: name.clone(),
                        one: own.min(value).clone(),
                        other: own.max(value).clone(),
                    });
                }
                _ => set.insert(name.clone(), value.clone()),
            };
        }
        Ok(Self { pass: &self.pass & &other.pass, set })
    }
}

impl Limits {
    fn meet(&self, other: &Self) -> Self {
        let (a, b) = (self, other);
        Self {
            wall: smaller(a.wall, b.wall),
            session: smaller(a.session, b.session),
            cpu: smaller(a.cpu, b.cpu),
            memory: smaller(a.memory, b.memory),
            processes: smaller(a.processes, b.processes),
            open_files: smaller(a.open_files, b.open_files),
            file_size: smaller(a.file_size, b.file_size),
            disk: smaller(a.disk, b.disk),
            // No floor is the loosest, and `None` is less than all others.
            keep_free: a.keep_free.max(b.keep_free),
            output: smaller(a.output, b.output),
        }
    }
}

fn meet_grants(
    a: &BTreeMap<String, Grant>,
    b: &BTreeMap<String, Grant>,
) -> BTreeMap<String, Grant> {
    let both = a.iter().filter_map(|(name, own)| Some((name, own, b.get(name)?)));
    both.filter(|(_, own, other)| own.is_same_door(other))
        .map(|(name, own, other)| {
            let grant = Grant {
                methods: own.methods.meet(&other.methods),
                paths: own.paths.meet(&other.paths),
                git: own.git.meet(&other.git),
                programs: own.programs.meet(&other.programs),
                requests: smaller(own.requests, other.requests),
                bytes_up: smaller(own.bytes_up, other.bytes_up),
                bytes_down: smaller(own.bytes_down, other.bytes_down),
                lasts: smaller(own.lasts, other.lasts),
                ..own.clone()
            };
            (name.clone(), grant)
        })
        .collect()
}

impl ExportPolicy {
    fn meet(&self, other: &Self) -> Self {
        Self {
            max_file: self.max_file.min(other.max_file),
            max_total: self.max_total.min(other.max_total),
            max_files: self.max_files.min(other.max_files),
            executables: self.executables.min(other.executables),
            binaries: &self.binaries & &other.binaries,
        }
    }
}

impl React {
    fn meet(&self, other: &Self) -> Self {
        Self {
            refused_connect: self.refused_connect.max(other.refused_connect),
            refused_call: self.refused_call.max(other.refused_call),
            budget: self.budget.max(other.budget),
            canary_read: self.canary_read.max(other.canary_read),
            gap: self.gap.max(other.gap),
        }
    }
}
