//! Where a box's policy comes from: documents, the command line, and what the host has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use h5i_policy::{
    DocumentErrorKind, HostFacts, HostPath, Layer, Overrides, PolicyDocument, ReadGrant,
    ResolveError, ResolveRequest, Resolved, Tier, Trust, WorkspaceContent, resolve,
};

use crate::args::PolicyArgs;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::own_places::OwnPlaces;
use crate::path_error::{Action, PathError};
use crate::spool;
use crate::toolchains::{HostFiles, Question, Toolchains, find_toolchains, system_grants};
use crate::workspace::{HostRepository, PinnedBase};

/// The repository's document, read from the pinned base.
pub const REPOSITORY_DOCUMENT: &str = ".h5i/policy.toml";
/// The profile that is taken when none is named.
const DEFAULT_PROFILE: &str = "default";
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
) -> Result<Sourced, Failure> {
    let layers = layers(caller, base)?;
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
    let surroundings = &caller.surroundings;
    let own = OwnPlaces::of(surroundings, &HostFiles);
    let question = Question {
        own: own.paths(),
        cargo_home: surroundings.absolute("CARGO_HOME"),
        rustup_home: surroundings.absolute("RUSTUP_HOME"),
        ..Question::new(&surroundings.home, &surroundings.path)
    };
    let toolchains = find_toolchains(&HostFiles, &question);
    let mut facts = HostFacts::new();
    facts.system = masks(&system_grants(&HostFiles));
    facts.toolchains = masks(&toolchains.read);
    let profile = args.profile.as_ref().map_or(DEFAULT_PROFILE, |name| name.as_str());
    let content = if base.is_some() { WorkspaceContent::Private } else { WorkspaceContent::Empty };
    let request = ResolveRequest::new(profile).overrides(overrides).workspace(content);
    let mut resolved =
        resolve(&layers, &request, &facts).map_err(|error| resolve_failure(&error))?;
    own.check(&resolved.policy, &HostFiles)?;
    if resolved.policy.tier > Tier::Workspace {
        place_toolchains(&mut resolved.policy.env.set, &toolchains);
    }
    Ok(Sourced { resolved, toolchains })
}

/// The documents, weakest word first.
///
/// # Errors
/// A failure that names the document, line and column.
pub fn layers(
    caller: &Caller,
    base: Option<(&HostRepository, &PinnedBase)>,
) -> Result<Vec<Layer>, Failure> {
    let mut layers = vec![Layer::built_in()];
    let path = user_document(caller);
    if let Some(bytes) = read_document(&path)? {
        layers.push(Layer::user(parse(&path.to_string_lossy(), &bytes)?));
    }
    if let Some((repository, base)) = base {
        let path = Path::new(REPOSITORY_DOCUMENT);
        let found = repository.read_base_file(base, path, PolicyDocument::LARGEST)?;
        if let Some(bytes) = found {
            let document = parse(&format!("{REPOSITORY_DOCUMENT} of the base"), &bytes)?;
            layers.push(Layer::repository(document, Trust::TightenOnly));
        }
    }
    Ok(layers)
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
    let failure = Failure::new(kind, error).hint(error.hint().unwrap_or_else(|| match error {
        ResolveError::UnknownProfile { known, .. } => format!("one of {}", known.join(", ")),
        _ => "h5i policy show prints every key with its value".to_owned(),
    }));
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
