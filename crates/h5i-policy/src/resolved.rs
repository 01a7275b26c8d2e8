//! The one value that travels the whole way: what a box may do, with every default written out.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::canaries::Canaries;
use crate::grant::Grant;
use crate::history::History;
use crate::host_path::HostPath;
use crate::net_rule::NetRule;
use crate::pattern::Pattern;
use crate::react::React;
use crate::seed::Seed;
use crate::tier::Tier;
use crate::units::{Bytes, Millis, budget};
use crate::word::words;

/// One profile, all layers merged, every default written out: what a box may do.
///
/// It is made by [`resolve`](crate::resolve()) and frozen at `create`. Nothing is enforced that is
/// not in it, and nothing in it is silently not enforced: a mechanism that can't serve a field
/// refuses by the field's name. It holds no display text (the profile's name and its purpose stand
/// beside it in the box's manifest), so its digest changes exactly when its meaning changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResolvedPolicy {
    /// What stands between the box and the host.
    pub tier: Tier,
    /// Whether namespaces and the private root are used. `Off` is a person's choice for hosts
    /// without user namespaces.
    pub namespaces: Namespaces,
    /// What to do when the host's Landlock is too old for the whole rule set.
    pub landlock: LandlockMode,
    /// Whether programs in the box may trace their own children.
    pub debuggers: Debuggers,
    /// Whether a policy that joins open network, private source and a grant was accepted.
    pub combine: Combine,
    /// Host paths granted, and workspace paths hidden.
    pub fs: FsPolicy,
    /// How much of the repository's past the box receives.
    pub history: History,
    /// What leaves the box over the network.
    pub net: NetPolicy,
    /// The environment of every run.
    pub env: EnvPolicy,
    /// Budgets.
    pub limits: Limits,
    /// Credentials and request rules by grant name.
    #[serde(rename = "grant")]
    pub grants: BTreeMap<String, Grant>,
    /// What may leave by the gate.
    pub export: ExportPolicy,
    /// What a violation does beyond the record.
    pub react: React,
    /// Whether the output of runs is kept on the host.
    pub record_output: RecordOutput,
    /// Tools whose configuration the box gets.
    pub seed: BTreeSet<Seed>,
    /// How long the box may exist before `gc` removes it.
    #[serde(with = "budget")]
    pub expires: Option<Millis>,
}

/// Whether namespaces and the private root are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Namespaces {
    /// All of them, or a refusal.
    Required,
    /// None: Landlock and seccomp alone. Said aloud in status and report.
    Off,
}
words!(Namespaces { Required => "required", Off => "off" });

/// What to do when the host's Landlock is too old for the whole rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LandlockMode {
    /// Refuse below ABI 3.
    Required,
    /// Enforce what there is and say what is missing.
    BestEffort,
}
words!(LandlockMode { Required => "required", BestEffort => "best-effort" });

/// Whether programs in the box may trace their own children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Debuggers {
    /// `ptrace` and its kin are refused.
    Refused,
    /// `ptrace` works on processes of the same box.
    Allowed,
}
words!(Debuggers { Refused => "refused", Allowed => "allowed" });

/// Whether the dangerous combination (open network, private source, a grant) was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Combine {
    /// The combination is refused.
    Refused,
    /// A person wrote `combine = "accepted"`.
    Accepted,
}
words!(Combine { Refused => "refused", Accepted => "accepted" });

/// Whether the output of runs is kept on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RecordOutput {
    /// Output is passed through and forgotten.
    Off,
    /// Output is kept, bounded and redacted.
    On,
}
words!(RecordOutput { Off => "off", On => "on" });

/// Host paths granted, and workspace paths hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FsPolicy {
    /// Host paths readable (and executable) in the box at the same absolute path.
    ///
    /// Where grants are nested, also across `read` and `write`, the deepest one that covers a path
    /// decides about it, masks and all.
    pub read: BTreeMap<HostPath, ReadGrant>,
    /// Host paths writable in the box at the same absolute path.
    pub write: BTreeSet<HostPath>,
    /// Workspace patterns that are not materialised, not in the history and not exportable; in
    /// read grants what matches is masked.
    pub hide: BTreeSet<Pattern>,
    /// Files below the box's home that are planted credentials: nothing real, and whoever opens one
    /// is on record.
    pub canaries: Canaries,
}

/// One readable host path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadGrant {
    /// Why it is granted.
    pub origin: GrantOrigin,
    /// Paths below it, relative, that are masked (an empty file or directory stands there).
    pub mask: BTreeSet<String>,
}

impl ReadGrant {
    /// A grant of everything below the path.
    #[must_use]
    pub const fn whole(origin: GrantOrigin) -> Self {
        Self { origin, mask: BTreeSet::new() }
    }
}

