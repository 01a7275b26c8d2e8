//! Watches what is planted while a session lives.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use h5i_export::CanaryLoss;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::planted::Planted;
use crate::failure::{Failure, Kind};
use crate::session::Opened;
use crate::store::{HostId, StoredBox};

/// Events that are taken at once: as many as the kernel keeps by default, so that whatever came
/// before is among them, and a box that goes on opening holds nobody.
const AT_ONCE: usize = 16_384;
/// Runs of one file that are counted apart; in a session whose runs never end there are no more.
const RUNS: usize = 4096;

/// The planted files of a session. Nothing of them is opened by the host while this lives.
#[derive(Debug)]
pub(crate) struct Watch {
    inotify: OwnedFd,
    host_dir: PathBuf,
    planted: Planted,
    files: BTreeMap<i32, Watched>,
    overrun: Overrun,
}

/// Whether the kernel had to forget opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overrun {
    Never,
    Told,
}

/// One file.
#[derive(Debug)]
struct Watched {
    /// Its place in the list of what is planted.
    at: usize,
    state: State,
    opened: BTreeMap<Option<u64>, Count>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AsPlanted,
    Lost,
}

/// How often it was opened, in a run or in none that is known.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: u64,
    told: u64,
}

/// What there is to put on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A file was opened.
    Opened { path: String, run: Option<u64>, count: u64 },
    /// A file is not watched any more.
    Lost { path: String, why: CanaryLoss },
    /// More was opened than the kernel could tell.
    Overrun,
}

impl Watch {
    /// Looks at what is planted in a box, plants what is missing, and watches it from here on.
    /// Nothing of the box runs yet. What is not as it was planted is told; `None` where nothing is
    /// planted.
    ///
    /// # Errors
    /// `unavailable` where the kernel watches no more; an I/O failure.
    pub(crate) fn begin(
        stored: &StoredBox,
        owner: Option<HostId>,
    ) -> Result<Option<(Self, Vec<Heard>)>, Failure> {
        let planted = Planted::of(stored)?;
        if planted.files.is_empty() {
            return Ok(None);
        }
        let (home, host_dir) = (stored.box_dir().join("home"), stored.host_dir());
        Self::of(planted, (&home, owner), host_dir).map(Some)
    }

    fn of(
        mut planted: Planted,
        (home, owner): (&Path, Option<HostId>),
        host_dir: PathBuf,
    ) -> Result<(Self, Vec<Heard>), Failure> {
        let before = planted.clone();
        let standing = planted.stand(home, owner)?;
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let inotify = inotify::init(flags).map_err(|e| unwatched(e, "max_user_instances"))?;
        let mut files = BTreeMap::new();
        for (at, file) in standing.files {
            // By the descriptor: its content was read from it, and its name may lead elsewhere by now.
            let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
            // Between two opens a close keeps the kernel from telling them as one.
            let what =
                WatchFlags::OPEN | WatchFlags::CLOSE | WatchFlags::MODIFY | WatchFlags::DELETE_SELF;
            let watched = inotify::add_watch(&inotify, path, what);
            let wd = watched.map_err(|e| unwatched(e, "max_user_watches"))?;
            let (state, opened) = (State::AsPlanted, BTreeMap::new());
            files.insert(wd, Watched { at, state, opened });
        }
        if planted != before {
            planted.write(&host_dir)?;
        }
        let lost = standing.lost.into_iter();
        let lost = lost.map(|(path, why)| Heard::Lost { path: path.into(), why }).collect();
        Ok((Self { inotify, host_dir, planted, files, overrun: Overrun::Never }, lost))
    }

