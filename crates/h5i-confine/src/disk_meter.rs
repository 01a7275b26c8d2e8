//! Measures what a box takes on disk against its budget.
//!
//! Counting a large tree takes long, so it is done seldom, in parts, and when there is a reason: as
//! long as the file systems have not lost as much as the box may still take, it can't have taken it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{fstat, fstatvfs};
use rustix::time::{ClockId, clock_gettime};

use crate::disk_count::{self, DiskCount, ENTRY, Moment};
use crate::memory_meter::used_of;
use crate::trees::Member;
use crate::unnamed::UnnamedFiles;

/// How fast a box may be thought to write.
pub(crate) const FASTEST: u64 = 2 << 30;
/// Free space is not looked at sooner nor later than that.
pub(crate) const SOONEST: Duration = Duration::from_millis(10);
pub(crate) const LATEST: Duration = Duration::from_millis(500);
/// When a session counts for the first time: a short run is done by then.
const FIRST: Duration = Duration::from_millis(100);
/// What a run shorter than that may write without being counted at its end.
const UNCOUNTED: u64 = 4 << 20;
/// How long the session's thread counts before it looks at anything else.
const PART: Duration = Duration::from_millis(2);
/// After a pass comes a pause of so many times its length: without a reason, and with one.
const PAUSE: u32 = 100;
const SHORT_PAUSE: u32 = 20;
/// The shortest and longest pause without a reason.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// What a box that begins above its budget may add, to tidy up with.
pub(crate) const TO_TIDY: u64 = 1 << 20;

/// The disk space of a box.
#[derive(Debug)]
pub(crate) struct DiskMeter {
    pub(crate) allowed: u64,
    roots: Vec<PathBuf>,
    /// One directory on each file system.
    systems: Vec<OwnedFd>,
    scratch: Vec<OwnedFd>,
    unnamed: UnnamedFiles,
    pass: Option<Pass>,
    /// When the session began, or somebody was stopped last.
    began: Moment,
    /// Free space then.
    at_start: u64,
    /// `None` before the first pass, and where what there is has to be found out anew.
    last: Option<Last>,
    /// Bytes by the last pass.
    counted: Option<u64>,
    /// Bytes when the session began, as far as the first pass could tell.
    first: Option<u64>,
    /// Above this something is done.
    bound: u64,
    pub(crate) next: Instant,
}

/// A pass under way.
#[derive(Debug)]
struct Pass {
    count: DiskCount,
    free: u64,
    /// Processor time: what it waited for a disk or a busy machine is no cost of counting again.
    spent: Duration,
}

/// What the last pass found.
#[derive(Debug)]
struct Last {
    bytes: u64,
    /// Free space when it began.
    free: u64,
    /// Processor time.
    took: Duration,
    /// When the next may begin, with and without a reason.
    with_reason: Instant,
    without: Instant,
}

impl DiskMeter {
    pub(crate) fn new(
        allowed: u64,
        roots: Vec<PathBuf>,
        scratch: Vec<OwnedFd>,
    ) -> io::Result<Self> {
        let mut systems = BTreeMap::new();
        for fd in disk_count::roots(&roots)? {
            systems.entry(fstat(&fd)?.st_dev).or_insert(fd);
        }
        let systems = systems.into_values().collect();
        let counted = scratch.iter().filter_map(|fd| fstat(fd).ok()).map(|found| found.st_dev);
        let unnamed = UnnamedFiles::new(counted.collect());
        let (pass, last, counted) = (None, None, None);
        let (bound, next, at_start) = (allowed, Instant::now() + FIRST, 0);
        let mut meter = Self {
            allowed,
            roots,
            systems,
            scratch,
            unnamed,
            pass,
            began: disk_count::moment(),
            at_start,
            last,
            counted,
            first: None,
            bound,
            next,
        };
        meter.at_start = meter.free();
        Ok(meter)
    }

    /// Looks, and counts a part where there is a reason; yields how much is used when that is more
    /// than the box may.
    pub(crate) fn look(&mut self, members: impl FnOnce() -> Vec<Member>) -> Option<u64> {
        if self.pass.is_none() && !self.has_reason() {
            self.next = Instant::now() + self.interval();
            return None;
        }
        self.count(Instant::now() + PART, members)
    }

