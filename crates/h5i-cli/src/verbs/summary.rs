//! What a person is told about a box and a run, in the fewest lines.

use std::fmt::Write as _;

use h5i_export::ByteText;
use h5i_policy::{ResolvedPolicy, Tier};
use serde_json::{Value, json};

use super::amount::used_of;
use super::budget_use::size;
use crate::box_plan::network_words;
use crate::json_bytes::JsonBytes;
use crate::net_record::{NetRefused, RefusedKind};
use crate::running::Finished;
use crate::session::{Opened, Refused};
use crate::shown::Shown;
use crate::store::Manifest;
use crate::workspace::Note;
use crate::written_secrets::written_secrets;

/// `box NAME · tier · base 1234567 (main) · network none`
#[must_use]
pub(super) fn headline(manifest: &Manifest, policy: &ResolvedPolicy) -> String {
    let grants: Vec<&str> = policy.grants.keys().map(String::as_str).collect();
    headline_with(manifest, policy, &grants)
}

/// The same, with the grants that can be used.
#[must_use]
pub(super) fn headline_with(
    manifest: &Manifest,
    policy: &ResolvedPolicy,
    grants: &[&str],
) -> String {
    let commit = manifest.base.host_commit.as_deref().unwrap_or(&manifest.base.commit);
    let boundary = match policy.tier {
        Tier::Workspace => "workspace tier: NO BOUNDARY, the host is in reach".to_owned(),
        tier => format!("{tier} · {}", network_words(policy.net.mode, grants)),
    };
    format!(
        "box {} · {boundary} · base {} ({})",
        manifest.name,
        commit.get(..7).unwrap_or(commit),
        Shown::text(&manifest.base.described)
    )
}

/// What the workspace and the policy have that a person should know.
pub(super) fn notes_of(notes: &[Note], policy: &ResolvedPolicy) -> Vec<String> {
    let paths = |wanted: fn(&Note) -> Option<&Vec<u8>>| -> Vec<String> {
        notes.iter().filter_map(wanted).map(|path| Shown::bytes(path).to_string()).collect()
    };
    let mut lines = Vec::new();
    let submodules = paths(|note| match note {
        Note::Submodule { path } => Some(path),
        _ => None,
    });
    if !submodules.is_empty() {
        lines.push(format!("note     submodules are empty in the box: {}", submodules.join(" ")));
    }
    let pointers = paths(|note| match note {
        Note::LfsPointer { path } => Some(path),
        _ => None,
    });
    if !pointers.is_empty() {
        lines.push(format!("note     {} files are LFS pointers in the box", pointers.len()));
    }
    lines.extend(written_secrets(policy).into_iter().map(|written| format!("note     {written}")));
    lines
}

/// How a run ended: `exit 1 in 12.4 s`.
pub(super) fn ending(finished: &Finished) -> String {
    let by = match &finished.spent {
        Some(spent) if !spent.program.0.is_empty() => {
            format!(", most of it by {} (pid {})", Shown::bytes(&spent.program.0), spent.pid)
        }
        _ => String::new(),
    };
    format!("{}{by} in {}", outcome(finished), span(finished.usage.wall))
}

/// The outcome with its figures in words, and the cause where the session broke.
fn outcome(finished: &Finished) -> String {
    use h5i_confine::Outcome::{CutOff, Stopped};
    match (&finished.outcome, &finished.broke) {
        (CutOff, Some(cause)) => format!("cut off: {cause}"),
        (Stopped(stop), _) => {
            let limit = stop.limit.name();
            let used = used_of(limit, stop.used, stop.allowed);
            let of = if stop.limit == h5i_confine::Limit::KeepFree { "" } else { "used " };
            format!("stopped by limits.{limit}: {of}{used}")
        }
        (other, _) => other.to_string(),
    }
}

/// That output of a run did not reach its receiver.
pub(super) fn undelivered(error: &std::io::Error) -> String {
    format!("lost     output of the run could not be written: {error}\n")
}

fn span(wall: std::time::Duration) -> String {
    match wall.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..120_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Lines of refusals that a person is shown.
const LINES: usize = 10;

/// What was refused, a line a kind, the loudest first.
pub(super) fn refusals(refused: &[Refused]) -> String {
    let mut calls: Vec<&Refused> = refused.iter().collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.count));
    let mut text = String::new();
    for call in calls.iter().take(LINES) {
        let by = match call.program.as_slice() {
            [] => "a program that was gone".to_owned(),
            program => Shown::bytes(program).to_string(),
        };
        let head = if text.is_empty() { "refused " } else { "        " };
        // Writing to a String can't fail.
        let allowed = match &call.allowed_by {
            Some(rule) => format!("allow at create: --set '{rule}'"),
            None if call.call == "execve" => "no rule is in its way".to_owned(),
            None => "nothing allows it".to_owned(),
        };
        writeln!(text, "{head} {} ×{} by {by}: {}; {allowed}", call.call, call.count, call.reason)
            .ok();
    }
    if calls.len() > LINES {
        writeln!(text, "         and {} kinds more: h5i box log --denied", calls.len() - LINES)
            .ok();
    }
    text
}

