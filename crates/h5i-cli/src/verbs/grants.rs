//! `h5i grant ls`, `show`, `revoke`, `extend`

use std::fmt::Write as _;

use h5i_broker::End;
use h5i_policy::{Allowed, GitUse, Grant, ResolvedPolicy};
use serde_json::json;

use super::budget_use::size;
use super::run::frozen_policy;
use super::status::rough;
use super::{Answer, find, live};
use crate::args::{ExtendArgs, GrantArgs, GrantListArgs};
use crate::box_grants::{GrantWish, LiveGrant};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::session::{Presence, change_grant};
use crate::shown::Shown;
use crate::store::{ApprovedArtifact, BoxName};
use crate::workspace::nearest;

pub(super) fn list(caller: &Caller, args: &GrantListArgs) -> Result<Answer, Failure> {
    let (policy, alive) = look(caller, &args.name)?;
    let mut text = String::new();
    let mut rows = Vec::new();
    for (name, grant) in &policy.grants {
        let held: Vec<&LiveGrant> = alive.iter().filter(|held| held.grant == *name).collect();
        // Writing to a String can't fail.
        writeln!(text, "{:<16} {}", Shown::text(name).to_string(), service(grant)).ok();
        for one in &held {
            writeln!(text, "{:<16} {}", "", held_words(one)).ok();
        }
        rows.push(json!({ "name": name, "grant": grant, "held": held }));
    }
    let answer = Answer::new(json!({ "name": args.name, "grants": rows }), text)?;
    Ok(if rows.is_empty() { answer.note("the box has no grants") } else { answer })
}

pub(super) fn show(caller: &Caller, args: &GrantArgs) -> Result<Answer, Failure> {
    let (policy, alive) = look(caller, &args.name)?;
    let grant = of_name(&policy, &args.grant, &args.name)?;
    let held: Vec<&LiveGrant> = alive.iter().filter(|held| held.grant == args.grant).collect();
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        // Writing to a String can't fail.
        writeln!(text, "{name:<10} {what}").ok();
    };
    line("service", service(grant));
    line("secret", grant.secret.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string));
    for header in grant.header.iter() {
        line("header", header.to_string());
    }
    if let Some(query) = &grant.query {
        line("query", format!("{query}={{}}"));
    }
    line("methods", allowed(&grant.methods));
    line("paths", allowed(&grant.paths));
    if grant.git != GitUse::Any {
        line("git may", grant.git.to_string());
    }
    line("programs", allowed(&grant.programs));
    let budgets = [
        grant.requests.map(|most| format!("{most} requests")),
        grant.bytes_up.map(|most| format!("{most} up")),
        grant.bytes_down.map(|most| format!("{most} down")),
        grant.lasts.map(|most| format!("{most} from its run's start")),
    ];
    let budgets: Vec<String> = budgets.into_iter().flatten().collect();
    line("budget", if budgets.is_empty() { "none".to_owned() } else { budgets.join(" · ") });
    for one in &held {
        line("held", held_words(one));
    }
    for caution in cautions(grant) {
        line("note", caution);
    }
    Answer::new(
        json!({ "name": args.name, "grant": args.grant, "policy": grant, "held": held }),
        text,
    )
}

pub(super) fn revoke(caller: &Caller, args: &GrantArgs) -> Result<Answer, Failure> {
    crate::inside::refuse_verb("grant revoke")?;
    let (policy, _) = look(caller, &args.name)?;
    of_name(&policy, &args.grant, &args.name)?;
    change_grant(&find(caller, &args.name)?, GrantWish::Revoke { grant: args.grant.clone() })?;
    Ok(Answer::new(json!({ "name": args.name, "grant": args.grant }), String::new())?
        .note(format!("revoked  {}, until the session ends", Shown::text(&args.grant))))
}

pub(super) fn extend(caller: &Caller, args: &ExtendArgs) -> Result<Answer, Failure> {
    crate::inside::refuse_verb("grant extend")?;
    let (policy, _) = look(caller, &args.name)?;
    of_name(&policy, &args.grant, &args.name)?;
    let wish = GrantWish::Extend { grant: args.grant.clone(), by_ms: args.by.count() };
    change_grant(&find(caller, &args.name)?, wish)?;
    let data = json!({ "name": args.name, "grant": args.grant, "by_ms": args.by.count() });
    Ok(Answer::new(data, String::new())?.note(format!(
        "extended {} by {}",
        Shown::text(&args.grant),
        args.by
    )))
}

