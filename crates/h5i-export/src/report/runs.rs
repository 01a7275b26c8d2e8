//! The runs of a box, from its records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::phrase::Phrase;
use super::text::{size, span};
use crate::record::{ByteText, Event, Outcome, Record, Timestamp};

/// One run.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) number: u64,
    pub(super) argv: &'a [ByteText],
    pub(super) argv_cut: u32,
    pub(super) started: Timestamp,
    pub(super) end: End<'a>,
}

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

impl Completeness {
    /// What these records say.
    #[must_use]
    pub fn of(records: &[Record]) -> Self {
        if runs(records).iter().all(Run::is_complete) { Self::Complete } else { Self::Incomplete }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(super) enum End<'a> {
    /// There is no record of its end, and the box goes on.
    Open,
    /// There is none, because the box was cut off.
    CutOff,
    Ended(&'a Event),
}

/// The runs in the order of their numbers.
pub(super) fn runs(records: &[Record]) -> Vec<Run<'_>> {
    let mut runs: BTreeMap<u64, Run<'_>> = BTreeMap::new();
    for record in records {
        match (&record.event, record.run) {
            (Event::RunStart { argv, argv_cut, .. }, Some(number)) => {
                let (argv_cut, started) = (*argv_cut, record.at);
                runs.insert(number, Run { number, argv, argv_cut, started, end: End::Open });
            }
            (event @ Event::RunEnd { .. }, Some(number)) => {
                if let Some(run) = runs.get_mut(&number) {
                    run.end = End::Ended(event);
                }
            }
            (Event::CutOff { .. }, _) => {
                for run in runs.values_mut().filter(|run| matches!(run.end, End::Open)) {
                    run.end = End::CutOff;
                }
            }
            _ => {}
        }
    }
    runs.into_values().collect()
}

impl Run<'_> {
    /// Whether it came to an end of its own.
    pub(super) fn is_complete(&self) -> bool {
        match self.end {
            End::Ended(Event::RunEnd { outcome, .. }) => {
                matches!(outcome, Outcome::Exited | Outcome::Signaled)
            }
            End::Ended(_) | End::Open | End::CutOff => false,
        }
    }

    /// How it ended, in words.
    pub(super) fn ending(&self) -> Phrase {
        let words = |text: String| Phrase::new().words(text);
        let End::Ended(Event::RunEnd { outcome, exit_code, signal, limit, used, allowed, .. }) =
            self.end
        else {
            return match self.end {
                End::CutOff => words("was cut off".to_owned()),
                _ => words("has not ended".to_owned()),
            };
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
}

/// So much of a limit, in the limit's unit.
fn amount(limit: &str, value: u64) -> String {
    match limit {
        "wall" | "session" | "cpu" => span(value),
        "memory" | "disk" | "keep_free" | "output" | "file_size" => size(value),
        _ => value.to_string(),
    }
}
