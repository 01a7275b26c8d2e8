//! What needs a person's eyes, most urgent first.

use std::collections::BTreeMap;

use super::phrase::Phrase;
use super::runs::runs;
use super::text::count;
use super::{ReportInput, canaries, claims, flows, grants};
use crate::record::{Event, Record};
use crate::review::{Change, ChangeKind, FlagKind, attention_of};

/// How many findings of one kind are named; the rest is counted.
const EACH: usize = 100;

/// Findings that have one reason.
struct Kind {
    lines: Vec<Phrase>,
    /// What more of it is called, in words that follow a number.
    more: String,
}

/// What needs a person's eyes.
pub(super) struct Findings {
    kinds: Vec<Kind>,
}

impl Findings {
    /// How many there are.
    pub(super) fn number(&self) -> usize {
        self.kinds.iter().map(|kind| kind.lines.len()).sum()
    }

    /// One line each, in order of urgency, each with the reason why it is there; not many more than
    /// `most`. No kind crowds out another: the first of every kind is named, and of a kind that has
    /// many the rest is counted in one line.
    pub(super) fn lines(self, most: usize) -> Vec<Phrase> {
        let shown = |kind: &Kind, each: usize| kind.lines.len().min(each + 1);
        let fits =
            |each: &usize| self.kinds.iter().map(|kind| shown(kind, *each)).sum::<usize>() <= most;
        let each = (1..=EACH).rev().find(fits).unwrap_or(1);
        let mut lines = Vec::new();
        for mut kind in self.kinds {
            // A line that counts takes no less room than the last one that it stands for.
            let rest = kind.lines.len().saturating_sub(each);
            if rest > 1 {
                kind.lines.truncate(each);
                kind.lines.push(Phrase::new().words(format!("And {rest} {}.", kind.more)));
            }
            lines.append(&mut kind.lines);
        }
        lines
    }

    /// Adds findings that are one kind.
    fn add(&mut self, more: &str, lines: Vec<Phrase>) {
        self.kinds.push(Kind { lines, more: more.to_owned() });
    }

    /// Adds findings kind by kind, in the order in which the kinds come up.
    fn add_by<K: Ord>(
        &mut self,
        more: impl Fn(&K) -> String,
        found: impl IntoIterator<Item = (K, Phrase)>,
    ) {
        let mut places = BTreeMap::new();
        for (key, line) in found {
            let place = *places.entry(key).or_insert_with_key(|key| {
                self.add(&more(key), Vec::new());
                self.kinds.len() - 1
            });
            if let Some(kind) = self.kinds.get_mut(place) {
                kind.lines.push(line);
            }
        }
    }
}

/// All that needs a person's eyes.
pub(super) fn findings(input: &ReportInput<'_>) -> Findings {
    let mut all = Findings { kinds: Vec::new() };
    all.add("planted credentials were opened", canaries::read(input.records));
    all.add_by(
        |call| format!("programs were refused {call}"),
        refused_calls(input.records, |_| true),
    );
    all.add("destinations or names were refused", flows::refused(input.records));
    all.add("requests by grants were refused", grants::refused(input.records));
    all.add("uses of grants by other programs", grants::shared(input.records));
    all.add("runs were stopped or cut off", stops(input.records));
    all.add("differences between what was seen and what was said", claims::gaps(input.records));
    all.add("claims were refused", claims::refused(input.records));
    all.add("planted credentials were lost", canaries::lost(input.records));
    let flags = || input.reviewed.flags.iter();
    all.add_by(
        |shape| format!("places hold what looks like a {shape}"),
        flags().filter_map(|flag| match flag.kind {
            FlagKind::Secret { shape, line } => {
                let about = Phrase::new().strong(&flag.path[..]);
                let what = format!(", line {line}, holds what looks like a {shape}.");
                Some((shape, about.words(what)))
            }
            _ => None,
        }),
    );
    let attention = |change: &Change| {
        let found =
            attention_of(&change.path).or_else(|| attention_of(change.old_path.as_deref()?))?;
        let why = format!(" {}: {}.", verb(change.kind), found.why);
        (change.kind != ChangeKind::Deleted)
            .then(|| (found, Phrase::new().strong(&change.path[..]).words(why)))
    };
    let mut running: Vec<_> = input.reviewed.changes.iter().filter_map(attention).collect();
    running.sort_by_key(|(found, _)| found.when);
    all.add_by(|found| format!("files changed: {}", found.why), running);
    all.add_by(
        |what| format!("files are {what}, which the policy lets pass"),
        flags().filter_map(|flag| match flag.kind {
            FlagKind::MachineCode(what) => {
                let about = Phrase::new().strong(&flag.path[..]);
                let line = about.words(format!(" is {}, which the policy lets pass.", what.name()));
                Some((what.name(), line))
            }
            _ => None,
        }),
    );
    let executable = flags().filter(|flag| matches!(flag.kind, FlagKind::Executable));
    all.add(
        "files became executable",
        executable
            .map(|flag| Phrase::new().strong(&flag.path[..]).words(" became executable."))
            .collect(),
    );
    all.add_by(
        |why| format!("files stand in the box's home: {why}"),
        input.home.iter().map(|found| {
            let path = [&b"~/"[..], &found.path].concat();
            let why = format!(" stands in the box's home: {}.", found.why);
            (found.why, Phrase::new().strong(path).words(why))
        }),
    );
    all
}

/// What happened to a file, in words.
pub(super) const fn verb(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "is new",
        ChangeKind::Modified => "changed",
        ChangeKind::Mode => "changed its mode",
        ChangeKind::Type => "changed its type",
        ChangeKind::Renamed => "was renamed",
        ChangeKind::Deleted => "was deleted",
    }
}

/// Refused calls of the chosen names, equal ones together.
pub(super) fn refused(records: &[Record], chosen: fn(&str) -> bool) -> Vec<Phrase> {
    refused_calls(records, chosen).into_iter().map(|(_, line)| line).collect()
}

/// The same with the call's name.
fn refused_calls(records: &[Record], chosen: fn(&str) -> bool) -> Vec<(&str, Phrase)> {
    let mut calls: BTreeMap<(&str, &[u8], &str), u64> = BTreeMap::new();
    for record in records {
        if let Event::RefusedCall { call, program, errno, count, .. } = &record.event
            && chosen(call)
        {
            *calls.entry((call, program.as_bytes(), errno)).or_default() += count;
        }
    }
    calls
        .into_iter()
        .map(|((call, program, errno), times)| {
            let line = Phrase::new()
                .words("Refused: ")
                .code(call.as_bytes())
                .words(" by ")
                .code(program)
                .words(format!(", {} (", count(times, "time", "times")))
                .foreign(errno)
                .words(").");
            (call, line)
        })
        .collect()
}

/// Runs that were stopped or cut off: what they left may be half done.
fn stops(records: &[Record]) -> Vec<Phrase> {
    runs(records)
        .iter()
        .filter(|run| !run.is_complete())
        .map(|run| {
            Phrase::new()
                .words(format!("Run {}: ", run.number))
                .join(run.ending())
                .words(". What it left may be half done.")
        })
        .collect()
}