    /// What can be read when there is something to hear.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.inotify.as_fd().try_clone_to_owned()
    }

    /// Takes in what came since, of the run that goes alone, if one does. It does not wait.
    ///
    /// # Errors
    /// An I/O failure: nobody knows then what was opened.
    pub(crate) fn hear(&mut self, alone: Option<u64>) -> Result<Vec<Heard>, Failure> {
        let mut heard = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut events = Vec::new();
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        while events.len() < AT_ONCE || !reader.is_buffer_empty() {
            match reader.next() {
                Ok(event) => events.push((event.wd(), event.events())),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => {
                    let message = format!("cannot hear who opens planted credentials: {error}");
                    return Err(Failure::told(Kind::Io, message));
                }
            }
        }
        for (wd, what) in events {
            self.take(wd, what, alone, &mut heard)?;
        }
        Ok(heard)
    }

    fn take(
        &mut self,
        wd: i32,
        what: ReadFlags,
        alone: Option<u64>,
        heard: &mut Vec<Heard>,
    ) -> Result<(), Failure> {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            if self.overrun == Overrun::Never {
                self.overrun = Overrun::Told;
                heard.push(Heard::Overrun);
            }
            return Ok(());
        }
        let Some(watched) = self.files.get_mut(&wd) else { return Ok(()) };
        if watched.state == State::Lost {
            // What was on its way is of the box's own file.
            return Ok(());
        }
        let Some(planted) = self.planted.files.get_mut(watched.at) else { return Ok(()) };
        let path = || planted.path.as_str().to_owned();
        if what.contains(ReadFlags::OPEN) {
            let known = watched.opened.contains_key(&alone) || watched.opened.len() < RUNS;
            let run = if known { alone } else { None };
            let count = watched.opened.entry(run).or_default();
            count.all += 1;
            if count.told == 0 {
                count.told = 1;
                heard.push(Heard::Opened { path: path(), run, count: 1 });
            }
        }
        let gone = ReadFlags::DELETE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
        let why = if what.contains(ReadFlags::MODIFY) {
            CanaryLoss::Changed
        } else if what.intersects(gone) {
            CanaryLoss::Removed
        } else {
            return Ok(());
        };
        let untold =
            watched.opened.iter_mut().filter_map(|(run, count)| Some((*run, count.tell()?)));
        heard.extend(untold.map(|(run, count)| Heard::Opened { path: path(), run, count }));
        heard.push(Heard::Lost { path: path(), why });
        planted.lost = Some(why);
        watched.state = State::Lost;
        // One that is gone is not watched as it is.
        inotify::remove_watch(&self.inotify, wd).ok();
        self.planted.write(&self.host_dir)
    }

    /// What was counted of a run, or of none that is known, and not told, which is told now.
    pub(crate) fn untold_of(&mut self, run: Option<u64>) -> Vec<Heard> {
        let Self { files, planted, .. } = self;
        let untold = files.values_mut().flat_map(|watched| {
            let path = planted.files.get(watched.at).map(|file| file.path.as_str().to_owned());
            let count = watched.opened.get_mut(&run).and_then(Count::tell);
            path.zip(count).map(|(path, count)| Heard::Opened { path, run, count })
        });
        untold.collect()
    }

    /// A run is over: tells what was not told, and what it opened in all, and forgets it.
    pub(crate) fn over(&mut self, run: u64) -> (Vec<Heard>, Vec<Opened>) {
        let heard = self.untold_of(Some(run));
        let Self { files, planted, .. } = self;
        let opened = files.values_mut().filter_map(|watched| {
            let count = watched.opened.remove(&Some(run))?.all;
            let path = planted.files.get(watched.at)?.path.as_str().to_owned();
            Some(Opened { path, count })
        });
        (heard, opened.collect())
    }

    /// The session is over: what was counted and not told.
    pub(crate) fn end(mut self) -> Vec<Heard> {
        let runs = self.files.values().flat_map(|watched| watched.opened.keys().copied());
        let runs: BTreeSet<Option<u64>> = runs.collect();
        runs.into_iter().flat_map(|run| self.untold_of(run)).collect()
    }
}

impl Count {
    /// What was counted and not told, if anything.
    fn tell(&mut self) -> Option<u64> {
        let more = self.all - self.told;
        self.told = self.all;
        (more > 0).then_some(more)
    }
}

