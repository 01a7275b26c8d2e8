//! Where a box's policy comes from: documents, the command line, and what the host has.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use h5i_export::Digest;
use h5i_policy::{
    DocumentErrorKind, HostFacts, HostPath, Layer, OverrideErrorKind, Overrides, PolicyDocument,
    ReadGrant, ResolveError, ResolveRequest, Resolved, Tier, Trust, WorkspaceContent, resolve,
};

use crate::args::{LearnArgs, PolicyArgs};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::groups::{TOOLS, tool_groups};
use crate::own_places::OwnPlaces;
use crate::own_registry;
use crate::path_error::{Action, PathError};
use crate::program_links;
use crate::spool;
use crate::surroundings::Surroundings;
use crate::toolchains::{HostFiles, Question, Toolchains, find_toolchains, system_grants};
use crate::trust::TrustList;
use crate::workspace::{HostRepository, PinnedBase};

/// The repository's document, read from the pinned base.
pub const REPOSITORY_DOCUMENT: &str = ".h5i/policy.toml";
/// What to do with a repository's document that loosens.
const TRUST_HINT: &str = "leave it out, or trust this document: h5i policy trust shows what it \
                          would loosen, and asks";
/// The profile that is taken when none is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";
/// What is appended to the PATH of a box.
const SYSTEM_PATH: [&str; 7] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    spool::PROGRAM_DIR,
];

/// A resolved policy with what was found on the host for it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Sourced {
    /// The policy, as it would be frozen.
    pub resolved: Resolved,
    /// The toolchains that PATH led to.
    pub toolchains: Toolchains,
}

/// Resolves a profile for a base: built-in documents, the user's, the base's own, the command line.
///
/// # Errors
/// A failure that names document, line and column, or the option of the command line.
pub fn source_policy(
    caller: &Caller,
    base: Option<(&HostRepository, &PinnedBase)>,
    args: &PolicyArgs,
    learn: LearnArgs,
) -> Result<Sourced, Failure> {
    let overrides = overrides(args)?;
    let grounds = Grounds::of(caller, base)?;
    let profile = args.profile.as_ref().map_or(DEFAULT_PROFILE, |name| name.as_str());
    let mut resolved = grounds.resolve(&grounds.layers, profile, overrides.clone())?;
    if learn.learn && resolved.policy.tier < Tier::Supervised {
        if let Some(tier) = args.tier {
            let message =
                format!("--learn needs a network that the host sees, and tier {tier} has none");
            return Err(Failure::told(Kind::Refused, message)
                .hint("--tier supervised, or leave --tier out"));
        }
        resolved = grounds.resolve(&grounds.layers, profile, overrides.tier(Tier::Supervised))?;
    }
    let mut toolchains = grounds.toolchains;
    own_registry::keep_apart(&mut toolchains.links, &resolved);
    Ok(Sourced { resolved, toolchains })
}

/// What the command line asks for over the profile.
fn overrides(args: &PolicyArgs) -> Result<Overrides, Failure> {
    let mut overrides = Overrides::new();
    if let Some(tier) = args.tier {
        overrides = overrides.tier(tier);
    }
    for rule in &args.allow {
        overrides =
            overrides.allow(rule).map_err(|e| resolve_failure(&ResolveError::Override(e)))?;
    }
    for setting in &args.set {
        let text = format!("{}={}", setting.name, setting.value);
        overrides =
            overrides.set(&text).map_err(|e| resolve_failure(&ResolveError::Override(e)))?;
    }
    Ok(overrides)
}

/// What profiles are resolved from: documents, and what the host has.
#[derive(Debug)]
pub(crate) struct Grounds<'a> {
    /// The documents, weakest word first.
    pub(crate) layers: Vec<Layer>,
    /// The repository's own, where the base has one.
    pub(crate) of_repository: Option<RepositoryDocument>,
    surroundings: &'a Surroundings,
    files: HostFiles,
    facts: HostFacts,
    /// The facts with the groups of the host's tools, which most policies don't ask for.
    with_groups: OnceCell<HostFacts>,
    toolchains: Toolchains,
    own: OwnPlaces,
    content: WorkspaceContent,
}

