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
    /// What stands above the runs, in this process's pid namespace: the box's init, and the keepers
    /// of the runs that have one.
    above_runs: VecDeque<u32>,
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

    /// A run's first process has this parent.
    pub(super) fn stands_above(&mut self, parent: u32) {
        if self.above_runs.contains(&parent) {
            return;
        }
        self.above_runs.push_back(parent);
        if self.above_runs.len() > REMEMBERED {
            self.above_runs.pop_front();
        }
    }

    /// Whether nothing of a run is at or above this one. Before the first run it is the init alone
    /// that has children.
    pub(super) fn is_above_runs(&self, pid: u32) -> bool {
        self.above_runs.is_empty() || self.above_runs.contains(&pid)
    }

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
                // A number of a keeper that has gone may be a program's now.
                Some(next) if next == 0 || self.above_runs.contains(&next) => {
                    if let Some(of) = on_record(next) {
                        return of;
                    }
                    break;
                }
                Some(next) => at = next,
                None => break,
            }
            above = None;
        }
        let session = Stat::of(pid).map(|stat| stat.session);
        let leader = self.leaders.iter().rev().find(|(leader, _)| Some(*leader) == session);
        leader.map_or((Self::INIT, 0), |(_, of)| *of)
    }
}
