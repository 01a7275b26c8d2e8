//! What a report says, in the order of its urgency, whatever it is written as.

use super::findings::{findings, refused, verb};
use super::phrase::Phrase;
use super::programs::programs;
use super::runs::{Completeness, End, Run, runs};
use super::text::{count, size, span};
use super::{MechanismState, ReportInput, claims, flows, grants};
use crate::record::Event;
use crate::review::{Change, ChangeKind, Renames, attention_of};

/// The most lines of one list; the rest is counted.
const MAX_LISTED: usize = 500;
/// From this size on a file is named as large, in bytes.
const LARGE: u64 = 512 << 10;

/// A report.
pub(super) struct Content {
    /// `Box fix-auth: 7 files changed, 2 things need your eyes`
    pub(super) title: Phrase,
    /// A line each.
    pub(super) facts: Vec<Phrase>,
    /// Whether a run was stopped or cut off.
    pub(super) completeness: Completeness,
    /// None of them empty.
    pub(super) sections: Vec<Section>,
}

/// A list under a title.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) order: Order,
    pub(super) items: Vec<Phrase>,
    /// How many items were left out.
    pub(super) more: usize,
}

/// Whether the items of a list have numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Numbered,
    Plain,
}

pub(super) fn content(input: &ReportInput<'_>) -> Content {
    let found = findings(input);
    let (title, facts) = head(input, found.number());
    let completeness = Completeness::of(input.records);
    let mut sections = Vec::new();
    let first = found.lines(MAX_LISTED);
    if !first.is_empty() {
        let (title, order) = ("Look here first", Order::Numbered);
        sections.push(Section { title, order, items: first, more: 0 });
    }
    let mut list = |title, order, items: &mut dyn Iterator<Item = Phrase>| {
        let kept: Vec<Phrase> = items.take(MAX_LISTED).collect();
        let more = items.count();
        if !kept.is_empty() {
            sections.push(Section { title, order, items: kept, more });
        }
    };
    let changes = || input.reviewed.changes.iter();
    list("Credentials used", Order::Plain, &mut grants::used(input.records).into_iter());
    list("Network", Order::Plain, &mut network(input).into_iter());
    let large =
        |change: &&Change| change.bytes >= LARGE || change.added.is_none() && change.bytes > 0;
    list(
        "Large and binary files",
        Order::Plain,
        &mut changes().filter(large).map(|change| {
            let kind = if change.added.is_none() { "binary" } else { "text" };
            Phrase::new().code(&change.path[..]).words(format!(": {}, {kind}", size(change.bytes)))
        }),
    );
    let deleted = |change: &&Change| change.kind == ChangeKind::Deleted;
    let named = |change: &Change| Phrase::new().code(&change.path[..]);
    list("Deleted files", Order::Plain, &mut changes().filter(deleted).map(named));
    let tests = |change: &&Change| is_test(&change.path);
    list("Tests changed", Order::Plain, &mut changes().filter(tests).map(change_line));
    let rest = |change: &&Change| !is_test(&change.path);
    list("Files", Order::Plain, &mut changes().filter(rest).map(change_line));
    list(
        "Left in the box",
        Order::Plain,
        &mut input.reviewed.left.iter().map(|(path, left)| {
            let files = count(left.files(), "file", "files");
            Phrase::new().code(&path[..]).words(format!(": {files} ({})", left.why()))
        }),
    );
    let runs = runs(input.records);
    list("What the box said", Order::Plain, &mut claims::said(input.records).into_iter());
    let lines = runs.iter().flat_map(|run| {
        let told = programs(input.records, run.number);
        let kept = claims::kept(input.records, run.number);
        std::iter::once(run_line(run)).chain(told).chain(kept)
    });
    list("What ran", Order::Plain, &mut lines.into_iter());
    list("What held", Order::Plain, &mut held(input));
    list("Not enforced", Order::Plain, &mut missing(input));
    Content { title, facts, completeness, sections }
}

