//! From layers of documents to the one policy that is frozen.

use std::collections::BTreeSet;

use crate::document::error::{DocumentError, DocumentErrorKind};
use crate::document::read::{ReadError, TWO_SETTERS, did_you_mean};
use crate::document::setting::{Setting, follows_net_mode};
use crate::escape::Escaped;
use crate::history::History;
use crate::host_facts::HostFacts;
use crate::layer::{Layer, OverrideError, Overrides, refusal};
use crate::provenance::{Provenance, Source};
use crate::resolved::{Combine, GrantOrigin, NetMode, ReadGrant, ResolvedPolicy};
use crate::tier::Tier;
use crate::variables::{VariableClash, variable_clash};

mod chain;
mod draft;
#[cfg(test)]
mod tests;

use chain::Chain;
use draft::Draft;

/// What to resolve.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResolveRequest {
    /// The profile.
    pub profile: String,
    /// What the command line asks for over it.
    pub overrides: Overrides,
    /// What the workspace will hold.
    pub workspace: WorkspaceContent,
}

/// What the workspace of a box holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkspaceContent {
    /// Source that must be taken for private.
    Private,
    /// Nothing.
    Empty,
}

/// A resolved policy with what is shown beside it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolved {
    /// The profile's name.
    pub profile: String,
    /// What the profile is for, in its own words: untrusted text.
    pub purpose: Option<String>,
    /// The policy, in canonical form.
    pub policy: ResolvedPolicy,
    /// Where each field came from.
    pub provenance: Provenance,
}

/// Why layers give no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// A document refers to what is not there, or loosens what it may only tighten.
    #[error(transparent)]
    Document(#[from] Box<DocumentError>),
    /// No layer has the profile that was asked for.
    #[error("unknown profile \"{}\"", Escaped(name))]
    UnknownProfile {
        /// The name as asked for.
        name: String,
        /// The profiles that there are, in order.
        known: Vec<String>,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// The command line asks for what can't be.
    #[error(transparent)]
    Override(#[from] Box<OverrideError>),
    /// Fields that don't go together.
    #[error(transparent)]
    Conflict(#[from] Conflict),
}

/// Fields of a resolved policy that don't go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// The host's own network in a tier that has one of its own.
    #[error("net.mode = \"host\" would undo the private network of tier {tier}")]
    HostNetwork {
        /// The tier.
        tier: Tier,
    },
    /// Hidden patterns beside writable host paths, where they can't hold.
    #[error("fs.hide can't hold in {}, which fs.write grants", Escaped(path))]
    HideBesideWrite {
        /// The first writable path.
        path: String,
    },
    /// Open network, private source and a credential in one box.
    #[error(
        "an open network, private source and grant \"{}\" in one box would let all of it leave",
        Escaped(grant)
    )]
    Combination {
        /// The first grant.
        grant: String,
    },
    /// A variable that a grant gives a run and something else as well.
    #[error("{} is set by `{}` and by `{}`", Escaped(name), Escaped(first), Escaped(second))]
    VariableSetTwice {
        /// The variable.
        name: String,
        /// The key that sets it: `env.pass`, `env.set.NAME` or `grant.NAME`.
        first: String,
        /// The key of the grant that sets it as well.
        second: String,
    },
    /// A rule that lists an address which stands for a service.
    #[error(
        "`net.allow` lists {rule}, where addresses of 198.18.0.0/24 stand for the services of grants \
         by intercept, as of \"{}\"",
        Escaped(grant)
    )]
    StandIn {
        /// The rule.
        rule: String,
        /// The first grant by `intercept`.
        grant: String,
    },
}

impl Conflict {
    /// What to do instead.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::HostNetwork { .. } => "choose net.mode none, allow or open, or tier process",
            Self::HideBesideWrite { .. } => "leave out fs.write, or fs.hide",
            Self::Combination { .. } => {
                "list hosts with net.mode = \"allow\", or accept it with combine = \"accepted\""
            }
            Self::VariableSetTwice { .. } => TWO_SETTERS,
            Self::StandIn { .. } => {
                "list ranges without 198.18.0.0/24, or reach the service by a grant by reverse"
            }
        }
    }
}

impl ResolveError {
    /// What to do instead, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Document(error) => error.suggestion.clone(),
            Self::UnknownProfile { suggestion, .. } => suggestion.clone(),
            Self::Override(error) => error.suggestion.clone(),
            Self::Conflict(conflict) => Some(conflict.hint().to_owned()),
        }
    }
}

impl ResolveRequest {
    /// The profile as the layers give it, for a workspace with private source.
    #[must_use]
    pub fn new(profile: &str) -> Self {
        Self {
            profile: profile.to_owned(),
            overrides: Overrides::new(),
            workspace: WorkspaceContent::Private,
        }
    }

