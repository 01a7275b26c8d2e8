//! report.md.

use super::findings::{findings, verb};
use super::runs::{End, Run, runs};
use super::text::{code, count, plain, size, span};
use super::{MechanismState, ReportInput};
use crate::record::Event;
use crate::review::{Change, ChangeKind, attention_of};

/// The most lines of one list; the rest is counted.
const MAX_LISTED: usize = 500;
/// From this size on a file is named as large, in bytes.
const LARGE: u64 = 512 << 10;

pub(super) fn write(input: &ReportInput<'_>) -> String {
    let mut page = Page::default();
    head(&mut page, input);
    let (tests, rest): (Vec<&Change>, Vec<&Change>) =
        input.reviewed.changes.iter().partition(|change| is_test(&change.path));
    let large =
        |change: &&Change| change.bytes >= LARGE || change.added.is_none() && change.bytes > 0;
    page.list(
        "Large and binary files",
        input.reviewed.changes.iter().filter(large).map(|change| {
            let kind = if change.added.is_none() { "binary" } else { "text" };
            format!("{}: {}, {kind}", code(&change.path), size(change.bytes))
        }),
    );
    let deleted = input.reviewed.changes.iter().filter(|change| change.kind == ChangeKind::Deleted);
    page.list("Deleted files", deleted.map(|change| code(&change.path)));
    page.list("Tests changed", tests.into_iter().map(change_line));
    page.list("Files", rest.into_iter().map(change_line));
    page.list(
        "Left in the box",
        input.reviewed.left.iter().map(|(path, left)| {
            format!("{}: {} ({})", code(path), count(left.files(), "file", "files"), left.why())
        }),
    );
    let runs = runs(input.records);
    page.list("What ran", runs.iter().map(run_line));
    page.list(
        "What held",
        input
            .enforcement
            .iter()
            .filter(|mechanism| mechanism.state == MechanismState::On)
            .map(|mechanism| format!("{}: {}", plain(&mechanism.name), plain(&mechanism.detail))),
    );
    let missing = input.enforcement.iter().filter_map(|mechanism| {
        let why = match mechanism.state {
            MechanismState::On => return None,
            MechanismState::OffByChoice => "off by choice",
            MechanismState::Absent => "not on this host",
        };
        Some(format!("{} ({why}): {}", plain(&mechanism.name), plain(&mechanism.detail)))
    });
    page.list(
        "Not enforced",
        missing.chain(input.not_enforced.iter().map(|sentence| plain(sentence))),
    );
    page.text
}

fn head(page: &mut Page, input: &ReportInput<'_>) {
    let findings = findings(input);
    let files = input.reviewed.changes.len() as u64;
    let eyes = match findings.len() as u64 {
        0 => "nothing stands out".to_owned(),
        1 => "1 thing needs your eyes".to_owned(),
        many => format!("{many} things need your eyes"),
    };
    page.line(&format!(
        "# Box {}: {} changed, {eyes}",
        plain(input.name),
        count(files, "file", "files")
    ));
    let base = match input.reviewed.base.commit {
        Some(commit) => commit.to_string(),
        None => format!("tree {}", input.reviewed.base.tree),
    };
    let runs = runs(input.records);
    let ended =
        runs.last().map_or_else(String::new, |run| format!(", the last one: {}", run.ending()));
    page.line(&format!(
        "Base {} ({}) · {} · {} · {}{ended}",
        base.get(..12).unwrap_or(&base),
        plain(input.base_name),
        input.tier,
        plain(input.profile),
        count(runs.len() as u64, "run", "runs"),
    ));
    page.line(&format!(
        "Policy {} · the patch gives tree {}",
        plain(input.policy),
        input.reviewed.tree
    ));
    if runs.iter().any(|run| !run.is_complete()) {
        page.line("**Incomplete:** a run was stopped or cut off, or has not ended.");
    }
    page.numbered("Look here first", findings);
}

fn change_line(change: &Change) -> String {
    let mut line = format!("{} {}", code(&change.path), verb(change.kind));
    if let Some(old) = &change.old_path {
        line += &format!(" from {}", code(old));
    }
    match (change.added, change.removed) {
        (Some(added), Some(removed)) => line += &format!(" (+{added} −{removed})"),
        _ if change.kind != ChangeKind::Deleted => line += &format!(" ({})", size(change.bytes)),
        _ => {}
    }
    if change.old_mode != change.new_mode && change.old_mode != 0 && change.new_mode != 0 {
        line += &format!(", mode {:o} → {:o}", change.old_mode, change.new_mode);
    }
    line
}

fn run_line(run: &Run<'_>) -> String {
    let mut line = format!("{}. {}:", run.number, run.started);
    for argument in run.argv {
        line += " ";
        line += &code(argument.as_bytes());
    }
    if run.argv_cut > 0 {
        line += &format!(" and {} cut", count(run.argv_cut.into(), "argument", "arguments"));
    }
    line += &format!(": {}", run.ending());
    if let End::Ended(Event::RunEnd { wall_ms, cpu_ms, max_rss_bytes, .. }) = run.end {
        line += &format!(
            " after {}, {} of processor time, {} at most",
            span(*wall_ms),
            span(*cpu_ms),
            size(*max_rss_bytes)
        );
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

/// Text that grows by paragraphs and lists.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push_str("\n\n");
    }

    fn list(&mut self, title: &str, items: impl Iterator<Item = String>) {
        self.items(title, items.map(|item| format!("- {item}")));
    }

    fn numbered(&mut self, title: &str, items: Vec<String>) {
        self.items(
            title,
            items.into_iter().enumerate().map(|(at, item)| format!("{}. {item}", at + 1)),
        );
    }

    /// Nothing at all when there is no item.
    fn items(&mut self, title: &str, items: impl Iterator<Item = String>) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        self.line(&format!("## {title}"));
        for item in items.by_ref().take(MAX_LISTED) {
            self.text.push_str(&item);
            self.text.push('\n');
        }
        let more = items.count();
        if more > 0 {
            self.text.push_str(&format!(
                "- and {more} more
"
            ));
        }
        self.text.push('\n');
    }
}