    /// Counts all before a run that lived so long is judged, where there is a reason or it costs
    /// little beside the run: what somebody else gave free hides what the run took. As
    /// [`DiskMeter::look`].
    pub(crate) fn judge(
        &mut self,
        lived: Duration,
        members: impl FnOnce() -> Vec<Member>,
    ) -> Option<u64> {
        /// Who waits for the end of a run is not kept longer.
        const PATIENCE: Duration = Duration::from_secs(2);
        const LITTLE: u32 = 50;
        let needless = match &self.last {
            None => self.lost() <= UNCOUNTED,
            Some(last) => last.took * LITTLE > lived && self.at_most(last) <= self.bound,
        };
        if needless {
            return None;
        }
        // One that is under way has gone past places that may have been written since.
        self.pass = None;
        self.count(Instant::now() + PATIENCE, members)
    }

    /// Bytes by the last pass, and of memory files now; `None` before the first.
    pub(crate) fn known(&self) -> Option<u64> {
        self.counted.map(|bytes| bytes.saturating_add(self.in_memory()))
    }

    /// What the box has added since the session began, counted now; `None` where that takes too
    /// long.
    pub(crate) fn grown(&mut self, members: impl FnOnce() -> Vec<Member>) -> Option<u64> {
        const PATIENCE: Duration = Duration::from_millis(200);
        self.pass = None;
        self.count(Instant::now() + PATIENCE, members);
        if self.pass.take().is_some() {
            return None;
        }
        Some(self.known()?.saturating_sub(self.first?))
    }

    /// Who took too much is ended. What is there then stops nobody; more than that does.
    pub(crate) fn is_dealt_with(&mut self) {
        (self.pass, self.last) = (None, None);
        (self.began, self.at_start) = (disk_count::moment(), self.free());
    }

    fn has_reason(&self) -> bool {
        let now = Instant::now();
        match &self.last {
            None => true,
            Some(last) => {
                now >= last.without || now >= last.with_reason && self.at_most(last) > self.bound
            }
        }
    }

    /// What the box can have taken at most, by what its file systems have lost.
    fn at_most(&self, last: &Last) -> u64 {
        let lost = last.free.saturating_sub(self.free());
        last.bytes.saturating_add(lost).saturating_add(self.in_memory())
    }

    /// What the file systems have lost since the session began.
    fn lost(&self) -> u64 {
        self.at_start.saturating_sub(self.free())
    }

