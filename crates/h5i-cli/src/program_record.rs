//! The programs of a box's runs as records, and how many of which there were.

use std::collections::BTreeMap;

use h5i_confine::{self as confine, ProcessEnd, Seen};
use h5i_export::{Argv, ByteText, Event, Unread};

/// Arguments of programs that are kept in full in one session, in bytes; a box that starts programs
/// for ever with arguments as long as may be would fill the host's disk with them.
const IN_FULL: usize = 64 << 20;
/// Bytes of the arguments of each program after that.
const SHORT: usize = 512;
/// Names that are told apart; what comes beyond is counted as one.
const NAMES: usize = 1024;
/// Names that a line has room for.
const TOLD: usize = 4;

/// The programs of a session, counted by name.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// By the last part of the path as it was asked for: how many, and which process was the first.
    names: BTreeMap<Vec<u8>, (u64, u64)>,
    total: u64,
    /// Bytes of arguments on record.
    spent: usize,
    /// What each process asked for last, until it is known to have got it or to have ended.
    asked: BTreeMap<u64, Vec<u8>>,
}

impl Programs {
    /// How many programs ran; those that ended before they were seen among them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The most frequent names first, of equal ones the one that came first.
    #[must_use]
    pub fn by_count(&self) -> Vec<(&[u8], u64)> {
        let mut all: Vec<(&[u8], (u64, u64))> =
            self.names.iter().map(|(name, count)| (name.as_slice(), *count)).collect();
        all.sort_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
        all.into_iter().map(|(name, (count, _))| (name, count)).collect()
    }

    /// `143 programs (node ×97, sh ×31, npm, node-gyp, …)`
    #[must_use]
    pub fn summary(&self) -> String {
        let names = self.by_count();
        let mut words: Vec<String> = names
            .iter()
            .take(TOLD)
            .map(|(name, count)| match count {
                1 => crate::shown::Shown::bytes(name).to_string(),
                count => format!("{} ×{count}", crate::shown::Shown::bytes(name)),
            })
            .collect();
        if names.len() > TOLD {
            words.push("…".to_owned());
        }
        let noun = if self.total == 1 { "program" } else { "programs" };
        format!("{} {noun} ({})", self.total, words.join(", "))
    }

    /// An attempt's record.
    pub fn attempt(&mut self, attempt: &confine::ExecAttempt) -> Event {
        let empty = confine::Arguments::default();
        let arguments = attempt.arguments.read().unwrap_or(&empty);
        let bound = if self.spent < IN_FULL { Argv::MAX_TOTAL } else { SHORT };
        let argv = Argv::within(bound, arguments.argv.iter().map(Vec::as_slice));
        self.spent += argv.argv.iter().map(|arg| arg.as_bytes().len() + 1).sum::<usize>();
        let name = attempt.path.read().map(Vec::as_slice).unwrap_or_default();
        let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.asked.insert(attempt.process.proc, name.to_vec());
        let unread = [
            (attempt.path.read().is_none(), Unread::Path),
            (attempt.arguments.read().is_none(), Unread::Argv),
            (attempt.cwd.read().is_none(), Unread::Cwd),
        ];
        Event::ExecAttempt {
            proc: attempt.process.proc,
            pid: attempt.process.pid,
            parent: attempt.parent.proc,
            ppid: attempt.ppid,
            path: text(&attempt.path),
            argv: argv.argv,
            argv_cut: argv.cut.saturating_add(arguments.cut),
            cwd: text(&attempt.cwd),
            unread: unread.into_iter().filter_map(|(is, what)| is.then_some(what)).collect(),
            unwatched: !attempt.watched,
        }
    }

    /// The record of an attempt that has succeeded.
    pub fn exec(&mut self, exec: &confine::Exec) -> Event {
        self.count(exec.process.proc);
        Event::Exec {
            proc: exec.process.proc,
            pid: exec.process.pid,
            exe: text(&exec.exe),
            failed: exec.failed,
        }
    }

    /// The record of a process's end.
    pub fn end(&mut self, ended: &confine::ProcessEnded) -> Event {
        if ended.unseen {
            self.count(ended.process.proc);
        }
        self.asked.remove(&ended.process.proc);
        let millis =
            |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let (exit_code, signal) = match ended.end {
            ProcessEnd::Exited(code) => (Some(i32::from(code)), None),
            ProcessEnd::Signaled(signal) => (None, Some(signal)),
            _ => (None, None),
        };
        Event::ProcessEnd {
            proc: ended.process.proc,
            pid: ended.process.pid,
            exit_code,
            signal,
            wall_ms: millis(ended.wall),
            cpu_ms: ended.cpu.map(millis),
            max_rss_bytes: ended.max_rss,
            unseen: ended.unseen,
        }
    }

    fn count(&mut self, proc: u64) {
        self.total += 1;
        let mut name = self.asked.get(&proc).cloned().unwrap_or_default();
        if self.names.len() >= NAMES && !self.names.contains_key(&name) {
            name = b"others".to_vec();
        }
        let (count, first) = self.names.entry(name).or_insert((0, proc));
        *count += 1;
        *first = proc.min(*first);
    }
}

/// What was read, or nothing: that it could not be read is said beside it.
fn text(seen: &Seen<Vec<u8>>) -> ByteText {
    ByteText::new(seen.read().cloned().unwrap_or_default())
}
