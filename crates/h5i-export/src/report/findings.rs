//! What needs a person's eyes, most urgent first.

use std::collections::BTreeMap;

use super::ReportInput;
use super::phrase::Phrase;
use super::tally::Lines;
use crate::review::{Change, ChangeKind, FlagKind, attention_of};

/// How many findings of one kind are named; the rest is counted.
const EACH: usize = 100;

/// Findings that have one reason.
struct Kind {
    found: Lines,
    /// What more of it is called, in words that follow a number.
    more: String,
}

/// What needs a person's eyes.
pub(super) struct Findings {
    kinds: Vec<Kind>,
}

impl Findings {
    /// How many there are.
    pub(super) fn number(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.found.number()).sum()
    }

    /// One line each, in order of urgency, each with the reason why it is there; not many more than
    /// `most`. No kind crowds out another: the first of every kind is named, and of a kind that has
    /// many the rest is counted in one line.
    pub(super) fn lines(self, most: usize) -> Vec<Phrase> {
        let shown = |kind: &Kind, each: usize| kind.found.lines.len().min(each + 1);
        let fits =
            |each: &usize| self.kinds.iter().map(|kind| shown(kind, *each)).sum::<usize>() <= most;
        let each = (1..=EACH).rev().find(fits).unwrap_or(1);
        let mut lines = Vec::new();
        for mut kind in self.kinds {
            // A line that counts takes no less room than the last one that it stands for.
            let rest = kind.found.number().saturating_sub(each as u64);
            if rest > 1 {
                kind.found.lines.truncate(each);
                kind.found.lines.push(Phrase::new().words(format!("And {rest} {}.", kind.more)));
            }
            lines.append(&mut kind.found.lines);
        }
        lines
    }

    /// Adds findings that are one kind.
    fn add(&mut self, more: &str, found: Lines) {
        self.kinds.push(Kind { found, more: more.to_owned() });
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
                self.add(&more(key), Lines::default());
                self.kinds.len() - 1
            });
            if let Some(kind) = self.kinds.get_mut(place) {
                kind.found.lines.push(line);
            }
        }
    }
}

/// All that needs a person's eyes.
pub(super) fn findings(input: &ReportInput<'_>) -> Findings {
    let mut all = Findings { kinds: Vec::new() };
    let history = input.history;
    all.add("planted credentials were opened", history.canaries.read());
    for (call, refused) in history.calls.lines() {
        all.add(&format!("programs were refused {call}"), refused);
    }
    all.add("other calls were refused", history.calls.others());
    all.add("destinations or names were refused", history.network.refused());
    all.add("requests by grants were refused", history.grants.refused());
    all.add("uses of grants by other programs", history.grants.shared());
    all.add("runs were stopped or cut off", history.runs.stops());
    all.add("differences between what was seen and what was said", history.claims.gaps());
    all.add("claims were refused", history.claims.refused());
    all.add("planted credentials were lost", history.canaries.lost());
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
