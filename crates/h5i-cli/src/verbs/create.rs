//! `h5i box create`

use serde_json::json;

use super::Answer;
use super::summary::{headline, notes_of};
use crate::args::CreateArgs;
use crate::caller::Caller;
use crate::creation::{Wish, create as make};
use crate::failure::Failure;
use crate::written_secrets::written_secrets;

pub(super) fn create(caller: &Caller, args: &CreateArgs) -> Result<Answer, Failure> {
    let artifact = args.artifact.of();
    if artifact.is_some() {
        crate::inside::refuse("create --artifact")?;
    }
    let wish = Wish {
        name: &args.name,
        base: &args.base,
        artifact,
        workspace: args.layout.workspace,
        policy: &args.policy,
        learn: args.learn,
        purpose: args.purpose.as_deref(),
    };
    let created = make(caller, &wish)?;
    let manifest = &created.manifest;
    let data = json!({
        "name": manifest.name,
        "id": manifest.id,
        "tier": manifest.tier,
        "profile": manifest.profile,
        "policy": manifest.policy_digest,
        "base": manifest.base,
        "network": created.policy.net.mode,
        "workspace": manifest.workspace,
        "history": manifest.history,
        "home": created.seeded,
        "artifact": manifest.artifact,
        "written_secrets": written_secrets(&created.policy),
    });
    let mut answer = Answer::new(data, String::new())?;
    answer = answer.note(headline(manifest, &created.policy));
    for note in notes_of(&created.notes, &created.policy) {
        answer = answer.note(note);
    }
    if let Some(artifact) = &manifest.artifact {
        answer = answer.note(format!("artifact {}", super::grants::approved_words(artifact)));
    }
    if let Some(words) = created.seeded.words() {
        let name = &manifest.name;
        answer = answer.note(format!("home     {words}: h5i box explain {name}"));
    }
    if args.learn.learn {
        let accept = format!("h5i policy accept {}", manifest.name);
        answer = answer.note(format!("learn    what its runs ask for: {accept}"));
    }
    Ok(answer.note(format!("run      h5i box run {} -- COMMAND", manifest.name)))
}