fn look(caller: &Caller, name: &BoxName) -> Result<(ResolvedPolicy, Vec<LiveGrant>), Failure> {
    let stored = find(caller, name)?;
    let policy = frozen_policy(&stored, &stored.manifest()?)?;
    let alive = match live::presence_of(&stored)? {
        Presence::Live(alive) => alive.grants,
        _ => Vec::new(),
    };
    Ok((policy, alive))
}

fn of_name<'a>(
    policy: &'a ResolvedPolicy,
    grant: &str,
    name: &BoxName,
) -> Result<&'a Grant, Failure> {
    policy.grants.get(grant).ok_or_else(|| {
        let message = format!("the box has no grant `{}`", Shown::text(grant));
        let failure = Failure::told(Kind::NotFound, message);
        match nearest(grant, policy.grants.keys().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => failure.hint(format!("h5i grant ls {name}")),
        }
    })
}

/// `https://api.example.com by reverse`
pub(super) fn service(grant: &Grant) -> String {
    let port = if grant.port == 443 { String::new() } else { format!(":{}", grant.port) };
    format!("https://{}{port} by {}", grant.host, grant.via)
}

/// What of a grant is wider than it looks.
pub(super) fn cautions(grant: &Grant) -> Vec<String> {
    let mut cautions = Vec::new();
    if let Some(query) = &grant.query {
        cautions.push(format!(
            "the secret is in the query as {query}=, and services write queries in their logs: use \
             a header if this one takes one"
        ));
    }
    if let Allowed::Only(programs) = &grant.programs {
        let anywhere = programs.iter().filter(|program| !program.is_anchored());
        cautions.extend(anywhere.map(|program| {
            let program = Shown::text(program.as_str()).to_string();
            format!("{program} is any file of this name in the box: name the program by its path")
        }));
    }
    cautions
}

fn allowed<T: Ord + ToString>(allowed: &Allowed<T>) -> String {
    match allowed {
        Allowed::Only(these) if these.is_empty() => "none".to_owned(),
        Allowed::Only(these) => {
            these.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        _ => "any".to_owned(),
    }
}

/// `run 3: 41 uses, 1.2 MiB up, 3.4 MiB down, 9959 left, 2 h left`
pub(super) fn held_words(held: &LiveGrant) -> String {
    let (up, down) = (size(held.sent), size(held.received));
    let mut text = format!("run {}: {} uses, {up} up, {down} down", held.run, held.uses);
    if let Some(left) = held.requests_left {
        // Writing to a String can't fail.
        write!(text, ", {left} requests left").ok();
    }
    match (&held.ended, held.left_ms) {
        (Some(end), _) => write!(text, ", over: {end}").ok(),
        (None, Some(left)) => write!(text, ", {} left", rough(left)).ok(),
        (None, None) => None,
    };
    text
}

/// The grants that a box's runs can use, as far as is known: all but those that were taken back for
/// the rest of its session.
pub(super) fn usable<'a>(policy: &'a ResolvedPolicy, presence: &Presence) -> Vec<&'a str> {
    let alive = match presence {
        Presence::Live(alive) => alive.grants.as_slice(),
        _ => &[],
    };
    let revoked = crate::grant_record::end_of(End::Revoked).name();
    let taken_back = |name: &str| {
        let is_revoked = |held: &LiveGrant| held.ended.as_deref() == Some(revoked);
        alive.iter().any(|held| held.grant == name && is_revoked(held))
    };
    policy.grants.keys().map(String::as_str).filter(|name| !taken_back(name)).collect()
}

/// What a box was made for, and what that leaves of its grants.
pub(super) fn approved_words(artifact: &ApprovedArtifact) -> String {
    let ApprovedArtifact { bundle, approval, until } = artifact;
    format!(
        "{bundle}, by approval {approval}; one use of each grant, in the first run, until {until}"
    )
}

/// The grants of a live box, for `status`.
pub(super) fn live_words(alive: &[LiveGrant]) -> Vec<String> {
    let going = alive.iter().filter(|held| held.ended.is_none());
    going.map(|held| format!("{}, {}", Shown::text(&held.grant), held_words(held))).collect()
}
