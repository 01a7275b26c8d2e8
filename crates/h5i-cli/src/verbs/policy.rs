//! `h5i policy show|check|digest|diff`

use std::fmt::Write as _;

use h5i_policy::{diff as differences, explain, unenforced};
use serde_json::{Value, json};

use super::run::frozen_policy;
use super::{Answer, find};
use crate::args::{BaseArgs, CheckArgs, PolicyArgs, PolicyDiffArgs, ProfileArgs};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::policy_source::{
    REPOSITORY_DOCUMENT, Sourced, parse, read_document, source_policy, user_document,
};
use crate::workspace::DiscoverError;

pub(super) fn show(caller: &Caller, args: &ProfileArgs) -> Result<Answer, Failure> {
    let sourced = sourced(caller, &args.policy)?;
    let policy = &sourced.resolved.policy;
    let digest = policy.digest().to_string();
    let lines: Vec<Value> = explain(policy, &sourced.resolved.provenance)
        .into_iter()
        .map(|line| json!({ "field": line.field, "text": line.text, "from": line.source.to_string() }))
        .collect();
    let data = json!({
        "profile": sourced.resolved.profile,
        "digest": digest,
        "policy": policy,
        "explained": lines,
    });
    let mut answer = Answer::new(data, policy.to_toml())?.note(format!("digest   {digest}"));
    for missing in unenforced(policy) {
        answer = answer.note(format!("refused at create: {missing}; {}", missing.instead));
    }
    Ok(answer)
}

pub(super) fn digest(caller: &Caller, args: &ProfileArgs) -> Result<Answer, Failure> {
    let sourced = sourced(caller, &args.policy)?;
    let digest = sourced.resolved.policy.digest().to_string();
    let data = json!({ "profile": sourced.resolved.profile, "digest": digest });
    Answer::new(data, format!("{digest}\n"))
}

/// Checks documents; without names the user's and, from the base, the repository's.
pub(super) fn check(caller: &Caller, args: &CheckArgs) -> Result<Answer, Failure> {
    let mut checked = Vec::new();
    if args.files.is_empty() {
        let path = user_document(caller);
        if let Some(bytes) = read_document(&path)? {
            parse(&path.to_string_lossy(), &bytes)?;
            checked.push(path.display().to_string());
        }
        match caller.repository() {
            Ok(repository) => {
                let base = repository.pin(&BaseArgs::default().spec())?;
                let before = checked.len();
                let layers = crate::policy_source::layers(caller, Some((&repository, &base)))?;
                if layers.len() > before + 1 {
                    checked.push(format!("{REPOSITORY_DOCUMENT} of {}", base.described));
                }
            }
            Err(DiscoverError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for file in &args.files {
        let path = caller.directory.join(file);
        let Some(bytes) = read_document(&path)? else {
            let message = format!("no policy document at {}", crate::shown::Shown::path(&path));
            return Err(Failure::told(Kind::NotFound, message)
                .hint("h5i policy check without a name looks at the user's and the repository's"));
        };
        parse(&file.to_string_lossy(), &bytes)?;
        checked.push(file.display().to_string());
    }
    let mut text = String::new();
    for name in &checked {
        // Writing to a String can't fail.
        writeln!(text, "no mistake in {}", crate::shown::Shown::text(name)).ok();
    }
    let answer = Answer::new(json!({ "checked": checked }), text)?;
    if !checked.is_empty() {
        return Ok(answer);
    }
    let user = user_document(caller);
    let user = crate::shown::Shown::path(&user);
    Ok(answer.note(format!("no document to check: no {user}, no {REPOSITORY_DOCUMENT} of HEAD")))
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
            source_policy(caller, Some((&repository, &base)), args)
        }
        Err(DiscoverError::NotFound { .. }) => source_policy(caller, None, args),
        Err(error) => Err(error.into()),
    }
}
