//! `h5i policy show|check|digest|diff`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use h5i_export::Digest;
use h5i_policy::{Layer, Origin, Overrides, Trust, diff as differences, explain, unenforced};
use serde_json::{Value, json};

use super::run::frozen_policy;
use super::{Answer, find};
use crate::args::{BaseArgs, CheckArgs, LearnArgs, PolicyArgs, PolicyDiffArgs, ProfileArgs};
use crate::box_plan::check_enforceable;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::policy_source::{
    DEFAULT_PROFILE, Grounds, REPOSITORY_DOCUMENT, Sourced, parse, read_document, source_policy,
    user_document,
};
use crate::shown::Shown;
use crate::trust::TrustList;
use crate::workspace::{DiscoverError, HostRepository};
use crate::written_secrets::{WrittenSecret, written_secrets};

pub(super) fn show(caller: &Caller, args: &ProfileArgs) -> Result<Answer, Failure> {
    let sourced = sourced(caller, &args.policy)?;
    let policy = &sourced.resolved.policy;
    let digest = policy.digest().to_string();
    let lines: Vec<Value> = explain(policy, &sourced.resolved.provenance)
        .into_iter()
        .map(|line| json!({ "field": line.field, "text": line.text, "from": line.source.to_string() }))
        .collect();
    let written = written_secrets(policy);
    let data = json!({
        "profile": sourced.resolved.profile,
        "digest": digest,
        "policy": policy,
        "explained": lines,
        "written_secrets": written,
    });
    let mut answer = Answer::new(data, policy.to_toml())?.note(format!("digest   {digest}"));
    for missing in unenforced(policy) {
        answer = answer.note(format!("refused at create: {missing}; {}", missing.instead));
    }
    for written in written {
        answer = answer.note(format!("note     {written}"));
    }
    Ok(answer)
}

pub(super) fn digest(caller: &Caller, args: &ProfileArgs) -> Result<Answer, Failure> {
    let sourced = sourced(caller, &args.policy)?;
    let digest = sourced.resolved.policy.digest().to_string();
    let data = json!({ "profile": sourced.resolved.profile, "digest": digest });
    Answer::new(data, format!("{digest}\n"))
}

