//! The runs of a box, from its records.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::phrase::Phrase;
use super::programs::{Living, Programs};
use super::tally::{Kept, Lines, MAX_LISTED};
use super::text::{count, size, span};
use crate::record::{Event, Outcome, Record, Timestamp};

/// Whether every run of a box came to an end of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Completeness {
    /// Each one exited, or ended by a signal that h5i did not send.
    Complete,
    /// One was stopped, cut off, refused, or has not ended: what it left may be half done.
    Incomplete,
}

/// Completeness, from records one after the other; keeps runs that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    open: BTreeSet<u64>,
    broken: bool,
}

impl Ends {
    pub(crate) fn take(&mut self, record: &Record) {
        match (&record.event, record.run) {
            (Event::RunStart { .. }, Some(number)) => drop(self.open.insert(number)),
            (Event::RunEnd { outcome, .. }, Some(number)) => {
                self.broken |= self.open.remove(&number) && !is_own(*outcome);
            }
            (Event::CutOff { .. }, _) => {
                self.broken |= !self.open.is_empty();
                self.open.clear();
            }
            _ => {}
        }
    }

    pub(crate) fn completeness(&self) -> Completeness {
        match self.open.is_empty() && !self.broken {
            true => Completeness::Complete,
            false => Completeness::Incomplete,
        }
    }
}

/// Whether an end is a run's own.
const fn is_own(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Exited | Outcome::Signaled)
}

/// One run.
#[derive(Debug)]
struct Run {
    number: u64,
    argv: Vec<Kept>,
    argv_cut: u32,
    started: Timestamp,
    end: End,
    programs: Programs,
    /// Output that is kept, a line each.
    output: Vec<Phrase>,
}

/// How a run ended.
#[derive(Debug)]
enum End {
    /// There is no record of its end, and the box goes on.
    Open,
    /// There is none, because the box was cut off.
    CutOff,
    Ended(Box<Event>),
}

/// The runs of a box. What is told of them is kept of those that a report lists: the first ones, until
/// their lines are as many as a list has. Of the others it is kept while they go on.
#[derive(Debug, Default)]
pub(super) struct Runs {
    all: BTreeMap<u64, Run>,
    number: u64,
    /// No run after this one is listed.
    horizon: Option<u64>,
    /// Lines of runs that have ended and are not listed.
    unlisted: u64,
    /// How the last one of those ended.
    last: Option<(u64, Phrase)>,
    /// That those of them did not come to an end of their own that did not.
    stopped: BTreeMap<u64, Phrase>,
    /// How many more did not.
    more_stopped: u64,
}

impl Runs {
    pub(super) fn take(&mut self, record: &Record) {
        if let Event::CutOff { .. } = &record.event {
            self.cut_off();
            return;
        }
        let Some(number) = record.run else { return };
        match &record.event {
            Event::RunStart { argv, argv_cut, .. } => {
                let argv = argv.iter().map(|argument| Kept::new(argument.as_bytes())).collect();
                let programs = match self.is_listed(number) {
                    true => Programs::listed(),
                    false => Programs::counted(),
                };
                let (argv_cut, started, output) = (*argv_cut, record.at, Vec::new());
                let end = End::Open;
                let run = Run { number, argv, argv_cut, started, end, programs, output };
                self.number += u64::from(self.all.insert(number, run).is_none());
            }
            end @ Event::RunEnd { .. } => {
                let Some(run) = self.all.get_mut(&number) else { return };
                run.end = End::Ended(Box::new(end.clone()));
                run.programs.settle(Living::Stay);
                self.has_ended(number);
            }
            Event::Output { stream, bytes, kept, payload } => {
                let Some(run) = self.all.get_mut(&number) else {
                    self.unlisted += 1;
                    return;
                };
                let cut = if kept < bytes {
                    format!(", the first {} of them", size(*kept))
                } else {
                    String::new()
                };
                run.output.push(Phrase::new().words(format!(
                    "› {} kept: {}{cut}, {payload}",
                    stream.name(),
                    size(*bytes)
                )));
            }
            event => {
                if let Some(run) = self.all.get_mut(&number) {
                    run.programs.take(event);
                }
            }
        }
    }

    /// Nothing of the box is alive any more.
    fn cut_off(&mut self) {
        let open = self.all.values_mut().filter(|run| matches!(run.end, End::Open));
        let cut_off = open.map(|run| {
            run.end = End::CutOff;
            run.programs.settle(Living::Gone);
            run.number
        });
        let cut_off: Vec<u64> = cut_off.collect();
        cut_off.into_iter().for_each(|number| self.has_ended(number));
    }

    fn has_ended(&mut self, number: u64) {
        if self.horizon.is_none() {
            self.look_for_horizon();
        } else if !self.is_listed(number) {
            self.leave_out(number);
        }
    }

    fn is_listed(&self, number: u64) -> bool {
        self.horizon.is_none_or(|horizon| number <= horizon)
    }