    fn count(&mut self, until: Instant, members: impl FnOnce() -> Vec<Member>) -> Option<u64> {
        let (begun, worked) = (Instant::now(), thread_time());
        self.next = begun;
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => match disk_count::roots(&self.roots) {
                Ok(roots) => {
                    let (free, spent) = (self.free(), Duration::ZERO);
                    Pass { count: DiskCount::new(roots, self.began), free, spent }
                }
                Err(_) => {
                    self.next = begun + LATEST;
                    return None;
                }
            },
        };
        let first = self.last.is_none();
        // What was there before is to be known whole.
        let counted = pass.count.go_on(until, if first { u64::MAX } else { self.bound });
        pass.spent += thread_time().saturating_sub(worked);
        let Some(counted) = counted else {
            self.pass = Some(pass);
            return None;
        };
        let removed = self.unnamed.look(&members()).disk;
        let (now, took) = (Instant::now(), pass.spent);
        let bytes = counted.bytes.saturating_add(removed);
        self.counted = Some(bytes);
        let pause = (took * PAUSE).clamp(SHORTEST, LONGEST);
        self.last = Some(Last {
            bytes,
            free: pass.free,
            took,
            with_reason: now + (took * SHORT_PAUSE).max(SOONEST),
            without: now + pause,
        });
        self.next = now + self.interval();
        let used = bytes.saturating_add(self.in_memory());
        // Others may have written, too, and the box may have changed what it had: what it had is
        // not less than either.
        let before = used.saturating_sub(self.lost()).max(counted.before);
        self.first.get_or_insert(before);
        if used <= self.allowed || first && before <= self.allowed {
            self.bound = self.allowed;
        } else if first {
            self.bound = before.saturating_add(TO_TIDY);
        }
        (used > self.bound).then_some(used)
    }

    fn interval(&self) -> Duration {
        let room =
            self.last.as_ref().map_or(0, |last| self.bound.saturating_sub(self.at_most(last)));
        Duration::from_micros(room / (FASTEST / 1_000_000)).clamp(SOONEST, LATEST)
    }

    fn in_memory(&self) -> u64 {
        self.scratch.iter().map(used_of).fold(0, u64::saturating_add)
    }

    /// Free bytes of the file systems, with what their free inodes count.
    fn free(&self) -> u64 {
        let of = |fd: &OwnedFd| {
            let Ok(found) = fstatvfs(fd) else { return 0 };
            let blocks = found.f_bfree.saturating_mul(found.f_frsize);
            blocks.saturating_add(found.f_ffree.saturating_mul(ENTRY))
        };
        self.systems.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// Processor time of the calling thread.
fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn meter(dir: &std::path::Path, allowed: u64) -> DiskMeter {
        DiskMeter::new(allowed, vec![dir.to_owned()], Vec::new()).unwrap()
    }

    fn counted(meter: &mut DiskMeter) -> Option<u64> {
        meter.count(Instant::now() + Duration::from_secs(60), Vec::new)
    }

    /// A directory with 4 MiB, from before the moment that a meter notes.
    fn directory_with_4_mib() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("before"), vec![1; 4 << 20]).unwrap();
        // File systems note changes by a clock of coarse ticks.
        std::thread::sleep(Duration::from_millis(20));
        dir
    }

    #[test]
    fn what_others_write_meanwhile_does_not_make_new_what_was_there() {
        let dir = directory_with_4_mib();
        let mut meter = meter(dir.path(), 1 << 20);
        // As if somebody else had written so much since.
        meter.at_start += 1 << 30;
        assert_eq!(counted(&mut meter), None);
        assert!(meter.first.unwrap() > 4 << 20);
        // A look has its time, which a busy machine may not have had.
        let grown = (0..100).find_map(|_| meter.grown(Vec::new));
        assert_eq!(grown, Some(0));
    }

    #[test]
    fn what_is_written_over_counts_as_new_where_others_write() {
        let dir = directory_with_4_mib();
        let mut meter = meter(dir.path(), 1 << 20);
        meter.at_start += 1 << 30;
        fs::write(dir.path().join("before"), vec![2; 4 << 20]).unwrap();
        assert!(counted(&mut meter).is_some());
    }

    #[test]
    fn what_was_there_before_is_no_reason_and_what_is_added_is() {
        let dir = directory_with_4_mib();
        let mut meter = meter(dir.path(), 1 << 20);
        assert_eq!(counted(&mut meter), None);
        assert!(meter.known().unwrap() > 4 << 20);
        fs::write(dir.path().join("little"), vec![1; 1 << 19]).unwrap();
        assert_eq!(counted(&mut meter), None);
        fs::write(dir.path().join("more"), vec![1; 1 << 20]).unwrap();
        let used = counted(&mut meter).unwrap();
        assert!(used > 5 << 20, "{used}");
        // What is there is older than a tick of the clock that tells.
        std::thread::sleep(Duration::from_millis(20));
        meter.is_dealt_with();
        assert_eq!(counted(&mut meter), None, "told once");
        fs::remove_file(dir.path().join("before")).unwrap();
        fs::remove_file(dir.path().join("more")).unwrap();
        assert_eq!(counted(&mut meter), None);
        fs::write(dir.path().join("again"), vec![1; 1 << 20]).unwrap();
        assert!(counted(&mut meter).is_some(), "the budget holds again");
    }

    #[test]
    fn what_is_written_before_the_first_pass_counts_and_what_was_there_does_not() {
        let dir = directory_with_4_mib();
        // Room that nobody else gives free meanwhile.
        let mut begun = meter(dir.path(), 64 << 20);
        fs::write(dir.path().join("at once"), vec![1; 96 << 20]).unwrap();
        fs::File::open(dir.path().join("at once")).unwrap().sync_all().unwrap();
        // Others may have given room free all the same.
        begun.at_start = begun.at_start.max(begun.free() + (96 << 20));
        let used = begun.judge(Duration::ZERO, Vec::new);
        assert!(used.is_some_and(|used| used > 96 << 20), "{used:?}");
        // The twin: the next session finds it there.
        let mut next = meter(dir.path(), 64 << 20);
        assert_eq!(counted(&mut next), None);
        assert_eq!(next.judge(Duration::ZERO, Vec::new), None);
    }

    #[test]
    fn a_million_files_are_not_counted_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut meter = meter(dir.path(), 100 * ENTRY);
        assert_eq!(counted(&mut meter), None);
        (0..1000).for_each(|n| fs::write(dir.path().join(n.to_string()), "").unwrap());
        let used = counted(&mut meter).unwrap();
        assert!(used > 100 * ENTRY && used < 200 * ENTRY, "{used}");
    }

    #[test]
    fn a_box_that_can_not_have_written_too_much_is_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut meter = meter(dir.path(), 1 << 60);
        assert!(meter.has_reason(), "the first pass");
        counted(&mut meter);
        fs::write(dir.path().join("f"), vec![1; 1 << 20]).unwrap();
        meter.last.as_mut().unwrap().without += Duration::from_secs(3600);
        assert!(!meter.has_reason());
        meter.bound = 0;
        // Within the pause after a pass nothing is one.
        meter.last.as_mut().unwrap().with_reason = Instant::now();
        assert!(meter.has_reason());
    }
}
