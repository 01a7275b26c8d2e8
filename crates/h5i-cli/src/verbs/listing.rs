//! `h5i box ls`

use std::fmt::Write as _;

use serde_json::json;

use super::{Answer, scopes};
use crate::args::ListArgs;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::shown::Shown;
use crate::store::LockError;

pub(super) fn list(caller: &Caller, args: &ListArgs) -> Result<Answer, Failure> {
    let mut rows = Vec::new();
    let mut text = String::new();
    for scope in scopes(caller, args.all)? {
        for stored in caller.store.boxes(&scope)? {
            let state = match stored.lock() {
                Ok(_) => "idle",
                Err(LockError::Busy) => "in use",
                Err(LockError::Io(error)) => return Err(error.into()),
            };
            let Ok(manifest) = stored.manifest() else {
                rows.push(json!({ "name": stored.name(), "state": "damaged" }));
                writeln!(text, "{:<24} damaged", stored.name().as_str()).ok();
                continue;
            };
            let base = &manifest.base;
            // Writing to a String can't fail.
            writeln!(
                text,
                "{:<24} {:<10} {:<8} {} {:<16} {}",
                manifest.name.as_str(),
                manifest.tier.name(),
                state,
                base.commit.get(..7).unwrap_or(&base.commit),
                Shown::text(&base.described).to_string(),
                manifest.purpose.as_deref().map(|p| Shown::text(p).to_string()).unwrap_or_default(),
            )
            .ok();
            rows.push(json!({
                "name": manifest.name,
                "id": manifest.id,
                "state": state,
                "tier": manifest.tier,
                "profile": manifest.profile,
                "base": base,
                "created": manifest.created,
                "expires": manifest.expires,
                "purpose": manifest.purpose,
                "scope": scope.to_string(),
            }));
        }
    }
    if rows.is_empty() {
        return Ok(Answer::new(json!({ "boxes": rows }), text)?
            .note("no boxes here; h5i box create NAME makes one"));
    }
    Answer::new(json!({ "boxes": rows }), text)
}
