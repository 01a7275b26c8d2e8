//! The fields of a profile: how each is read, and what setting it does.

use std::cell::RefCell;
use std::collections::BTreeSet;

use toml::de::DeValue;

use super::error::{DocumentErrorKind, ValueError};
use super::read::{Item, Read, ReadError, did_you_mean};
use crate::canaries::{Canaries, CanariesError};
use crate::env_name::{is_env_name, is_never_passed};
use crate::grant::Grant;
use crate::history::History;
use crate::home_path::HomePath;
use crate::host_path::HostPath;
use crate::net_rule::{NetRule, ServerName};
use crate::pattern::Pattern;
use crate::react::{React, Reaction};
use crate::resolved::{
    Combine, Debuggers, Executables, GrantOrigin, LandlockMode, Namespaces, NetBudget, NetMode,
    ReadGrant, RecordOutput, ResolvedPolicy,
};
use crate::seed::Seed;
use crate::tier::Tier;
use crate::units::{Bytes, Millis};

/// One field of a policy with its new value.
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    Tier(Tier),
    Namespaces(Namespaces),
    Landlock(LandlockMode),
    Debuggers(Debuggers),
    Combine(Combine),
    History(History),
    RecordOutput(RecordOutput),
    Seed(BTreeSet<Seed>),
    Expires(Option<Millis>),
    FsRead(BTreeSet<HostPath>),
    FsWrite(BTreeSet<HostPath>),
    FsHide(BTreeSet<Pattern>),
    FsCanaries(Canaries),
    NetMode(NetMode),
    NetAllow(BTreeSet<AllowEntry>),
    EnvPass(BTreeSet<String>),
    EnvSet(String, String),
    Time(fn(&mut ResolvedPolicy) -> &mut Option<Millis>, Option<Millis>),
    Size(fn(&mut ResolvedPolicy) -> &mut Option<Bytes>, Option<Bytes>),
    Count(fn(&mut ResolvedPolicy) -> &mut Option<u32>, Option<u32>),
    Grant(String, Box<Grant>),
    MaxFile(Bytes),
    MaxTotal(Bytes),
    MaxFiles(u32),
    Executables(Executables),
    Binaries(BTreeSet<Pattern>),
    React(fn(&mut React) -> &mut Reaction, Reaction),
}

/// One entry of `net.allow`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AllowEntry {
    Rule(NetRule),
    /// `@NAME`, kept with its place, because only resolution knows the groups.
    Group {
        name: String,
        at: usize,
        to: usize,
    },
}

/// One fixed field: its key below the profile, and how its value is read.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    read: fn(&Item<'_>) -> Read<Setting>,
}

