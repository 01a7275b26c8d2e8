//! The programs of each run as a tree, from the records of the kernel's lane.

use std::collections::{BTreeMap, BTreeSet};

use super::phrase::Phrase;
use super::text::{count, span};
use crate::record::{ByteText, Event, Record};

/// Processes of one run that are listed; the rest is counted.
const LISTED: usize = 40;
/// Arguments of a process that are shown; all are in the record.
const ARGUMENTS: usize = 8;
/// Depth that is shown by marks.
const DEEPEST: usize = 12;

/// One process that became a program, or may have.
#[derive(Debug)]
struct Process<'a> {
    parent: u64,
    path: &'a ByteText,
    argv: &'a [ByteText],
    /// The kernel showed it as that program; else it ended before it was seen.
    exe: Option<&'a ByteText>,
    end: Option<&'a Event>,
    /// It and all below it.
    size: usize,
}

impl Process<'_> {
    fn failed(&self) -> bool {
        match self.end {
            Some(Event::ProcessEnd { exit_code, signal, .. }) => {
                exit_code.is_some_and(|code| code != 0) || signal.is_some()
            }
            _ => false,
        }
    }

    fn line(&self, depth: usize) -> Phrase {
        let mut line = Phrase::new().words("› ".repeat(depth.min(DEEPEST)));
        line = line.code(self.path.as_bytes());
        for argument in self.argv.iter().skip(1).take(ARGUMENTS) {
            line = line.words(" ").code(argument.as_bytes());
        }
        if self.argv.len() > ARGUMENTS + 1 {
            let more = (self.argv.len() - ARGUMENTS - 1) as u64;
            line = line.words(format!(" and {}", count(more, "argument", "arguments")));
        }
        match self.exe {
            Some(exe) if is_other(self.path.as_bytes(), exe.as_bytes()) => {
                line = line.words(" as ").code(exe.as_bytes());
            }
            Some(_) => {}
            None => line = line.words(", not seen running"),
        }
        line.words(match self.end {
            Some(Event::ProcessEnd { exit_code: Some(code), wall_ms, .. }) => {
                format!(": exit {code} after {}", span(*wall_ms))
            }
            Some(Event::ProcessEnd { signal: Some(signal), wall_ms, .. }) => {
                format!(": ended by signal {signal} after {}", span(*wall_ms))
            }
            Some(_) => ": its end was not told".to_owned(),
            None => ": has not ended".to_owned(),
        })
    }
}

/// Whether a program is worth naming beside the path that was asked for: links within the system
/// (`/bin`) and the file's own name say nothing more.
fn is_other(path: &[u8], exe: &[u8]) -> bool {
    let name = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    name(path) != name(exe)
}

/// The processes of a run: those that failed and those with most below them first chosen, then told
/// in the order of their start.
pub(super) fn programs(records: &[Record], run: u64) -> Vec<Phrase> {
    let all = processes(records, run);
    let chosen = choose(&all);
    let mut lines = Vec::new();
    let below = |parent: u64| -> Vec<u64> {
        let of = |(_, process): &(&u64, &Process<'_>)| process.parent == parent;
        all.iter().filter(of).map(|(proc, _)| *proc).filter(|proc| chosen.contains(proc)).collect()
    };
    let roots = all.iter().filter(|(_, process)| !all.contains_key(&process.parent));
    let mut waiting: Vec<(u64, usize)> =
        roots.map(|(proc, _)| (*proc, 1)).filter(|(proc, _)| chosen.contains(proc)).collect();
    waiting.reverse();
    while let Some((proc, depth)) = waiting.pop() {
        let Some(process) = all.get(&proc) else { continue };
        lines.push(process.line(depth));
        waiting.extend(below(proc).into_iter().rev().map(|child| (child, depth + 1)));
    }
    let left = all.len() - chosen.len();
    if left > 0 {
        let more = count(left as u64, "program", "programs");
        lines.push(Phrase::new().words(format!("› and {more} more, in the receipt")));
    }
    lines
}

/// Every process that became a program, or may have, by its number.
fn processes(records: &[Record], run: u64) -> BTreeMap<u64, Process<'_>> {
    let mut all: BTreeMap<u64, Process<'_>> = BTreeMap::new();
    let mut asked: BTreeMap<u64, (u64, &ByteText, &[ByteText])> = BTreeMap::new();
    for record in records.iter().filter(|record| record.run == Some(run)) {
        match &record.event {
            Event::ExecAttempt { proc, parent, path, argv, .. } => {
                asked.insert(*proc, (*parent, path, argv));
            }
            Event::Exec { proc, exe, .. } => {
                if let Some((parent, path, argv)) = asked.get(proc).copied() {
                    let exe = Some(exe);
                    all.insert(*proc, Process { parent, path, argv, exe, end: None, size: 1 });
                }
            }
            end @ Event::ProcessEnd { proc, unseen, .. } => {
                if let (true, Some((parent, path, argv))) = (*unseen, asked.get(proc).copied()) {
                    let process = Process { parent, path, argv, exe: None, end: None, size: 1 };
                    all.entry(*proc).or_insert(process);
                }
                if let Some(process) = all.get_mut(proc) {
                    process.end = Some(end);
                }
            }
            _ => {}
        }
    }
    // A child has a higher number than its parent, so every size is whole when it is added.
    let order: Vec<(u64, u64)> = all.iter().map(|(proc, p)| (*proc, p.parent)).rev().collect();
    for (proc, parent) in order {
        let size = all.get(&proc).map_or(0, |process| process.size);
        if let Some(above) = all.get_mut(&parent).filter(|_| parent < proc) {
            above.size += size;
        }
    }
    all
}

/// Those that are listed, each with all above it.
fn choose(all: &BTreeMap<u64, Process<'_>>) -> BTreeSet<u64> {
    let mut order: Vec<(&u64, &Process<'_>)> = all.iter().collect();
    order.sort_by_key(|(proc, process)| {
        (!process.failed(), std::cmp::Reverse(process.size), **proc)
    });
    let mut chosen = BTreeSet::new();
    for (proc, _) in order {
        let mut line = Vec::new();
        let mut at = Some(*proc);
        while let Some(proc) = at.filter(|proc| !chosen.contains(proc)) {
            line.push(proc);
            at = all
                .get(&proc)
                .map(|process| process.parent)
                .filter(|parent| *parent < proc && all.contains_key(parent));
        }
        if chosen.len() + line.len() <= LISTED {
            chosen.extend(line);
        }
    }
    chosen
}
