//! What is told of a box that is alive.

use std::fmt::Write as _;

use h5i_policy::Bytes;
use serde_json::{Value, json};

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

/// `alive 14 min · 3 runs · 21 processes · 312 MiB · 41 s CPU`
pub(super) fn words(live: &Live) -> String {
    let counted =
        |n: usize, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
    let state = if live.frozen { "frozen, alive" } else { "alive" };
    let mut parts = vec![
        format!("{state} {}", rough(since(live.since_ms))),
        counted(live.runs.len(), "run", "runs"),
        counted(live.processes.len(), "process", "processes"),
        memory(live).to_string(),
        format!("{} CPU", rough(live.cpu_ms)),
    ];
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
            words => words.chars().take(100).collect(),
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

/// The same for programs.
pub(super) fn data(live: &Live) -> Value {
    json!({
        "since": Timestamp::from_millis(live.since_ms),
        "started": live.started,
        "frozen": live.frozen,
        "cpu_ms": live.cpu_ms,
        "rss_bytes": memory(live).count(),
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

/// Resident memory of all processes; pages that they share count for each.
fn memory(live: &Live) -> Bytes {
    const MIB: u64 = 1024 * 1024;
    let sum: u64 = live.processes.iter().map(|process| process.rss_bytes).sum();
    Bytes::new(sum.div_ceil(MIB) * MIB)
}

fn since(moment_ms: u64) -> u64 {
    Timestamp::now().millis().saturating_sub(moment_ms)
}