/// Every field with a fixed key. The keys with a name in them, `env.set.NAME` and `grant.NAME`, are
/// read by [`super::PolicyDocument`].
#[rustfmt::skip]
pub(crate) const FIELDS: &[Field] = &[
    Field { key: "tier", read: |item| item.word().map(Setting::Tier) },
    Field { key: "namespaces", read: |item| item.word().map(Setting::Namespaces) },
    Field { key: "landlock", read: |item| item.word().map(Setting::Landlock) },
    Field { key: "debuggers", read: |item| item.word().map(Setting::Debuggers) },
    Field { key: "combine", read: |item| item.word().map(Setting::Combine) },
    Field { key: "history", read: |item| item.parsed().map(Setting::History) },
    Field { key: "record_output", read: |item| item.word().map(Setting::RecordOutput) },
    Field { key: "seed", read: |item| item.list(Item::word).map(Setting::Seed) },
    Field { key: "expires", read: |item| item.budget().map(Setting::Expires) },
    Field { key: "fs.read", read: |item| item.list(host_path).map(Setting::FsRead) },
    Field { key: "fs.write", read: |item| item.list(host_path).map(Setting::FsWrite) },
    Field { key: "fs.hide", read: |item| item.list(Item::parsed).map(Setting::FsHide) },
    Field { key: "fs.canaries", read: |item| canaries(item).map(Setting::FsCanaries) },
    Field { key: "net.mode", read: |item| item.word().map(Setting::NetMode) },
    Field { key: "net.allow", read: |item| item.list(allow_entry).map(Setting::NetAllow) },
    Field { key: "net.budget.bytes", read: |item| Ok(Setting::Size(|p| &mut p.net.budget.bytes, item.budget()?)) },
    Field { key: "net.budget.connections", read: |item| Ok(Setting::Count(|p| &mut p.net.budget.connections, item.count_budget(u32::MAX)?)) },
    Field { key: "net.budget.connections_per_second", read: |item| Ok(Setting::Count(|p| &mut p.net.budget.connections_per_second, item.count_budget(u32::MAX)?)) },
    Field { key: "env.pass", read: |item| item.list(passed_name).map(Setting::EnvPass) },
    Field { key: "limits.wall", read: |item| Ok(Setting::Time(|p| &mut p.limits.wall, item.budget()?)) },
    Field { key: "limits.session", read: |item| Ok(Setting::Time(|p| &mut p.limits.session, item.budget()?)) },
    Field { key: "limits.cpu", read: |item| Ok(Setting::Time(|p| &mut p.limits.cpu, item.budget()?)) },
    Field { key: "limits.memory", read: |item| Ok(Setting::Size(|p| &mut p.limits.memory, item.budget()?)) },
    Field { key: "limits.processes", read: |item| Ok(Setting::Count(|p| &mut p.limits.processes, item.count_budget(u32::MAX)?)) },
    Field { key: "limits.open_files", read: |item| Ok(Setting::Count(|p| &mut p.limits.open_files, item.count_budget(u32::MAX)?)) },
    Field { key: "limits.file_size", read: |item| Ok(Setting::Size(|p| &mut p.limits.file_size, item.budget()?)) },
    Field { key: "limits.disk", read: |item| Ok(Setting::Size(|p| &mut p.limits.disk, item.budget()?)) },
    Field { key: "limits.keep_free", read: |item| Ok(Setting::Size(|p| &mut p.limits.keep_free, item.budget()?)) },
    Field { key: "limits.output", read: |item| Ok(Setting::Size(|p| &mut p.limits.output, item.budget()?)) },
    Field { key: "export.max_file", read: |item| item.quantity().map(Setting::MaxFile) },
    Field { key: "export.max_total", read: |item| item.quantity().map(Setting::MaxTotal) },
    Field { key: "export.max_files", read: |item| item.count(0, u32::MAX).map(Setting::MaxFiles) },
    Field { key: "export.executables", read: |item| item.word().map(Setting::Executables) },
    Field { key: "export.binaries", read: |item| item.list(Item::parsed).map(Setting::Binaries) },
    Field { key: "react.refused-connect", read: |item| Ok(Setting::React(|r| &mut r.refused_connect, item.word()?)) },
    Field { key: "react.refused-call", read: |item| Ok(Setting::React(|r| &mut r.refused_call, item.word()?)) },
    Field { key: "react.budget", read: |item| Ok(Setting::React(|r| &mut r.budget, item.word()?)) },
    Field { key: "react.canary-read", read: |item| Ok(Setting::React(|r| &mut r.canary_read, item.word()?)) },
    Field { key: "react.gap", read: |item| Ok(Setting::React(|r| &mut r.gap, item.word()?)) },
];

impl Field {
    /// The field with this key.
    pub(crate) fn named(key: &str) -> Option<&'static Self> {
        FIELDS.iter().find(|field| field.key == key)
    }

    pub(crate) fn read(&self, item: &Item<'_>) -> Read<Setting> {
        (self.read)(item)
    }
}

impl Setting {
    /// Reads `env.set.NAME`.
    pub(crate) fn variable(name: &str, item: &Item<'_>) -> Read<Self> {
        if !is_env_name(name) {
            return Err(item.refused(ValueError::EnvName));
        }
        Ok(Self::EnvSet(name.to_owned(), item.text()?.to_owned()))
    }