fn head(input: &ReportInput<'_>, findings: usize) -> (Phrase, Vec<Phrase>) {
    let files = input.reviewed.changes.len() as u64;
    let eyes = match findings {
        0 => "nothing stands out".to_owned(),
        1 => "1 thing needs your eyes".to_owned(),
        many => format!("{many} things need your eyes"),
    };
    let title = Phrase::new()
        .words("Box ")
        .foreign(input.name)
        .words(format!(": {} changed, {eyes}", count(files, "file", "files")));
    let base = match input.reviewed.base.commit {
        Some(commit) => commit.to_string(),
        None => format!("tree {}", input.reviewed.base.tree),
    };
    let runs = runs(input.records);
    let mut first = Phrase::new()
        .words(format!("Base {} (", base.get(..12).unwrap_or(&base)))
        .foreign(input.base_name)
        .words(format!(") · {} · ", input.tier))
        .foreign(input.profile)
        .words(format!(" · {}", count(runs.len() as u64, "run", "runs")));
    if let Some(last) = runs.last() {
        first = first.words(", the last one: ").join(last.ending());
    }
    let second = Phrase::new()
        .words("Policy ")
        .foreign(input.policy)
        .words(format!(" · the patch gives tree {}", input.reviewed.tree));
    let purpose = input.purpose.map(|purpose| Phrase::new().words("For: ").foreign(purpose));
    let renames = (input.reviewed.renames == Renames::Unchanged).then(|| {
        Phrase::new().words(
            "Renamed files were looked for only where their content stayed: there are too many, or \
             too large ones, to compare. The others are deleted and added.",
        )
    });
    (title, purpose.into_iter().chain([first, second]).chain(renames).collect())
}

/// What the box could reach, what it was refused, and where it went.
fn network(input: &ReportInput<'_>) -> Vec<Phrase> {
    let is_network = |call: &str| {
        matches!(
            call,
            "socket"
                | "socketpair"
                | "connect"
                | "bind"
                | "listen"
                | "sendto"
                | "sendmsg"
                | "sendmmsg"
        )
    };
    let mut lines =
        vec![Phrase::new().words("The box could reach ").foreign(input.network).words(".")];
    lines.extend(flows::changes(input.records));
    lines.extend(flows::refused(input.records));
    lines.extend(refused(input.records, is_network));
    lines.extend(flows::carried(input.records));
    lines
}

fn held(input: &ReportInput<'_>) -> impl Iterator<Item = Phrase> {
    let on = input.enforcement.iter().filter(|mechanism| mechanism.state == MechanismState::On);
    on.map(|mechanism| {
        Phrase::new().foreign(&mechanism.name).words(": ").foreign(&mechanism.detail)
    })
}

fn missing(input: &ReportInput<'_>) -> impl Iterator<Item = Phrase> {
    let absent = input.enforcement.iter().filter_map(|mechanism| {
        let why = match mechanism.state {
            MechanismState::On => return None,
            MechanismState::OffByChoice => "off by choice",
            MechanismState::Absent => "not on this host",
        };
        Some(
            Phrase::new()
                .foreign(&mechanism.name)
                .words(format!(" ({why}): "))
                .foreign(&mechanism.detail),
        )
    });
    absent.chain(input.not_enforced.iter().map(|sentence| Phrase::new().foreign(sentence)))
}

fn change_line(change: &Change) -> Phrase {
    let mut line = Phrase::new().code(&change.path[..]).words(format!(" {}", verb(change.kind)));
    if let Some(old) = &change.old_path {
        line = line.words(" from ").code(&old[..]);
    }
    match (change.added, change.removed) {
        (Some(added), Some(removed)) => line = line.words(format!(" (+{added} −{removed})")),
        _ if change.kind != ChangeKind::Deleted => {
            line = line.words(format!(" ({})", size(change.bytes)));
        }
        _ => {}
    }
    if change.old_mode != change.new_mode && change.old_mode != 0 && change.new_mode != 0 {
        line = line.words(format!(", mode {:o} → {:o}", change.old_mode, change.new_mode));
    }
    line
}

fn run_line(run: &Run<'_>) -> Phrase {
    let mut line = Phrase::new().words(format!("{}. {}:", run.number, run.started));
    for argument in run.argv {
        line = line.words(" ").code(argument.as_bytes());
    }
    if run.argv_cut > 0 {
        let cut = count(run.argv_cut.into(), "argument", "arguments");
        line = line.words(format!(" and {cut} cut"));
    }
    line = line.words(": ").join(run.ending());
    if let End::Ended(Event::RunEnd { wall_ms, cpu_ms, max_rss_bytes, .. }) = run.end {
        line = line.words(format!(
            " after {}, {} of processor time, {} at most",
            span(*wall_ms),
            span(*cpu_ms),
            size(*max_rss_bytes)
        ));
    }
    line
}

/// Whether a path is a test by the habits of common languages; files that execute are told of
/// elsewhere.
fn is_test(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path).to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let stem = name.split('.').next().unwrap_or(name);
    attention_of(path.as_bytes()).is_none()
        && (path
            .split('/')
            .rev()
            .skip(1)
            .any(|part| matches!(part, "test" | "tests" | "__tests__" | "spec"))
            || stem.starts_with("test_")
            || stem.ends_with("_test")
            || stem == "tests"
            || name.contains(".test.")
            || name.contains(".spec."))
}
