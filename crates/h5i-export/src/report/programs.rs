//! The programs of each run as a tree, from the records of the kernel's lane.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::phrase::Phrase;
use super::tally::{Kept, Lines};
use super::text::{count, span};
use crate::record::{ByteText, Event};

/// Processes of one run that are listed; the rest is counted.
const LISTED: usize = 40;
/// Processes of one run that are kept apart while it goes on, beside those that live.
const KEPT: usize = 512;
/// With so many processes those that a list would not choose are let go.
const MANY: usize = 4096;
/// Arguments of a process that are shown; all are in the record.
const ARGUMENTS: usize = 8;
/// Depth that is shown by marks.
const DEEPEST: usize = 12;

/// The processes of a run that became programs, or may have, by their numbers.
#[derive(Debug)]
pub(super) struct Programs {
    all: BTreeMap<u64, Process>,
    /// The last attempt of each process that lives.
    asked: BTreeMap<u64, Asked>,
    /// Processes that were let go.
    gone: u64,
    detail: Detail,
    /// With so many processes it is looked for some to let go.
    many: usize,
    /// How many of those that have ended stay then.
    stay: usize,
}

/// What is kept of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Listed,
    /// Their number only.
    Counted,
}

/// Whether processes without an end may still have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Living {
    Stay,
    Gone,
}

/// What a process asks for.
#[derive(Clone, Debug)]
struct Asked {
    parent: u64,
    path: Kept,
    /// Those that are shown, and how many there are.
    argv: Vec<Kept>,
    arguments: usize,
}

/// One process that became a program, or may have.
#[derive(Debug)]
struct Process {
    asked: Asked,
    /// The kernel showed it as that program; else it ended before it was seen.
    exe: Option<Kept>,
    end: Option<End>,
    /// Processes below it that were let go.
    gone: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug)]
struct End {
    exit_code: Option<i32>,
    signal: Option<i32>,
    wall_ms: u64,
}

impl Programs {
    /// Of a run that is listed.
    pub(super) fn listed() -> Self {
        let (all, asked) = (BTreeMap::new(), BTreeMap::new());
        Self { all, asked, gone: 0, detail: Detail::Listed, many: MANY, stay: KEPT }
    }

    /// Of a run of which only the number of its programs is told.
    pub(super) fn counted() -> Self {
        Self { detail: Detail::Counted, ..Self::listed() }
    }

