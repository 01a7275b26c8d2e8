//! What a session's holder and another process say to each other.

use std::time::Duration;

use h5i_confine::{Limit, Outcome, Stop, Usage};
use h5i_export::Event;
use h5i_policy::{NetPolicy, Violation};
use serde::{Deserialize, Serialize};

use super::{Opened, Refused, Spent};
use crate::box_grants::{GrantWish, LiveGrant};
use crate::box_network::Wish;
use crate::failure::Failure;
use crate::grant_record::GrantDeeds;
use crate::json_bytes::JsonBytes;
use crate::net_record::NetDeeds;
use crate::program_record::Tally;
use crate::receipt_log::Deeds;

/// To the holder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Request {
    /// A place in the session: it does not end before the place is given up.
    Enter,
    /// In the place that was had: start this run. With it come the ends of its pipes, in order.
    Run(Wanted),
    /// Send the run a signal.
    Signal { signal: i32 },
    /// Stop the run, which wrote more than it may.
    StopForOutput { used: u64, allowed: u64 },
    /// What is the session, and what runs in it?
    Live,
    /// End the session; with `grace` its programs are asked first.
    End { grace: bool },
    /// Stop every process, or let them go on.
    Freeze { frozen: bool },
    /// Change what the box may reach.
    Network(Wish),
    /// Change a grant.
    Grant(GrantWish),
    /// After a run's end, where its output is kept by who joined: what of it.
    Kept { output: Vec<Event> },
    /// Stop every process until the conversation ends.
    Still,
    /// Put this on record.
    Record { event: Event },
    /// Connections to this port of the box's loopback will be asked for.
    Forward { port: u16, at: String },
    /// After `Forward`: one connection, on `127.0.0.1` or, with `v6`, on `::1`.
    Connect { v6: bool },
}

/// From the holder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Reply {
    /// There is a place.
    Entered {
        /// Bytes that a run may write, counted by who carries them.
        output: Option<u64>,
        /// For a root caller: the id that owns what is handed to a run.
        owner: Option<u32>,
    },
    /// The session ends: it takes nobody in any more.
    Ending,
    /// What was asked can't be had.
    Refused(Failure),
    /// The run goes. With it comes the other side of its terminal, if it has one.
    Started { run: u64, left_ms: Option<u64> },
    /// The run is being stopped, whatever its program ends of now.
    Stopping,
    /// The person is to be told.
    Told { line: String },
    /// The run ended.
    Ended(End),
    /// What the session is.
    Live(Live),
    /// It was done, to so many processes.
    Done { processes: usize },
    /// What the box may reach is changed; the digest of the policy that holds.
    Changed { policy: String },
    /// A connection that is being made comes with it, or why there is none.
    Socket { errno: Option<i32> },
}

/// A session as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Live {
    /// When it began, in milliseconds of Unix time.
    pub(crate) since_ms: u64,
    /// It was started, and ends when it is stopped; otherwise with its last run.
    pub(crate) started: bool,
    pub(crate) frozen: bool,
    /// Why, where no person did it.
    pub(crate) frozen_by: Option<String>,
    pub(crate) runs: Vec<LiveRun>,
    pub(crate) processes: Vec<LiveProcess>,
    /// Processor time of all its processes, those that have ended included.
    pub(crate) cpu_ms: u64,
    /// Memory and disk space by its budgets, bytes; none without one.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) disk_bytes: Option<u64>,
    /// What was refused last.
    pub(crate) refused: Vec<LiveRefusal>,
    /// Forwards: the port of the box, and where it is on the host.
    pub(crate) forwards: Vec<(u16, String)>,
    /// What may be reached, where the host holds the doors.
    pub(crate) network: Option<NetPolicy>,
    /// The grants that runs hold, and those that some have held.
    pub(crate) grants: Vec<LiveGrant>,
}

/// Something that was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LiveRefusal {
    /// When, in milliseconds of Unix time.
    pub(crate) at_ms: u64,
    pub(crate) what: String,
}

/// A run that goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LiveRun {
    pub(crate) run: u64,
    pub(crate) command: Vec<JsonBytes>,
    pub(crate) since_ms: u64,
}

/// A process of the box.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LiveProcess {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) run: Option<u64>,
    pub(crate) command: Vec<JsonBytes>,
    pub(crate) name: JsonBytes,
    pub(crate) state: char,
    pub(crate) cpu_ms: u64,
    pub(crate) rss_bytes: u64,
}

impl From<h5i_confine::LiveProcess> for LiveProcess {
    fn from(process: h5i_confine::LiveProcess) -> Self {
        /// Words of a command line that are told; a program can give itself any number.
        const WORDS: usize = 64;
        let words = process.argv.into_iter().take(WORDS);
        Self {
            pid: process.pid,
            parent: process.parent,
            run: process.run,
            command: words
                .map(|mut word| {
                    word.truncate(1024);
                    JsonBytes(word)
                })
                .collect(),
            name: JsonBytes(process.name),
            state: process.state,
            cpu_ms: u64::try_from(process.cpu.as_millis()).unwrap_or(u64::MAX),
            rss_bytes: process.rss,
        }
    }
}