fn unwatched(error: Errno, setting: &str) -> Failure {
    let message = format!("cannot watch the planted credentials: {}", io::Error::from(error));
    Failure::told(Kind::Unavailable, message).hint(format!("a larger sysctl fs.inotify.{setting}"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use h5i_policy::{Canaries, HomePath};

    use super::super::planted::plant;
    use super::*;

    const NETRC: &str = "~/.netrc";

    fn ground() -> (tempfile::TempDir, Watch) {
        let dir = tempfile::tempdir().unwrap();
        let (home, host) = (dir.path().join("home"), dir.path().join("host"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&host).unwrap();
        let paths = [NETRC, "~/.aws/credentials"].map(|text| HomePath::new(text).unwrap());
        let planted = plant(&home, &Canaries::new(paths.into()).unwrap(), None).unwrap();
        let (watch, lost) = Watch::of(planted, (&home, None), host).unwrap();
        assert_eq!(lost, []);
        (dir, watch)
    }

    fn opened(run: Option<u64>, count: u64) -> Heard {
        Heard::Opened { path: NETRC.to_owned(), run, count }
    }

    #[test]
    fn the_first_open_of_a_run_is_told_at_once_and_the_others_at_its_end() {
        let (dir, mut watch) = ground();
        let netrc = dir.path().join("home/.netrc");
        // What the host looked at before is no open, and neither is a look at names.
        fs::metadata(&netrc).unwrap();
        assert_eq!(watch.hear(Some(1)).unwrap(), []);
        let open = |times: usize| (0..times).for_each(|_| drop(File::open(&netrc).unwrap()));
        open(3);
        assert_eq!(watch.hear(Some(1)).unwrap(), [opened(Some(1), 1)]);
        open(2);
        assert_eq!(watch.hear(Some(1)).unwrap(), []);
        let told = Opened { path: NETRC.to_owned(), count: 5 };
        assert_eq!(watch.over(1), (vec![opened(Some(1), 4)], vec![told]));
        open(1);
        assert_eq!(watch.hear(Some(2)).unwrap(), [opened(Some(2), 1)]);
        open(2);
        assert_eq!(watch.hear(None).unwrap(), [opened(None, 1)]);
        assert_eq!(watch.end(), [opened(None, 1)]);
    }

    #[test]
    fn a_flood_costs_bounded_work_and_is_told_as_one() {
        let (dir, mut watch) = ground();
        let netrc = dir.path().join("home/.netrc");
        // An open and its close are two events, and the kernel keeps this many of them.
        let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let kept: usize = kept.trim().parse().unwrap();
        (0..kept / 2 + 10).for_each(|_| drop(File::open(&netrc).unwrap()));
        let mut heard = Vec::new();
        for _ in 0..kept.div_ceil(AT_ONCE) + 1 {
            heard.extend(watch.hear(None).unwrap());
        }
        assert_eq!(heard, [opened(None, 1), Heard::Overrun]);
        // The host's own closing of what it had looked at stands in the queue as well.
        let Heard::Opened { count, .. } = watch.end().remove(0) else { panic!("opens") };
        let kept = u64::try_from(kept).unwrap();
        assert!((kept / 2 - 4..=kept / 2).contains(&count), "{count} of {kept}");
    }

    #[test]
    fn what_is_undone_is_told_and_not_watched_any_more() {
        let (dir, mut watch) = ground();
        let (home, aws) = (dir.path().join("home"), "~/.aws/credentials".to_owned());
        fs::rename(home.join(".aws"), home.join("elsewhere")).unwrap();
        assert_eq!(watch.hear(None).unwrap(), []);
        fs::remove_file(home.join("elsewhere/credentials")).unwrap();
        let removed = Heard::Lost { path: aws, why: CanaryLoss::Removed };
        assert_eq!(watch.hear(None).unwrap(), [removed]);
        fs::write(home.join(".netrc"), "of the box").unwrap();
        let changed = Heard::Lost { path: NETRC.to_owned(), why: CanaryLoss::Changed };
        assert_eq!(watch.hear(None).unwrap(), [opened(None, 1), changed]);
        drop(File::open(home.join(".netrc")).unwrap());
        assert_eq!(watch.hear(None).unwrap(), []);
        let written = fs::read(dir.path().join("host").join(super::super::FILE)).unwrap();
        let written: Planted = serde_json::from_slice(&written).unwrap();
        assert!(written.files.iter().all(|file| file.lost.is_some()), "{written:?}");
    }
}
