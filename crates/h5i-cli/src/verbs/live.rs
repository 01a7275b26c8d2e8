//! What is told of a box that is alive.

use std::fmt::Write as _;

use h5i_policy::{Bytes, Escaped, Limits};
use serde_json::{Value, json};

use super::budget_use::{self, size};
use super::status::rough;
use crate::failure::{Failure, Kind};
use crate::session::{Live, LiveProcess, Presence, presence};
use crate::shown::Shown;
use crate::store::StoredBox;
use crate::timestamp::Timestamp;

/// Whether a box is alive. A holder that does not answer is no reason to tell nothing else.
pub(super) fn presence_of(stored: &StoredBox) -> Result<Presence, Failure> {
    match presence(stored) {
        Err(failure) if failure.kind == Kind::Busy => Ok(Presence::InUse),
        other => other,
    }
}

/// `alive 14 min · 3 runs · 21 processes · 312 MiB · 41 s CPU · 1.2 GiB on disk`
pub(super) fn words(live: &Live) -> String {
    let counted =
        |n: usize, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
    let state = if live.frozen { "frozen, alive" } else { "alive" };
    let mut parts = vec![
        format!("{state} {}", rough(since(live.since_ms))),
        counted(live.runs.len(), "run", "runs"),
        counted(live.processes.len(), "process", "processes"),
        size(memory(live)),
        format!("{} CPU", rough(live.cpu_ms)),
    ];
    parts.extend(live.disk_bytes.map(|bytes| format!("{} on disk", size(bytes))));
    parts.extend(live.forwards.iter().map(|(port, at)| format!("port {port} at {at}")));
    if !live.started {
        parts.push("ends with its last run".to_owned());
    }
    parts.join(" · ")
}

/// The runs that go, a line each.
pub(super) fn runs(live: &Live) -> Vec<String> {
    let line = |run: &crate::session::LiveRun| {
        let words: Vec<String> =
            run.command.iter().map(|word| Shown::bytes(&word.0).to_string()).collect();
        let mut text = words.join(" ");
        if text.chars().count() > 60 {
            text = text.chars().take(59).collect();
            text.push('…');
        }
        format!("{} {} {text}", run.run, rough(since(run.since_ms)))
    };
    live.runs.iter().map(line).collect()
}

/// The processes, each below its parent.
pub(super) fn tree(live: &Live) -> String {
    if live.processes.is_empty() {
        return "no process: the box is alive, and nothing runs in it\n".to_owned();
    }
    let known = |pid: u32| live.processes.iter().any(|process| process.pid == pid);
    let mut text = String::new();
    let mut waiting: Vec<(&LiveProcess, usize)> =
        live.processes.iter().filter(|p| !known(p.parent)).rev().map(|p| (p, 0)).collect();
    let mut left = live.processes.len();
    while let Some((process, depth)) = waiting.pop() {
        // A tree that changed while it was read might be none.
        if left == 0 {
            break;
        }
        left -= 1;
        let words: Vec<String> =
            process.command.iter().map(|word| Shown::bytes(&word.0).to_string()).collect();
        let what = match words.join(" ") {
            none if none.is_empty() => format!("[{}]", Shown::bytes(&process.name.0)),
            words if words.chars().count() > 100 => {
                format!("{}…", words.chars().take(99).collect::<String>())
            }
            words => words,
        };
        let run = process.run.map_or_else(String::new, |run| format!("run {run}"));
        // Writing to a String can't fail.
        writeln!(
            text,
            "{:>7} {:<7} {} {:>9} {:>7} ms  {}{what}",
            process.pid,
            run,
            process.state,
            Bytes::new(process.rss_bytes & !0xfff).to_string(),
            process.cpu_ms,
            "  ".repeat(depth.min(20)),
        )
        .ok();
        let below = live.processes.iter().filter(|other| other.parent == process.pid).rev();
        waiting.extend(below.map(|other| (other, depth + 1)));
    }
    text
}

/// Why the box is frozen and what lets it go on, where no person did it.
pub(super) fn frozen(live: &Live, name: &str) -> Option<String> {
    live.frozen_by.as_ref().map(|why| format!("by {why}; h5i box thaw {name}"))
}

/// What was refused last, a line each, the latest first.
pub(super) fn refused(live: &Live) -> Vec<String> {
    let line = |refusal: &crate::session::LiveRefusal| {
        // What it names is shown as it was noted: once more would double its backslashes.
        format!("{} ago: {}", rough(since(refusal.at_ms)), Escaped(&refusal.what))
    };
    live.refused.iter().rev().map(line).collect()
}

/// The same for programs.
pub(super) fn data(live: &Live, limits: &Limits) -> Value {
    json!({
        "since": Timestamp::from_millis(live.since_ms),
        "started": live.started,
        "frozen": live.frozen,
        "frozen_by": live.frozen_by,
        "cpu_ms": live.cpu_ms,
        "memory_bytes": memory(live),
        "disk_bytes": live.disk_bytes,
        "budgets": budget_use::data(live, limits),
        "refused": live.refused.iter().map(|refusal| json!({
            "at": Timestamp::from_millis(refusal.at_ms),
            "what": refusal.what,
        })).collect::<Vec<_>>(),
        "runs": live.runs.iter().map(|run| json!({
            "run": run.run,
            "command": run.command,
            "since": Timestamp::from_millis(run.since_ms),
        })).collect::<Vec<_>>(),
        "processes": live.processes,
        "forwards": live.forwards.iter().map(|(port, at)| json!({ "port": port, "at": at }))
            .collect::<Vec<_>>(),
    })
}

/// Memory by the budget, bytes; without one what is resident of all processes, where pages that they
/// share count for each.
pub(super) fn memory(live: &Live) -> u64 {
    let resident = || live.processes.iter().map(|process| process.rss_bytes).sum();
    live.memory_bytes.unwrap_or_else(resident)
}

fn since(moment_ms: u64) -> u64 {
    Timestamp::now().millis().saturating_sub(moment_ms)
}