/// A run that is asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    pub(super) command: Vec<JsonBytes>,
    pub(super) environment: Vec<(JsonBytes, JsonBytes)>,
    pub(super) directory: JsonBytes,
    pub(super) terminal: Option<Terminal>,
    pub(super) stdio: [Connected; 3],
    pub(super) wall_ms: Option<u64>,
}

/// The terminal of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Terminal {
    pub(super) rows: u16,
    pub(super) columns: u16,
    pub(super) modes: Option<([u32; 3], [u8; 19])>,
}

/// What one of input, output and errors is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Connected {
    Null,
    Terminal,
    Pipe,
}

/// How a run ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    how: How,
    wall_us: u64,
    cpu_us: u64,
    max_rss: u64,
    refused: Vec<Refused>,
    programs: Tally,
    network: NetDeeds,
    grants: GrantDeeds,
    spent: Option<Spent>,
    opened: Vec<Opened>,
    broke: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case", deny_unknown_fields)]
enum How {
    Exited { code: u8 },
    Signaled { signal: i32 },
    Stopped { limit: String, used: u64, allowed: u64 },
    Reacted { violation: String },
    Ended,
    CutOff,
}

/// Kinds of refusals that are told with an end; the log has all.
const KINDS: usize = 4096;
/// Names of programs that are told with one.
const NAMES: usize = 256;

impl End {
    pub(super) fn new(outcome: Outcome, usage: Usage, deeds: Deeds) -> Self {
        let Deeds { mut refused, mut programs, network, grants, spent, opened, broke } = deeds;
        programs.names.truncate(NAMES);
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        refused.truncate(KINDS);
        let how = match outcome {
            Outcome::Exited(code) => How::Exited { code },
            Outcome::Signaled(signal) => How::Signaled { signal },
            Outcome::Stopped(Stop { limit, used, allowed, .. }) => {
                How::Stopped { limit: limit.name().to_owned(), used, allowed }
            }
            Outcome::Reacted(violation) => How::Reacted { violation: violation.name().to_owned() },
            Outcome::Ended => How::Ended,
            _ => How::CutOff,
        };
        let (wall_us, cpu_us) = (micros(usage.wall), micros(usage.cpu));
        Self {
            how,
            wall_us,
            cpu_us,
            max_rss: usage.max_rss,
            refused,
            programs,
            network,
            grants,
            spent,
            opened,
            broke,
        }
    }

    pub(super) fn deeds(&self) -> Deeds {
        let (refused, programs) = (self.refused.clone(), self.programs.clone());
        let (network, grants) = (self.network.clone(), self.grants.clone());
        let (spent, opened) = (self.spent.clone(), self.opened.clone());
        let broke = self.broke.clone();
        Deeds { refused, programs, network, grants, spent, opened, broke }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match &self.how {
            How::Exited { code } => Outcome::Exited(*code),
            How::Signaled { signal } => Outcome::Signaled(*signal),
            How::Stopped { limit, used, allowed } => match Limit::named(limit) {
                Some(limit) => Outcome::Stopped(Stop::told(limit, *used, *allowed)),
                None => Outcome::CutOff,
            },
            How::Reacted { violation } => {
                Violation::named(violation).map_or(Outcome::CutOff, Outcome::Reacted)
            }
            How::Ended => Outcome::Ended,
            How::CutOff => Outcome::CutOff,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        usage.wall = Duration::from_micros(self.wall_us);
        usage.cpu = Duration::from_micros(self.cpu_us);
        usage.max_rss = self.max_rss;
        usage
    }
}

#[cfg(test)]
mod tests {
    use h5i_confine::{Limit, Outcome, Stop, Usage};

    use super::{Deeds, End};

    #[test]
    fn an_end_is_the_same_on_the_other_side() {
        for outcome in [
            Outcome::Exited(7),
            Outcome::Signaled(9),
            Outcome::Stopped(Stop::wall(12, 10)),
            Outcome::Stopped(Stop::told(Limit::FileSize, 2, 2)),
            Outcome::Reacted(h5i_policy::Violation::Gap),
            Outcome::Ended,
            Outcome::CutOff,
        ] {
            let mut usage = Usage::default();
            usage.wall = std::time::Duration::from_millis(3);
            usage.max_rss = 4096;
            let told = serde_json::to_vec(&End::new(outcome, usage, Deeds::default())).unwrap();
            let heard: End = serde_json::from_slice(&told).unwrap();
            assert_eq!((heard.outcome(), heard.usage()), (outcome, usage));
        }
    }
}
