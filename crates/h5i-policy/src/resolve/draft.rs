//! A policy while its layers are set, one after another.

use std::ops::Range;

use super::ResolveError;
use super::chain::Step;
use crate::canaries::CanariesError;
use crate::document::Placed;
use crate::document::error::DocumentErrorKind;
use crate::document::read::{MOST_ENTRIES, Read, ReadError, did_you_mean};
use crate::document::setting::{AllowEntry, Setting, follows_net_mode};
use crate::host_facts::HostFacts;
use crate::layer::Layer;
use crate::net_rule::NetRule;
use crate::order::Loosening;
use crate::provenance::{GroupUse, Provenance, Source};
use crate::resolved::{NetMode, ResolvedPolicy};
use crate::variables::{VariableClash, variable_clash};

/// A policy while its layers are set; `fs.read` holds only what documents name.
#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    pub(super) policy: ResolvedPolicy,
    pub(super) provenance: Provenance,
    layers: &'a [Layer],
    facts: &'a HostFacts,
}

impl<'a> Draft<'a> {
    pub(super) fn new(layers: &'a [Layer], facts: &'a HostFacts) -> Self {
        let policy = ResolvedPolicy::default();
        Self { policy, provenance: Provenance::default(), layers, facts }
    }

    /// Sets what a believed layer's profile says.
    pub(super) fn set(&mut self, step: &Step<'_>) -> Result<(), ResolveError> {
        for placed in &step.profile.settings {
            placed.setting.apply(&mut self.policy);
            self.provenance.replace(&placed.key, source(step, placed));
        }
        // Budgets and rules come after the mode, wherever they stand in the document.
        for placed in step.profile.settings.iter().filter(|p| follows_net_mode(&p.key)) {
            placed.setting.apply(&mut self.policy);
        }
        for placed in &step.profile.settings {
            let Setting::NetAllow(entries) = &placed.setting else { continue };
            self.policy.net.allow.clear();
            for entry in entries {
                let span = match entry {
                    AllowEntry::Group { at, to, .. } => *at..*to,
                    AllowEntry::Rule(_) => placed.span.clone(),
                };
                self.allow(entry, Some((step, placed)), span)
                    .map_err(|error| step.layer.document.error(error))?;
            }
            let mode = self.policy.net.mode;
            if mode != NetMode::Allow && !self.policy.net.allow.is_empty() {
                let kind = DocumentErrorKind::RulesWithoutMode { mode: mode.name() };
                let error = ReadError::new(placed.span.clone(), kind);
                return Err(step.layer.document.error(error).into());
            }
        }
        self.check_variables(step)
    }

    /// Refuses a variable that is set twice, at the place where the step sets it.
    fn check_variables(&self, step: &Step<'_>) -> Result<(), ResolveError> {
        let Some(VariableClash { name, first, second }) = variable_clash(&self.policy) else {
            return Ok(());
        };
        let settings = || step.profile.settings.iter().rev();
        let sets = |key: &str| settings().find(|placed| placed.key == key);
        // One that this step has no part in was told before.
        let Some(placed) = sets(&second).or_else(|| sets(&first)) else { return Ok(()) };
        let kind = DocumentErrorKind::VariableSetTwice { name, first, second };
        Err(step.layer.document.error(ReadError::new(placed.span.clone(), kind)).into())
    }

    /// Sets what a layer's profile says if that loosens nothing.
    pub(super) fn tighten(&mut self, step: &Step<'_>) -> Result<(), ResolveError> {
        let before = self.clone();
        self.set(step)?;
        self.policy.fs.hide.extend(before.policy.fs.hide.iter().cloned());
        self.policy.fs.canaries = self
            .policy
            .fs
            .canaries
            .union(&before.policy.fs.canaries)
            .map_err(|error| canaries_refused(step, error))?;
        self.check_within(&before, step)
    }

    /// Refuses what is looser than `outer`, at the place where the step says so.
    pub(super) fn check_within(&self, outer: &Self, step: &Step<'_>) -> Result<(), ResolveError> {
        let Err(loosenings) = self.policy.is_within(&outer.policy) else { return Ok(()) };
        let Some(loosening) = loosenings.into_iter().next() else { return Ok(()) };
        let said_at = |placed: &&Placed| is_about(&loosening, &placed.key);
        let settings = &step.profile.settings;
        let span = match (settings.iter().find(said_at), &step.profile.extends) {
            (Some(placed), _) => placed.span.clone(),
            (None, Some((_, span))) => span.clone(),
            (None, None) => settings.first().map_or(0..0, |placed| placed.span.clone()),
        };
        let error = ReadError::new(span, DocumentErrorKind::Loosens { loosening });
        Err(step.layer.document.error(error).into())
    }

