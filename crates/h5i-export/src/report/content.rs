//! What a report says, in the order of its urgency, whatever it is written as.

use super::findings::{findings, verb};
use super::phrase::Phrase;
use super::runs::Completeness;
use super::tally::{Lines, MAX_LISTED};
use super::text::{count, size};
use super::{MechanismState, ReportInput};
use crate::review::{Change, ChangeKind, Renames, attention_of};

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
    pub(super) more: u64,
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
    let completeness = input.history.completeness();
    let mut sections = Vec::new();
    let first = found.lines(MAX_LISTED);
    if !first.is_empty() {
        let (title, order) = ("Look here first", Order::Numbered);
        sections.push(Section { title, order, items: first, more: 0 });
    }
    let mut list = |title, found: Lines| {
        let Lines { lines: mut items, mut more } = found;
        more += items.len().saturating_sub(MAX_LISTED) as u64;
        items.truncate(MAX_LISTED);
        if !items.is_empty() {
            sections.push(Section { title, order: Order::Plain, items, more });
        }
    };
    let history = input.history;
    let changes = || input.reviewed.changes.iter();
    list("Credentials used", history.grants.used());
    list("Network", network(input));
    let large =
        |change: &&Change| change.bytes >= LARGE || change.added.is_none() && change.bytes > 0;
    let sized = changes().filter(large).map(|change| {
        let kind = if change.added.is_none() { "binary" } else { "text" };
        Phrase::new().code(&change.path[..]).words(format!(": {}, {kind}", size(change.bytes)))
    });
    list("Large and binary files", sized.collect());
    let deleted = |change: &&Change| change.kind == ChangeKind::Deleted;
    let named = |change: &Change| Phrase::new().code(&change.path[..]);
    list("Deleted files", changes().filter(deleted).map(named).collect());
    let tests = |change: &&Change| is_test(&change.path);
    list("Tests changed", changes().filter(tests).map(change_line).collect());
    let rest = |change: &&Change| !is_test(&change.path);
    list("Files", changes().filter(rest).map(change_line).collect());
    let left = input.reviewed.left.iter().map(|(path, left)| {
        let files = count(left.files(), "file", "files");
        Phrase::new().code(&path[..]).words(format!(": {files} ({})", left.why()))
    });
    list("Left in the box", left.collect());
    list("What the box said", history.claims.said());
    list("What ran", history.runs.lines());
    list("What held", held(input).collect());
    list("Not enforced", missing(input).collect());
    Content { title, facts, completeness, sections }
}

fn head(input: &ReportInput<'_>, findings: u64) -> (Phrase, Vec<Phrase>) {
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
    let runs = &input.history.runs;
    let mut first = Phrase::new()
        .words(format!("Base {} (", base.get(..12).unwrap_or(&base)))
        .foreign(input.base_name)
        .words(format!(") · {} · ", input.tier))
        .foreign(input.profile)
        .words(format!(" · {}", count(runs.number(), "run", "runs")));
    if let Some(ending) = runs.last_ending() {
        first = first.words(", the last one: ").join(ending);
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
fn network(input: &ReportInput<'_>) -> Lines {
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
    let history = input.history;
    let reach = Phrase::new().words("The box could reach ").foreign(input.network).words(".");
    let mut lines = Lines::from_iter([reach]);
    lines.append(history.network.changes());
    lines.append(history.network.refused());
    let calls = history.calls.lines().filter(|(call, _)| is_network(call));
    calls.for_each(|(_, refused)| lines.append(refused));
    lines.append(history.network.carried());
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