    /// With what the command line asks for.
    #[must_use]
    pub fn overrides(mut self, overrides: Overrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// With what the workspace will hold.
    #[must_use]
    pub fn workspace(mut self, workspace: WorkspaceContent) -> Self {
        self.workspace = workspace;
        self
    }
}

/// Resolves a profile.
///
/// `layers` stand weakest first: built-in, user, repository. A profile extends the one it names, or
/// `default`; a layer that writes a profile which a weaker layer has as well amends it. What is
/// written replaces what was there before: lists as a whole, `env.set` and `grant` entry by entry.
/// A repository layer that is not trusted comes after all others, may only tighten, and adds to
/// `fs.hide` and `fs.canaries` instead of replacing them; a profile that only it has may not exceed `default`. The
/// command line comes last and may do all. What the host has is added at the end; where a grant of
/// the policy and one of the host are of the same path, the host's masks stay. `fs.hide` brings
/// `history = "none"` with it.
///
/// # Errors
/// [`ResolveError`], by variant; nothing is looked up on the host.
pub fn resolve(
    layers: &[Layer],
    request: &ResolveRequest,
    facts: &HostFacts,
) -> Result<Resolved, ResolveError> {
    let chain = Chain::of(layers, &request.profile)?;
    let mut draft = Draft::new(layers, facts);
    for step in chain.believed() {
        draft.set(&step)?;
    }
    for step in chain.tightening() {
        draft.tighten(&step)?;
    }
    if let Some(step) = chain.unknown_to_the_person() {
        let mut floor = Draft::new(layers, facts);
        for step in Chain::of(layers, chain::ROOT)?.believed() {
            floor.set(&step)?;
        }
        draft.check_within(&floor, &step)?;
    }
    command_line(&mut draft, &request.overrides)?;
    let Draft { mut policy, mut provenance, .. } = draft;
    if !policy.fs.hide.is_empty() && policy.history != History::None {
        policy.history = History::None;
        provenance.replace("history", Source::Follows { from: "fs.hide" });
    }
    add_facts(&mut policy, &mut provenance, facts);
    let policy = policy.canonical();
    check(&policy, request.workspace)?;
    let purpose = chain.purpose();
    Ok(Resolved { profile: request.profile.clone(), purpose, policy, provenance })
}

fn command_line(draft: &mut Draft<'_>, overrides: &Overrides) -> Result<(), Box<OverrideError>> {
    let source = || Source::CommandLine { group: None };
    if let Some(tier) = overrides.tier {
        draft.policy.tier = tier;
        draft.provenance.replace("tier", source());
    }
    for (at, (key, setting)) in overrides.set.iter().enumerate() {
        setting.apply(&mut draft.policy);
        draft.provenance.replace(key, source());
        if let Setting::NetAllow(entries) = setting {
            draft.policy.net.allow.clear();
            for entry in entries {
                let allowed = draft.allow(entry, None, 0..0);
                allowed.map_err(|error| refusal("--set", at + 1, *error))?;
            }
        }
    }
    for (_, setting) in overrides.set.iter().filter(|(key, _)| follows_net_mode(key)) {
        setting.apply(&mut draft.policy);
    }
    for (at, entry) in overrides.allow.iter().enumerate() {
        if draft.policy.net.mode == NetMode::None {
            draft.policy.net.mode = NetMode::Allow;
            draft.provenance.replace("net.mode", Source::Follows { from: "--allow" });
        }
        draft.allow(entry, None, 0..0).map_err(|error| refusal("--allow", at + 1, *error))?;
    }
    let mode = draft.policy.net.mode;
    if mode != NetMode::Allow && !draft.policy.net.allow.is_empty() {
        let option = if overrides.allow.is_empty() { "--set" } else { "--allow" };
        let kind = DocumentErrorKind::RulesWithoutMode { mode: mode.name() };
        let hint = "write --set net.mode=allow as well, or leave the rules out".to_owned();
        return Err(refusal(option, 1, *ReadError::new(0..0, kind).suggesting(Some(hint))));
    }
    Ok(())
}

fn add_facts(policy: &mut ResolvedPolicy, provenance: &mut Provenance, facts: &HostFacts) {
    let found = [(GrantOrigin::System, &facts.system), (GrantOrigin::Toolchain, &facts.toolchains)];
    for (origin, paths) in found {
        for (path, mask) in paths {
            let grant =
                policy.fs.read.entry(path.clone()).or_insert_with(|| ReadGrant::whole(origin));
            grant.mask.extend(mask.iter().cloned());
            if grant.origin == origin {
                provenance.add(format!("fs.read.{path}"), Source::Host);
            }
        }
    }
}

fn check(policy: &ResolvedPolicy, workspace: WorkspaceContent) -> Result<(), Conflict> {
    if policy.net.mode == NetMode::Host && policy.tier >= Tier::Supervised {
        return Err(Conflict::HostNetwork { tier: policy.tier });
    }
    if let (Some(path), false) = (policy.fs.write.first(), policy.fs.hide.is_empty()) {
        return Err(Conflict::HideBesideWrite { path: path.to_string() });
    }
    let open = matches!(policy.net.mode, NetMode::Open | NetMode::Host);
    if let (true, WorkspaceContent::Private, Combine::Refused, Some(grant)) =
        (open, workspace, policy.combine, policy.grants.keys().next())
    {
        return Err(Conflict::Combination { grant: grant.clone() });
    }
    if let Some(VariableClash { name, first, second }) = variable_clash(policy) {
        return Err(Conflict::VariableSetTwice { name, first, second });
    }
    if let Some((rule, grant)) = policy.rule_over_stand_in() {
        return Err(Conflict::StandIn { rule: rule.to_string(), grant: grant.to_owned() });
    }
    Ok(())
}

/// Every profile that some layer has, in order.
#[must_use]
pub fn profile_names(layers: &[Layer]) -> Vec<String> {
    let names = layers.iter().flat_map(|layer| layer.document.profile_names());
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().map(str::to_owned).collect()
}

fn unknown_profile(layers: &[Layer], name: &str) -> ResolveError {
    let known = profile_names(layers);
    let suggestion = did_you_mean(name, known.iter().map(String::as_str));
    ResolveError::UnknownProfile { name: name.to_owned(), known, suggestion }
}