    /// Adds a rule, or the rules of a group that stands at `span`. Without a step, the command
    /// line asks.
    pub(super) fn allow(
        &mut self,
        entry: &AllowEntry,
        by: Option<(&Step<'_>, &Placed)>,
        span: Range<usize>,
    ) -> Read<()> {
        let rules = match entry {
            AllowEntry::Rule(rule) => vec![(rule.clone(), None)],
            AllowEntry::Group { name, .. } => self.group(name, by, span.clone())?,
        };
        // Rules are compared with each other, so groups must not multiply them without bound.
        if self.policy.net.allow.len() + rules.len() > MOST_ENTRIES {
            let (key, limit) = ("net.allow".to_owned(), MOST_ENTRIES);
            return Err(ReadError::new(span, DocumentErrorKind::TooMany { key, limit }));
        }
        for (rule, group) in rules {
            let source = match by {
                Some((step, placed)) => with_group(source(step, placed), group),
                None => Source::CommandLine { group },
            };
            self.provenance.add(format!("net.allow.{rule}"), source);
            self.policy.net.allow.insert(rule);
        }
        Ok(())
    }

    /// The rules of a group, as the asking layer sees it: its own, those of the layers below it,
    /// and last those of the host's tools. Nobody else sees the groups of a layer that may only
    /// tighten.
    fn group(
        &self,
        name: &str,
        by: Option<(&Step<'_>, &Placed)>,
        span: Range<usize>,
    ) -> Read<Vec<(NetRule, Option<GroupUse>)>> {
        let asking = by.map(|(step, _)| step.at);
        let visible = |at: usize, layer: &Layer| match asking {
            Some(own) => at == own || (at < own && !layer.only_tightens()),
            None => !layer.only_tightens(),
        };
        let layers = self.layers.iter().enumerate().filter(|(at, layer)| visible(*at, layer));
        let mut known: Vec<&str> = self.facts.groups.keys().map(String::as_str).collect();
        let mut written = None;
        for (_, layer) in layers {
            known.extend(layer.document.groups.keys().map(String::as_str));
            written = layer.document.groups.get(name).or(written);
        }
        let used = |rule: &NetRule, found: Option<&String>| {
            let (name, found) = (name.to_owned(), found.cloned());
            (rule.clone(), Some(GroupUse { name, found }))
        };
        match (written, self.facts.groups.get(name)) {
            (Some(rules), _) => Ok(rules.iter().map(|rule| used(rule, None)).collect()),
            (None, Some(group)) => {
                Ok(group.iter().map(|(rule, place)| used(rule, Some(place))).collect())
            }
            (None, None) => {
                let suggestion = did_you_mean(name, known)
                    .or_else(|| Some(format!("define it with [group.{name}] allow = [\"…\"]")));
                let kind = DocumentErrorKind::UnknownGroup { name: name.to_owned() };
                Err(ReadError::new(span, kind).suggesting(suggestion))
            }
        }
    }
}

/// A layer's planted files, beside those of the layers before it, can't be.
fn canaries_refused(step: &Step<'_>, cause: CanariesError) -> ResolveError {
    const KEY: &str = "fs.canaries";
    let placed = step.profile.settings.iter().find(|placed| placed.key == KEY);
    let span = placed.map_or(0..0, |placed| placed.span.clone());
    let kind = DocumentErrorKind::BadValue { key: KEY.to_owned(), cause: cause.into() };
    step.layer.document.error(ReadError::new(span, kind)).into()
}

fn source(step: &Step<'_>, placed: &Placed) -> Source {
    Source::Profile {
        origin: step.layer.origin,
        document: step.layer.document.source_name().to_owned(),
        profile: step.name.to_owned(),
        line: step.layer.document.line(placed.span.start),
        group: None,
    }
}

fn with_group(mut source: Source, used: Option<GroupUse>) -> Source {
    if let Source::Profile { group, .. } = &mut source {
        *group = used;
    }
    source
}

/// Whether a setting of `key` is what loosens.
fn is_about(loosening: &Loosening, key: &str) -> bool {
    loosening.field.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