/// The repository's document as the base has it.
#[derive(Clone, Debug)]
pub(crate) struct RepositoryDocument {
    /// What it says.
    pub(crate) document: PolicyDocument,
    /// The digest of its bytes, which is what a person trusts.
    pub(crate) digest: Digest,
}

impl<'a> Grounds<'a> {
    /// Reads the documents and looks around on the host.
    ///
    /// # Errors
    /// A failure that names the document, line and column.
    pub(crate) fn of(
        caller: &'a Caller,
        base: Option<(&HostRepository, &PinnedBase)>,
    ) -> Result<Self, Failure> {
        let mut layers = vec![Layer::built_in()];
        let path = user_document(caller);
        if let Some(bytes) = read_document(&path)? {
            layers.push(Layer::user(parse(&path.to_string_lossy(), &bytes)?));
        }
        let of_repository = base.map(repository_document).transpose()?.flatten();
        if let (Some(own), Some((repository, _))) = (&of_repository, base) {
            let trusted = TrustList::read(&caller.surroundings.config_dir)?;
            let trust = match trusted.has(repository, &own.digest) {
                true => Trust::Trusted,
                false => Trust::TightenOnly,
            };
            layers.push(Layer::repository(own.document.clone(), trust));
        }
        let surroundings = &caller.surroundings;
        let files = HostFiles::default();
        let own = OwnPlaces::of(surroundings, &files);
        let question = Question {
            own: own.paths(),
            cargo_home: surroundings.absolute("CARGO_HOME"),
            rustup_home: surroundings.absolute("RUSTUP_HOME"),
            ..Question::new(&surroundings.home, &surroundings.path)
        };
        let toolchains = find_toolchains(&files, &question);
        let mut facts = HostFacts::new();
        facts.system = masks(&system_grants(&files));
        facts.toolchains = masks(&toolchains.read);
        let content = match base {
            Some(_) => WorkspaceContent::Private,
            None => WorkspaceContent::Empty,
        };
        let with_groups = OnceCell::new();
        Ok(Self {
            layers,
            of_repository,
            surroundings,
            files,
            facts,
            with_groups,
            toolchains,
            own,
            content,
        })
    }

    /// Resolves a profile of some layers, as a box of it would have it.
    ///
    /// # Errors
    /// As [`source_policy`].
    pub(crate) fn resolve(
        &self,
        layers: &[Layer],
        profile: &str,
        overrides: Overrides,
    ) -> Result<Resolved, Failure> {
        let request = ResolveRequest::new(profile).overrides(overrides).workspace(self.content);
        let resolved = match resolve(layers, &request, &self.facts) {
            Err(error) if asks_for_tools(&error) => {
                resolve(layers, &request, self.facts_with_groups())
            }
            answer => answer,
        };
        let mut resolved = resolved.map_err(|error| resolve_failure(&error))?;
        self.own.check(&resolved.policy, &self.files)?;
        if resolved.policy.tier > Tier::Workspace {
            place_toolchains(&mut resolved.policy.env.set, &self.toolchains);
            program_links::follow(&mut resolved.policy, &self.files);
        }
        Ok(resolved)
    }

    fn facts_with_groups(&self) -> &HostFacts {
        self.with_groups.get_or_init(|| {
            let mut facts = self.facts.clone();
            facts.groups = tool_groups(self.surroundings);
            facts
        })
    }
}

/// Whether nothing but the host's tools could say what a group is.
fn asks_for_tools(error: &ResolveError) -> bool {
    let kind = match error {
        ResolveError::Document(error) => &error.kind,
        ResolveError::Override(error) => match &error.kind {
            OverrideErrorKind::Value(kind) => kind,
            _ => return false,
        },
        _ => return false,
    };
    matches!(kind, DocumentErrorKind::UnknownGroup { .. })
}