    /// Keeps no more than their number from here on.
    pub(super) fn count(&mut self) {
        self.detail = Detail::Counted;
        let ended = self.all.values().filter(|process| process.end.is_some()).count();
        self.gone += ended as u64;
        self.all.retain(|_, process| process.end.is_none());
        let living = self.all.values_mut().map(|process| &mut process.asked);
        living.chain(self.asked.values_mut()).for_each(|asked| *asked = Asked::nothing());
    }

    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::ExecAttempt { proc, parent, path, argv, .. } => {
                let asked = match self.detail {
                    Detail::Listed => Asked::new(*parent, path, argv),
                    Detail::Counted => Asked::nothing(),
                };
                self.asked.insert(*proc, asked);
            }
            Event::Exec { proc, exe, .. } => {
                if let Some(asked) = self.asked.get(proc).cloned() {
                    let exe = Some(Kept::new(exe.as_bytes()));
                    let gone = self.all.get(proc).map_or(0, |before| before.gone);
                    self.all.insert(*proc, Process { asked, exe, end: None, gone });
                }
            }
            Event::ProcessEnd { proc, unseen, exit_code, signal, wall_ms, .. } => {
                if let (Some(asked), true) = (self.asked.remove(proc), *unseen) {
                    let process = Process { asked, exe: None, end: None, gone: 0 };
                    self.all.entry(*proc).or_insert(process);
                }
                let (exit_code, signal, wall_ms) = (*exit_code, *signal, *wall_ms);
                match self.all.get_mut(proc) {
                    Some(process) => process.end = Some(End { exit_code, signal, wall_ms }),
                    None => return,
                }
                if self.detail == Detail::Counted {
                    self.all.remove(proc);
                    self.gone += 1;
                }
            }
            _ => {}
        }
        if self.all.len() >= self.many {
            self.let_go(Living::Stay);
        }
    }

    /// The run is over: of its processes those are kept that would be told of now.
    pub(super) fn settle(&mut self, living: Living) {
        if self.detail == Detail::Listed {
            self.stay = LISTED;
            self.let_go(living);
        }
    }

    /// Keeps those processes that are chosen first, those that live, and those that stand above them.
    /// Whom a list chooses from what is left is whom it would have chosen before.
    fn let_go(&mut self, living: Living) {
        let mut stay = self.choose(self.stay);
        let lives = |process: &Process| living == Living::Stay && process.end.is_none();
        for (proc, _) in self.all.iter().filter(|(_, process)| lives(process)) {
            let line = self.line_of(*proc, &stay);
            stay.extend(line);
        }
        let go: Vec<u64> = self.all.keys().copied().filter(|proc| !stay.contains(proc)).collect();
        // A child has a higher number than its parent, so what was below it is known when it goes.
        for proc in go.into_iter().rev() {
            let Some(process) = self.all.remove(&proc) else { continue };
            self.asked.remove(&proc);
            self.gone += 1;
            if let Some(above) = self.all.get_mut(&process.asked.parent) {
                above.gone += process.gone + 1;
            }
        }
        // Those that stay are not to be looked at each time.
        self.many = (8 * self.stay).max(2 * self.all.len());
    }

    /// How many lines tell of them.
    pub(super) fn number_of_lines(&self) -> u64 {
        let number = self.all.len() as u64 + self.gone;
        // And one that counts the rest.
        number.min(LISTED as u64 + 1)
    }

    /// The processes of a run: those that failed and those with most below them first chosen, then
    /// told in the order of their start.
    pub(super) fn lines(&self) -> Lines {
        let mut lines = Lines::default();
        if self.detail == Detail::Counted {
            lines.more = self.number_of_lines();
            return lines;
        }
        let chosen = self.choose(LISTED);
        let mut below: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut waiting = Vec::new();
        for proc in chosen.iter().rev() {
            match self.above(*proc) {
                Some(parent) => below.entry(parent).or_default().push(*proc),
                None => waiting.push((*proc, 1)),
            }
        }
        while let Some((proc, depth)) = waiting.pop() {
            if let Some(process) = self.all.get(&proc) {
                lines.push(|| process.line(depth));
            }
            let children = below.remove(&proc).unwrap_or_default();
            waiting.extend(children.into_iter().map(|child| (child, depth + 1)));
        }
        let left = self.all.len() as u64 + self.gone - chosen.len() as u64;
        if left > 0 {
            let more = count(left, "program", "programs");
            lines.push(|| Phrase::new().words(format!("› and {more} more, in the receipt")));
        }
        lines
    }

    /// The process above, where it is one of them. A child has a higher number than its parent.
    fn above(&self, proc: u64) -> Option<u64> {
        let parent = self.all.get(&proc)?.asked.parent;
        (parent < proc && self.all.contains_key(&parent)).then_some(parent)
    }

    /// A process and those above it, up to one that is there already.
    fn line_of(&self, proc: u64, there: &BTreeSet<u64>) -> Vec<u64> {
        let mut line = Vec::new();
        let mut at = Some(proc);
        while let Some(proc) = at.filter(|proc| !there.contains(proc)) {
            line.push(proc);
            at = self.above(proc);
        }
        line
    }

    /// Up to `most` of them, each with all above it.
    fn choose(&self, most: usize) -> BTreeSet<u64> {
        let sizes = self.sizes();
        let mut order: Vec<(bool, Reverse<u64>, u64)> = self
            .all
            .iter()
            .map(|(proc, process)| {
                (!process.failed(), Reverse(sizes.get(proc).copied().unwrap_or(0)), *proc)
            })
            .collect();
        order.sort_unstable();
        let mut chosen = BTreeSet::new();
        for (_, _, proc) in order {
            if chosen.len() >= most {
                break;
            }
            let line = self.line_of(proc, &chosen);
            if chosen.len() + line.len() <= most {
                chosen.extend(line);
            }
        }
        chosen
    }

    /// Each process with how many it and all below it are.
    fn sizes(&self) -> BTreeMap<u64, u64> {
        let mut sizes: BTreeMap<u64, u64> =
            self.all.iter().map(|(proc, process)| (*proc, 1 + process.gone)).collect();
        // A child has a higher number than its parent, so every size is whole when it is added.
        for proc in self.all.keys().rev() {
            let size = sizes.get(proc).copied().unwrap_or(0);
            if let Some(above) = self.above(*proc).and_then(|parent| sizes.get_mut(&parent)) {
                *above += size;
            }
        }
        sizes
    }
}

impl Asked {
    fn new(parent: u64, path: &ByteText, argv: &[ByteText]) -> Self {
        let shown = argv.iter().take(ARGUMENTS + 1);
        Self {
            parent,
            path: Kept::new(path.as_bytes()),
            argv: shown.map(|argument| Kept::new(argument.as_bytes())).collect(),
            arguments: argv.len(),
        }
    }

    fn nothing() -> Self {
        Self { parent: 0, path: Kept::new(b""), argv: Vec::new(), arguments: 0 }
    }
}

impl Process {
    fn failed(&self) -> bool {
        self.end
            .is_some_and(|end| end.exit_code.is_some_and(|code| code != 0) || end.signal.is_some())
    }

    fn line(&self, depth: usize) -> Phrase {
        let Asked { path, argv, arguments, .. } = &self.asked;
        let mut line = Phrase::new().words("› ".repeat(depth.min(DEEPEST)));
        line = line.code(path.as_bytes());
        for argument in argv.iter().skip(1).take(ARGUMENTS) {
            line = line.words(" ").code(argument.as_bytes());
        }
        if *arguments > ARGUMENTS + 1 {
            let more = (arguments - ARGUMENTS - 1) as u64;
            line = line.words(format!(" and {}", count(more, "argument", "arguments")));
        }
        match &self.exe {
            Some(exe) if is_other(path.as_bytes(), exe.as_bytes()) => {
                line = line.words(" as ").code(exe.as_bytes());
            }
            Some(_) => {}
            None => line = line.words(", not seen running"),
        }
        line.words(match self.end {
            Some(End { exit_code: Some(code), wall_ms, .. }) => {
                format!(": exit {code} after {}", span(wall_ms))
            }
            Some(End { signal: Some(signal), wall_ms, .. }) => {
                format!(": ended by signal {signal} after {}", span(wall_ms))
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