    /// Sets the field; a list or a budget replaces the one before it. `NetAllow` is left to the
    /// caller, because only resolution knows the groups.
    pub(crate) fn apply(&self, policy: &mut ResolvedPolicy) {
        match self.clone() {
            Self::Tier(tier) => policy.tier = tier,
            Self::Namespaces(namespaces) => policy.namespaces = namespaces,
            Self::Landlock(mode) => policy.landlock = mode,
            Self::Debuggers(debuggers) => policy.debuggers = debuggers,
            Self::Combine(combine) => policy.combine = combine,
            Self::History(history) => policy.history = history,
            Self::RecordOutput(record) => policy.record_output = record,
            Self::Seed(tools) => policy.seed = tools,
            Self::Expires(expires) => policy.expires = expires,
            Self::FsRead(paths) => {
                let grant = |path| (path, ReadGrant::whole(GrantOrigin::Policy));
                policy.fs.read = paths.into_iter().map(grant).collect();
            }
            Self::FsWrite(paths) => policy.fs.write = paths,
            Self::FsHide(patterns) => policy.fs.hide = patterns,
            Self::FsCanaries(canaries) => policy.fs.canaries = canaries,
            Self::NetMode(mode) => {
                policy.net.mode = mode;
                if mode != NetMode::Allow {
                    policy.net.allow.clear();
                }
                // Nothing counts what goes over the host's own network.
                if mode == NetMode::Host {
                    policy.net.budget = NetBudget::default();
                }
            }
            Self::NetAllow(_) => {}
            Self::EnvPass(names) => policy.env.pass = names,
            Self::EnvSet(name, value) => {
                policy.env.set.insert(name, value);
            }
            Self::Time(field, value) => *field(policy) = value,
            Self::Size(field, value) => *field(policy) = value,
            Self::Count(field, value) => *field(policy) = value,
            Self::Grant(name, grant) => {
                policy.grants.insert(name, *grant);
            }
            Self::MaxFile(size) => policy.export.max_file = size,
            Self::MaxTotal(size) => policy.export.max_total = size,
            Self::MaxFiles(count) => policy.export.max_files = count,
            Self::Executables(executables) => policy.export.executables = executables,
            Self::Binaries(patterns) => policy.export.binaries = patterns,
            Self::React(kind, reaction) => *kind(&mut policy.react) = reaction,
        }
    }
}

fn host_path(item: &Item<'_>) -> Read<HostPath> {
    HostPath::new(item.text()?).map_err(|error| item.refused(error))
}

/// Paths of the home; the second of two that can't be together is where the error is.
fn canaries(item: &Item<'_>) -> Read<Canaries> {
    let before = RefCell::new(BTreeSet::<HomePath>::new());
    let paths = item.list(|entry| {
        let path = HomePath::new(entry.text()?).map_err(|error| entry.refused(error))?;
        let mut before = before.borrow_mut();
        if !before.insert(path.clone()) {
            return Err(entry.refused(CanariesError::Twice { path }));
        }
        Canaries::new(before.clone()).map_err(|error| entry.refused(error))?;
        Ok(path)
    })?;
    Canaries::new(paths).map_err(|error| item.refused(error))
}

fn passed_name(item: &Item<'_>) -> Read<String> {
    let name = item.text()?;
    if !is_env_name(name) {
        return Err(item.refused(ValueError::EnvName));
    }
    if is_never_passed(name) {
        return Err(item.refused(ValueError::NeverPassed));
    }
    Ok(name.to_owned())
}

/// Whether a setting of this key comes after the mode of the network, wherever it stands: the mode
/// takes away what has no meaning beside it.
pub(crate) fn follows_net_mode(key: &str) -> bool {
    key.starts_with("net.budget.")
}

/// A rule, a group, or `{ rule = "…", sni = "any" }`.
pub(crate) fn allow_entry(item: &Item<'_>) -> Read<AllowEntry> {
    if matches!(item.value, DeValue::Table(_)) {
        return rule(item).map(AllowEntry::Rule);
    }
    match item.text()?.strip_prefix('@') {
        Some(name) if super::is_name(name) => {
            let (at, to) = (item.span.start, item.span.end);
            Ok(AllowEntry::Group { name: name.to_owned(), at, to })
        }
        Some(_) => Err(item.refused(ValueError::Name)),
        None => item.parsed().map(AllowEntry::Rule),
    }
}

/// A rule, by its text or as a table.
pub(crate) fn rule(item: &Item<'_>) -> Read<NetRule> {
    if !matches!(item.value, DeValue::Table(_)) {
        return item.parsed();
    }
    let (mut rule, mut server_name) = (None::<NetRule>, ServerName::Listed);
    for (key, value) in item.table()? {
        let (name, span) = (key.get_ref().as_ref(), value.span());
        let at = |key: &str| Item {
            key: format!("net.allow.{key}"),
            span: span.clone(),
            value: value.get_ref(),
        };
        match name {
            "rule" => rule = Some(at(name).parsed()?),
            "sni" => server_name = at(name).word()?,
            _ => {
                let suggestion = did_you_mean(name, ["rule", "sni"]);
                let kind = DocumentErrorKind::UnknownKey {
                    key: name.to_owned(),
                    section: "an entry of net.allow".to_owned(),
                };
                return Err(ReadError::new(key.span(), kind).suggesting(suggestion));
            }
        }
    }
    let Some(rule) = rule else {
        return Err(item.wrong_type("a rule, a group, or a table with `rule`"));
    };
    match server_name {
        ServerName::Listed => Ok(rule),
        any => rule.with_server_name(any).map_err(|error| item.refused(error)),
    }
}