/// What was refused on the network, a line a kind, the loudest first.
pub(super) fn network_refusals(finished: &Finished) -> String {
    let mut all: Vec<&NetRefused> = finished.network.refused.iter().collect();
    all.sort_by_key(|refused| std::cmp::Reverse(refused.count));
    let mut text = String::new();
    for refused in all.iter().take(LINES) {
        let head = if text.is_empty() && finished.refused.is_empty() { "refused" } else { "" };
        let (kind, what) = (refused.kind.name(), Shown::text(&refused.what));
        let allow = match &refused.allowed_by {
            Some(rule) if refused.kind == RefusedKind::Name => {
                format!("; allow at create: --allow {}, or another port", Shown::text(rule))
            }
            Some(rule) => format!("; allow at create: --allow {}", Shown::text(rule)),
            None if refused.kind == RefusedKind::Name && refused.what == "host" => {
                "; allow at create: --allow host:PORT".to_owned()
            }
            None => String::new(),
        };
        // Writing to a String can't fail.
        writeln!(
            text,
            "{head:<8} {kind} {what} ×{}{}: {}{allow}{}",
            refused.count,
            tried_by(refused.count, &refused.programs),
            refused.reason,
            instead_of_ssh(refused)
        )
        .ok();
    }
    if all.len() > LINES {
        let more = all.len() - LINES;
        writeln!(text, "         and {more} more: h5i box log --lane net --denied").ok();
    }
    text
}

/// Programs that are named in a line.
const PROGRAMS: usize = 3;

/// ` by /usr/bin/curl`, or ` first by …` where of the others nobody knows.
pub(super) fn tried_by<'a>(
    count: u64,
    programs: impl IntoIterator<Item = &'a ByteText, IntoIter: ExactSizeIterator>,
) -> String {
    let all = programs.into_iter();
    let more = match all.len().saturating_sub(PROGRAMS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<String> =
        all.take(PROGRAMS).map(|one| Shown::bytes(one.as_bytes()).to_string()).collect();
    match (named.is_empty(), count) {
        (true, _) => String::new(),
        (false, 1) => format!(" by {}{more}", named.join(", ")),
        (false, _) => format!(" first by {}{more}", named.join(", ")),
    }
}

/// What git is to do instead, where that may have been git: a box has no key to connect with.
fn instead_of_ssh(refused: &NetRefused) -> &'static str {
    if refused.kind == RefusedKind::Connection && refused.what.ends_with(":22") {
        "; git over SSH needs a key; a grant for https does not: git remote set-url origin https://…"
    } else {
        ""
    }
}

/// What was asked of services: `asked    anthropic: 41 requests, 1.2 MiB up, 3.4 MiB down`.
pub(super) fn grants(finished: &Finished) -> String {
    let used = finished.grants.used.iter().filter(|used| used.uses > 0);
    let mut text = String::new();
    for used in used {
        let (up, down) = (size(used.sent), size(used.received));
        let requests = if used.uses == 1 { "request" } else { "requests" };
        let grant = Shown::text(&used.grant);
        // Writing to a String can't fail.
        writeln!(text, "asked    {grant}: {} {requests}, {up} up, {down} down", used.uses).ok();
    }
    text
}

/// What grants did not let pass, a line a kind, the loudest first.
pub(super) fn grant_refusals(finished: &Finished) -> String {
    let mut text = String::new();
    let mut refused: Vec<_> = finished.grants.refused.iter().collect();
    refused.sort_by_key(|refused| std::cmp::Reverse(refused.count));
    for refused in refused.iter().take(LINES) {
        let grant = Shown::text(&refused.grant);
        let request = refused.request.as_deref().unwrap_or("a request");
        let by = match &refused.program {
            Some(program) => format!(" by {}", Shown::bytes(&program.0)),
            None => String::new(),
        };
        let (request, reason) = (Shown::text(request), Shown::text(&refused.reason));
        // Writing to a String can't fail.
        writeln!(text, "refused  grant {grant}: {request}{by} ×{}: {reason}", refused.count).ok();
    }
    if refused.len() > LINES {
        let more = refused.len() - LINES;
        writeln!(text, "         and {more} more: h5i box log --lane broker --denied").ok();
    }
    text
}

/// Planted credentials that a run opened, a line each.
pub(super) fn opened(finished: &Finished) -> String {
    let mut text = String::new();
    for Opened { path, count } in &finished.opened {
        let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
        // Writing to a String can't fail.
        writeln!(text, "opened   the planted credential {}, {times}", Shown::text(path)).ok();
    }
    text
}

/// A run's result as programs get it.
pub(super) fn run_data(manifest: &Manifest, finished: &Finished) -> Value {
    let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let denied: Vec<Value> = finished
        .refused
        .iter()
        .map(|call| {
            json!({
                "call": call.call,
                "args": call.args,
                "program": JsonBytes(call.program.clone()),
                "count": call.count,
                "reason": call.reason,
                "allowed_by": call.allowed_by,
            })
        })
        .collect();
    json!({
        "box": manifest.name,
        "run": finished.run,
        "outcome": outcome(finished),
        "exit_code": finished.outcome.exit_code(),
        "wall_ms": millis(finished.usage.wall),
        "cpu_ms": millis(finished.usage.cpu),
        "max_rss_bytes": finished.usage.max_rss,
        "stdout": JsonBytes(finished.stdout.clone()),
        "stderr": JsonBytes(finished.stderr.clone()),
        "truncated": truncated(finished),
        "programs": finished.programs,
        "denied": denied,
        "flows": finished.network.flows,
        "denied_network": finished.network.refused,
        "network_untold": finished.network.more,
        "grants": finished.grants.used,
        "denied_grants": finished.grants.refused,
        "stopped": finished.spent,
        "canaries": finished.opened,
    })
}

/// What ran, where that is known: `ran      143 programs (node ×97, …)`.
pub(super) fn ran(finished: &Finished) -> Option<String> {
    let programs = &finished.programs;
    (programs.total > 0).then(|| format!("ran      {}", programs.summary()))
}

fn truncated(finished: &Finished) -> bool {
    matches!(
        finished.outcome,
        h5i_confine::Outcome::Stopped(stop) if stop.limit == h5i_confine::Limit::Output
    )
}
