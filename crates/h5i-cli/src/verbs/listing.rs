//! `h5i box ls`

use std::fmt::Write as _;

use serde_json::json;

use super::run::frozen_policy;
use super::{Answer, live, scopes};
use crate::args::ListArgs;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::session::Presence;
use crate::shown::Shown;
use crate::timestamp::Timestamp;

pub(super) fn list(caller: &Caller, args: &ListArgs) -> Result<Answer, Failure> {
    let mut rows = Vec::new();
    let mut text = String::new();
    for scope in scopes(caller, args.all)? {
        for stored in caller.store.boxes(&scope)? {
            let presence = live::presence_of(&stored)?;
            let state = match &presence {
                Presence::Idle => "idle",
                Presence::InUse => "in use",
                Presence::Live(alive) if alive.frozen => "frozen",
                Presence::Live(_) => "alive",
            };
            let Ok(manifest) = stored.manifest() else {
                rows.push(json!({ "name": stored.name(), "state": "damaged" }));
                writeln!(text, "{:<24} damaged", stored.name().as_str()).ok();
                continue;
            };
            let base = &manifest.base;
            let mut last: Vec<String> = Vec::new();
            if let Presence::Live(alive) = &presence {
                last.push(live::words(alive));
                last.extend(live::frozen(alive, manifest.name.as_str()));
            }
            last.extend(manifest.purpose.as_deref().map(|p| Shown::text(p).to_string()));
            last.extend(manifest.expires.map(|end| ends(end, Timestamp::now())));
            let line = format!(
                "{:<24} {:<10} {:<8} {} {:<16} {}",
                manifest.name.as_str(),
                manifest.tier.name(),
                state,
                base.commit.get(..7).unwrap_or(&base.commit),
                Shown::text(&base.described).to_string(),
                last.join(" · "),
            );
            // Writing to a String can't fail.
            writeln!(text, "{}", line.trim_end()).ok();
            rows.push(json!({
                "name": manifest.name,
                "id": manifest.id,
                "state": state,
                "session": match &presence {
                    Presence::Live(alive) => {
                        live::data(alive, &frozen_policy(&stored, &manifest)?.limits)
                    }
                    _ => serde_json::Value::Null,
                },
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

/// When `gc` may remove a box, in words.
fn ends(end: Timestamp, now: Timestamp) -> String {
    match end.millis().checked_sub(now.millis()).filter(|left| *left > 0) {
        None => "expired".to_owned(),
        Some(left) => format!("expires in {}", super::status::rough(left)),
    }
}

#[cfg(test)]
mod tests {
    use super::ends;
    use crate::timestamp::Timestamp;

    #[test]
    fn the_end_of_a_box_is_told_in_its_largest_unit() {
        let at = Timestamp::from_millis;
        assert_eq!(ends(at(10_000), at(10_000)), "expired");
        assert_eq!(ends(at(10_000), at(20_000)), "expired");
        assert_eq!(ends(at(90_000), at(0)), "expires in 90 s");
        assert_eq!(ends(at(3 * 86_400_000), at(0)), "expires in 3 days");
    }
}