    /// Once what comes first fills a list, the rest need not be kept.
    fn look_for_horizon(&mut self) {
        let mut lines = 0;
        // One that goes on has no fewer lines later.
        let full = self.all.values().find(|run| {
            lines += run.lines();
            lines >= MAX_LISTED as u64
        });
        let Some(last) = full.map(|run| run.number) else { return };
        self.horizon = Some(last);
        let rest: Vec<u64> = self.all.range(last + 1..).map(|(number, _)| *number).collect();
        for number in rest {
            match self.all.get_mut(&number) {
                Some(run) if matches!(run.end, End::Open) => run.programs.count(),
                _ => self.leave_out(number),
            }
        }
    }

    /// Keeps of a run that has ended what is told of all of them.
    fn leave_out(&mut self, number: u64) {
        let Some(run) = self.all.remove(&number) else { return };
        self.unlisted += run.lines();
        if !run.is_complete() {
            self.stopped.insert(number, run.stop());
            if self.stopped.len() > MAX_LISTED && self.stopped.pop_last().is_some() {
                self.more_stopped += 1;
            }
        }
        if self.last.as_ref().is_none_or(|(last, _)| *last < number) {
            self.last = Some((number, run.ending()));
        }
    }

    /// How many there were.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// How the one with the highest number ended.
    pub(super) fn last_ending(&self) -> Option<Phrase> {
        let kept = self.all.last_key_value().map(|(number, run)| (*number, run.ending()));
        let left_out = self.last.clone();
        [kept, left_out].into_iter().flatten().max_by_key(|(number, _)| *number).map(|last| last.1)
    }

    /// Runs that were stopped or cut off: what they left may be half done.
    pub(super) fn stops(&self) -> Lines {
        let kept = self.all.values().filter(|run| !run.is_complete()).map(Run::stop);
        let mut lines: Lines = kept.collect();
        lines.append(self.stopped.values().cloned().collect());
        lines.more += self.more_stopped;
        lines
    }

    /// Every run with its programs and what is kept of its output.
    pub(super) fn lines(&self) -> Lines {
        let mut lines = Lines::default();
        for run in self.all.values() {
            if !self.is_listed(run.number) {
                lines.more += run.lines();
                continue;
            }
            lines.push(|| run.line());
            lines.append(run.programs.lines());
            lines.append(run.output.iter().cloned().collect());
        }
        lines.more += self.unlisted;
        lines
    }
}

impl Run {
    /// Whether it came to an end of its own.
    fn is_complete(&self) -> bool {
        match &self.end {
            End::Ended(end) => match **end {
                Event::RunEnd { outcome, .. } => is_own(outcome),
                _ => false,
            },
            End::Open | End::CutOff => false,
        }
    }

    /// How many lines tell of it.
    fn lines(&self) -> u64 {
        1 + self.programs.number_of_lines() + self.output.len() as u64
    }

    /// That what it left may be half done.
    fn stop(&self) -> Phrase {
        Phrase::new()
            .words(format!("Run {}: ", self.number))
            .join(self.ending())
            .words(". What it left may be half done.")
    }

    /// How it ended, in words.
    fn ending(&self) -> Phrase {
        let words = |text: String| Phrase::new().words(text);
        let ended = match &self.end {
            End::Ended(end) => &**end,
            End::CutOff => return words("was cut off".to_owned()),
            End::Open => return words("has not ended".to_owned()),
        };
        let Event::RunEnd { outcome, exit_code, signal, limit, used, allowed, .. } = ended else {
            return words("has not ended".to_owned());
        };
        let number =
            |value: Option<i32>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
        match outcome {
            Outcome::Exited => words(format!("exit {}", number(*exit_code))),
            Outcome::Signaled => words(format!("ended by signal {}", number(*signal))),
            Outcome::Stopped => {
                let limit = limit.as_deref().unwrap_or("a limit");
                let stopped = words("stopped by ".to_owned()).foreign(limit);
                match (used, allowed) {
                    (Some(used), Some(allowed)) => {
                        let (used, allowed) = (amount(limit, *used), amount(limit, *allowed));
                        stopped.words(match limit {
                            "keep_free" => format!(" ({used} free, {allowed} to be kept)"),
                            _ => format!(" ({used} of {allowed})"),
                        })
                    }
                    _ => stopped,
                }
            }
            Outcome::Refused => words("was refused".to_owned()),
            Outcome::CutOff => words("was cut off".to_owned()),
        }
    }

    fn line(&self) -> Phrase {
        let mut line = Phrase::new().words(format!("{}. {}:", self.number, self.started));
        for argument in &self.argv {
            line = line.words(" ").code(argument.as_bytes());
        }
        if self.argv_cut > 0 {
            let cut = count(self.argv_cut.into(), "argument", "arguments");
            line = line.words(format!(" and {cut} cut"));
        }
        line = line.words(": ").join(self.ending());
        if let End::Ended(end) = &self.end
            && let Event::RunEnd { wall_ms, cpu_ms, max_rss_bytes, .. } = **end
        {
            line = line.words(format!(
                " after {}, {} of processor time, {} at most",
                span(wall_ms),
                span(cpu_ms),
                size(max_rss_bytes)
            ));
        }
        line
    }
}

/// So much of a limit, in the limit's unit.
fn amount(limit: &str, value: u64) -> String {
    match limit {
        "wall" | "session" | "cpu" => span(value),
        "memory" | "disk" | "keep_free" | "output" | "file_size" => size(value),
        _ => value.to_string(),
    }
}