/// Checks documents, and that each of their profiles could be had by a box; without names the user's
/// and, from the base, the repository's.
pub(super) fn check(caller: &Caller, args: &CheckArgs) -> Result<Answer, Failure> {
    let mut checked = Vec::new();
    let mut written = BTreeSet::new();
    let repository = match caller.repository() {
        Ok(repository) => Some(repository),
        Err(DiscoverError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let base = repository
        .as_ref()
        .filter(|_| args.files.is_empty())
        .map(|repository| repository.pin(&BaseArgs::default().spec()))
        .transpose()?;
    let grounds = Grounds::of(caller, repository.as_ref().zip(base.as_ref()))?;
    if args.files.is_empty() {
        let described = base.as_ref().map_or("", |base| base.described.as_str());
        let named = |layer: &Layer| match layer.origin {
            Origin::Repository(_) => format!("{REPOSITORY_DOCUMENT} of {described}"),
            _ => layer.document.source_name().to_owned(),
        };
        checked.extend(grounds.layers.iter().skip(1).map(named));
        written.extend(check_profiles(&grounds, &grounds.layers)?);
    }
    for file in &args.files {
        let path = caller.directory.join(file);
        let Some(bytes) = read_document(&path)? else {
            let message = format!("no policy document at {}", Shown::path(&path));
            return Err(Failure::told(Kind::NotFound, message)
                .hint("h5i policy check without a name looks at the user's and the repository's"));
        };
        let document = parse(&file.to_string_lossy(), &bytes)?;
        let own = repository.as_ref().filter(|r| is_document_of(r, &path));
        let layers = match own {
            Some(repository) => {
                let trusted = TrustList::read(&caller.surroundings.config_dir)?;
                let trust = match trusted.has(repository, &Digest::of(&bytes)) {
                    true => Trust::Trusted,
                    false => Trust::TightenOnly,
                };
                let mut layers = grounds.layers.clone();
                layers.push(Layer::repository(document, trust));
                layers
            }
            None => vec![Layer::built_in(), Layer::user(document)],
        };
        written.extend(check_profiles(&grounds, &layers)?);
        checked.push(file.display().to_string());
    }
    let mut text = String::new();
    for name in &checked {
        // Writing to a String can't fail.
        writeln!(text, "no mistake in {}", Shown::text(name)).ok();
    }
    let secrets: Vec<Value> = written
        .iter()
        .map(|(profile, secret)| json!({ "profile": profile, "secret": secret }))
        .collect();
    let mut answer = Answer::new(json!({ "checked": checked, "written_secrets": secrets }), text)?;
    for (profile, secret) in &written {
        answer = answer.note(format!("note     profile {}: {secret}", Shown::text(profile)));
    }
    if !checked.is_empty() {
        return Ok(answer);
    }
    let user = user_document(caller);
    let user = Shown::path(&user);
    Ok(answer.note(format!("no document to check: no {user}, no {REPOSITORY_DOCUMENT} of HEAD")))
}

/// Refuses what `create` would refuse of the profiles that these documents write, and of `default`;
/// yields which profiles write a secret.
fn check_profiles(
    grounds: &Grounds,
    layers: &[Layer],
) -> Result<Vec<(String, WrittenSecret)>, Failure> {
    let written = layers.iter().skip(1).flat_map(|layer| layer.document.profile_names());
    let profiles: BTreeSet<&str> = written.chain([DEFAULT_PROFILE]).collect();
    let mut written = Vec::new();
    for profile in profiles {
        let resolved = grounds.resolve(layers, profile, Overrides::new())?;
        check_enforceable(&resolved.policy)
            .map_err(|failure| failure.detail("profile", profile))?;
        let secrets = written_secrets(&resolved.policy).into_iter();
        written.extend(secrets.map(|secret| (profile.to_owned(), secret)));
    }
    Ok(written)
}

/// Whether a file is the document of the repository's working tree.
fn is_document_of(repository: &HostRepository, path: &Path) -> bool {
    let Some(workdir) = repository.workdir() else { return false };
    let id = |path: &Path| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let own = id(&workdir.join(REPOSITORY_DOCUMENT));
    own.is_some() && own == id(path)
}

/// How a box's frozen policy differs from what its profile resolves to now.
pub(super) fn diff(caller: &Caller, args: &PolicyDiffArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let manifest = stored.manifest()?;
    let frozen = frozen_policy(&stored, &manifest)?;
    let profile = manifest.profile.parse().map_err(|_invalid| {
        Failure::told(Kind::Corrupt, "the box's manifest names a profile that can't be one")
    })?;
    let asked = PolicyArgs { profile: Some(profile), ..PolicyArgs::default() };
    let now = sourced(caller, &asked)?.resolved.policy;
    let changes = differences(&frozen, &now);
    let mut text = String::new();
    let mut rows = Vec::new();
    for change in &changes {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let (before, after) = (side(&change.before), side(&change.after));
        // Writing to a String can't fail.
        writeln!(text, "{}: {before} in the box, {after} now", change.field).ok();
        rows.push(json!({ "field": change.field, "box": change.before, "now": change.after }));
    }
    let data = json!({ "box": manifest.policy_digest, "now": now.digest(), "changes": rows });
    let answer = Answer::new(data, text)?.code(u8::from(!changes.is_empty()));
    Ok(if changes.is_empty() { answer.note("no difference") } else { answer })
}

/// The policy as it would be for a box of here and now.
fn sourced(caller: &Caller, args: &PolicyArgs) -> Result<Sourced, Failure> {
    match caller.repository() {
        Ok(repository) => {
            let base = repository.pin(&BaseArgs::default().spec())?;
            source_policy(caller, Some((&repository, &base)), args, LearnArgs::default())
        }
        Err(DiscoverError::NotFound { .. }) => {
            source_policy(caller, None, args, LearnArgs::default())
        }
        Err(error) => Err(error.into()),
    }
}