fn repository_document(
    (repository, base): (&HostRepository, &PinnedBase),
) -> Result<Option<RepositoryDocument>, Failure> {
    let path = Path::new(REPOSITORY_DOCUMENT);
    let found = repository.read_base_file(base, path, PolicyDocument::LARGEST)?;
    let read = |bytes: Vec<u8>| {
        let document = parse(&format!("{REPOSITORY_DOCUMENT} of the base"), &bytes)?;
        Ok(RepositoryDocument { document, digest: Digest::of(&bytes) })
    };
    found.map(read).transpose()
}

/// Where the user's document is.
#[must_use]
pub fn user_document(caller: &Caller) -> std::path::PathBuf {
    caller.surroundings.config_dir.join("policy.toml")
}

/// Reads a document; `None` if there is none.
///
/// # Errors
/// An I/O failure with the path.
pub fn read_document(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(e) => Err(PathError::at(Action::Read, path)(e).into()),
    }
}

/// Parses a document.
///
/// # Errors
/// A usage failure with line, column and the line's text.
pub fn parse(name: &str, bytes: &[u8]) -> Result<PolicyDocument, Failure> {
    PolicyDocument::parse(name, bytes).map_err(|e| resolve_failure(&ResolveError::Document(e)))
}

/// Says why layers give no policy.
fn resolve_failure(error: &ResolveError) -> Failure {
    let kind = match error {
        ResolveError::UnknownProfile { .. } => Kind::NotFound,
        ResolveError::Conflict(_) => Kind::Refused,
        ResolveError::Document(e) if matches!(e.kind, DocumentErrorKind::Loosens { .. }) => {
            Kind::Refused
        }
        _ => Kind::Usage,
    };
    let hint = match error {
        ResolveError::Document(e) if matches!(e.kind, DocumentErrorKind::Loosens { .. }) => {
            TRUST_HINT.to_owned()
        }
        ResolveError::Document(e) if is_of_tool(&e.kind) => group_hint(&e.kind),
        ResolveError::Override(e) => match &e.kind {
            OverrideErrorKind::Value(kind) if is_of_tool(kind) => group_hint(kind),
            _ => told_hint(error),
        },
        _ => told_hint(error),
    };
    let failure = Failure::new(kind, error).hint(hint);
    match error {
        ResolveError::Document(error) => failure
            .detail("document", error.source_name.clone())
            .detail("line", error.line)
            .detail("column", error.column)
            .detail("excerpt", error.render()),
        ResolveError::Override(error) => failure.detail("in", error.place()),
        ResolveError::UnknownProfile { known, .. } => failure.detail("known", known.clone()),
        _ => failure,
    }
}

fn told_hint(error: &ResolveError) -> String {
    error.hint().unwrap_or_else(|| match error {
        ResolveError::UnknownProfile { known, .. } => format!("one of {}", known.join(", ")),
        _ => "h5i policy show prints every key with its value".to_owned(),
    })
}

/// Whether an unknown group is that of a tool which names no registry on this host.
fn is_of_tool(kind: &DocumentErrorKind) -> bool {
    matches!(kind, DocumentErrorKind::UnknownGroup { name } if TOOLS.contains(&name.as_str()))
}

fn group_hint(kind: &DocumentErrorKind) -> String {
    let DocumentErrorKind::UnknownGroup { name } = kind else { return String::new() };
    format!(
        "{name} has its default here, which h5i does not know: write [group.{name}] \
         allow = [\"HOST\"] into your policy"
    )
}

fn masks(grants: &BTreeMap<HostPath, ReadGrant>) -> BTreeMap<HostPath, BTreeSet<String>> {
    grants.iter().map(|(path, grant)| (path.clone(), grant.mask.clone())).collect()
}

/// Tells the programs of a box where its toolchains stand, where the policy does not say otherwise.
fn place_toolchains(set: &mut BTreeMap<String, String>, toolchains: &Toolchains) {
    for (name, place) in &toolchains.variables {
        set.entry((*name).to_owned()).or_insert_with(|| place.as_str().to_owned());
    }
    let mut path: Vec<&str> = toolchains.path.iter().map(HostPath::as_str).collect();
    path.extend(SYSTEM_PATH);
    let mut seen = BTreeSet::new();
    path.retain(|dir| seen.insert(*dir));
    set.entry("PATH".to_owned()).or_insert_with(|| path.join(":"));
}