/// Why a host path is readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GrantOrigin {
    /// The operating system's programs, libraries and public configuration.
    System,
    /// A toolchain found from the caller's PATH.
    Toolchain,
    /// A layer of the policy names it.
    Policy,
}
words!(GrantOrigin { System => "system", Toolchain => "toolchain", Policy => "policy" });

/// What leaves the box over the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NetPolicy {
    /// The kind of network.
    pub mode: NetMode,
    /// What may be reached in mode `allow`; empty in every other mode.
    pub allow: BTreeSet<NetRule>,
    /// What all flows of a session may use together.
    pub budget: NetBudget,
}

/// What all flows of a session may use together; `None` is "no budget".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NetBudget {
    /// Bytes carried, in both directions.
    #[serde(with = "budget")]
    pub bytes: Option<Bytes>,
    /// Connections.
    #[serde(with = "budget::count")]
    pub connections: Option<u32>,
    /// Connections that begin within one second.
    #[serde(with = "budget::count")]
    pub connections_per_second: Option<u32>,
}

/// The kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetMode {
    /// A namespace of its own with loopback only.
    None,
    /// Loopback, and what the rules list.
    Allow,
    /// Any public address and name; no private or link-local one.
    Open,
    /// The host's own network, unfiltered; tiers `workspace` and `process` only.
    Host,
}
words!(NetMode { None => "none", Allow => "allow", Open => "open", Host => "host" });

/// The environment of every run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EnvPolicy {
    /// Names passed on from the caller when set there.
    pub pass: BTreeSet<String>,
    /// Names set to a value; wins over `pass`.
    pub set: BTreeMap<String, String>,
}

/// Budgets; `None` is "no budget" and is said so in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Wall clock of one run.
    #[serde(with = "budget")]
    pub wall: Option<Millis>,
    /// Wall clock of a session, from its start to its end, whatever runs in it.
    #[serde(with = "budget")]
    pub session: Option<Millis>,
    /// Processor time of one run, all its processes together.
    #[serde(with = "budget")]
    pub cpu: Option<Millis>,
    /// Memory of the session.
    #[serde(with = "budget")]
    pub memory: Option<Bytes>,
    /// Processes and threads alive at once in the session.
    #[serde(with = "budget::count")]
    pub processes: Option<u32>,
    /// Open descriptors of one process.
    #[serde(with = "budget::count")]
    pub open_files: Option<u32>,
    /// Size of one file.
    #[serde(with = "budget")]
    pub file_size: Option<Bytes>,
    /// Bytes on disk: workspace, home, what is recorded of the box, and temporary files together.
    #[serde(with = "budget")]
    pub disk: Option<Bytes>,
    /// Free space that is left to the host on the file systems that the box writes to, whoever
    /// takes the rest; the one field of which more is tighter.
    #[serde(with = "budget")]
    pub keep_free: Option<Bytes>,
    /// Bytes that one run may write to its standard output and error.
    #[serde(with = "budget")]
    pub output: Option<Bytes>,
}

/// What may leave by the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExportPolicy {
    /// Size of one changed file.
    pub max_file: Bytes,
    /// Size of all changed files together.
    pub max_total: Bytes,
    /// Number of changed files.
    pub max_files: u32,
    /// What happens with files that become executable.
    pub executables: Executables,
    /// New machine-code files that may be exported all the same.
    pub binaries: BTreeSet<Pattern>,
}

/// What happens at export with files that become executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Executables {
    /// Export is refused.
    Refuse,
    /// Exported, and named early in the report.
    Flag,
    /// Exported without a word.
    Allow,
}
words!(Executables { Refuse => "refuse", Flag => "flag", Allow => "allow" });

impl Default for NetPolicy {
    fn default() -> Self {
        Self { mode: NetMode::None, allow: BTreeSet::new(), budget: NetBudget::default() }
    }
}

impl Default for ExportPolicy {
    fn default() -> Self {
        Self {
            max_file: Bytes::mebibytes(5),
            max_total: Bytes::mebibytes(256),
            max_files: 10_000,
            executables: Executables::Flag,
            binaries: BTreeSet::new(),
        }
    }
}

impl Default for ResolvedPolicy {
    /// The process tier with nothing granted: no host path, no network, no variable, no grant, and
    /// no budget either. A starting point for harnesses that build a policy in code.
    fn default() -> Self {
        Self {
            tier: Tier::Process,
            namespaces: Namespaces::Required,
            landlock: LandlockMode::Required,
            debuggers: Debuggers::Refused,
            combine: Combine::Refused,
            fs: FsPolicy::default(),
            history: History::Full,
            net: NetPolicy::default(),
            env: EnvPolicy::default(),
            limits: Limits::default(),
            grants: BTreeMap::new(),
            export: ExportPolicy::default(),
            react: React::default(),
            record_output: RecordOutput::Off,
            seed: BTreeSet::new(),
            expires: None,
        }
    }
}
