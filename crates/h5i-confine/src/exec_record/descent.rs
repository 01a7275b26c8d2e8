//! Which process on record another one descends from, also when those between have gone.

use std::collections::{BTreeMap, VecDeque};

use super::stat::Stat;
use crate::event::ProcessId;

/// Generations that are looked through; processes that only forked lie between.
const GENERATIONS: usize = 64;
/// Children of processes that have ended, and first processes of runs, that are remembered.
const REMEMBERED: usize = 1024;

/// What is remembered of descent beyond what the kernel tells.
#[derive(Debug, Default)]
pub(super) struct Descent {
    /// The box's init in this process's pid namespace, once a run has started.
    pub(super) init: Option<u32>,
    /// Processes whose parent has ended, with their start times.
    orphans: BTreeMap<u32, (u64, Of)>,
    ages: VecDeque<u32>,
    /// Session leaders. The kernel keeps the number of one taken as long as its session has a
    /// process.
    leaders: VecDeque<(u32, Of)>,
}

/// A process on record, and its run.
type Of = (ProcessId, u64);

impl Descent {
    /// The box's init.
    pub(super) const INIT: ProcessId = ProcessId { proc: 0, pid: 1 };

    /// A process leads the session of a run.
    pub(super) fn leads(&mut self, pid: u32, of: Of) {
        self.leaders.push_back((pid, of));
        if self.leaders.len() > REMEMBERED {
            self.leaders.pop_front();
        }
    }

    /// The parent of these is about to end.
    pub(super) fn adopt(&mut self, children: &[u32], of: Of) {
        for pid in children {
            let Some(stat) = Stat::of(*pid) else { continue };
            if self.orphans.insert(*pid, (stat.born, of)).is_none() {
                self.ages.push_back(*pid);
            }
            if self.ages.len() > REMEMBERED
                && let Some(oldest) = self.ages.pop_front()
            {
                self.orphans.remove(&oldest);
            }
        }
    }

    /// The nearest process on record at or above `pid`; a run's own first process where a signal
    /// has ended those between, and init where nothing tells.
    pub(super) fn forebear(
        &self,
        pid: u32,
        parent: u32,
        on_record: impl Fn(u32) -> Option<Of>,
    ) -> Of {
        let (mut at, mut above) = (pid, Some(parent));
        for _ in 0..GENERATIONS {
            if let Some(of) = on_record(at) {
                return of;
            }
            if let Some((born, of)) = self.orphans.get(&at)
                && Stat::of(at).is_some_and(|stat| stat.born == *born)
            {
                return *of;
            }
            match above.or_else(|| Stat::of(at).map(|stat| stat.parent)) {
                Some(next) if next != 0 && Some(next) != self.init => at = next,
                _ => break,
            }
            above = None;
        }
        let session = Stat::of(pid).map(|stat| stat.session);
        let leader = self.leaders.iter().rev().find(|(leader, _)| Some(*leader) == session);
        leader.map_or((Self::INIT, 0), |(_, of)| *of)
    }
}
