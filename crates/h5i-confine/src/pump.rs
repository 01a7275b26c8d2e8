//! Carries bytes between a run and its caller, counted.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::elsewhere::Holder;
use crate::outcome::Stop;
use crate::tap::{OutputTap, TappedStream};

const BUFFER: usize = 64 * 1024;
/// The most that a pipe or terminal holds when its run ends, unless root made the pipe larger
/// (`/proc/sys/fs/pipe-max-size`). What others of the session write later is not waited for.
const WAITING: usize = 1024 * 1024;

/// Bytes that a run may still write, over all its outputs.
#[derive(Debug)]
pub(crate) struct Budget {
    holder: Holder,
    allowed: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn new(holder: Holder, allowed: u64) -> Self {
        Self { holder, allowed, used: AtomicU64::new(0) }
    }

    /// Books `wanted` bytes; yields how many of them may pass. The first one too many stops the run.
    fn book(&self, wanted: usize) -> usize {
        let before = self.used.fetch_add(wanted as u64, Ordering::Relaxed);
        let free = usize::try_from(self.allowed.saturating_sub(before)).unwrap_or(usize::MAX);
        if wanted > free {
            let used = before.saturating_add(wanted as u64);
            self.holder.stop(Stop::output(used, self.allowed));
        }
        wanted.min(free)
    }
}

/// Threads that carry a run's bytes.
pub(crate) struct Pumps {
    stops: Vec<Arc<OwnedFd>>,
    news: (Sender<News>, Receiver<News>),
    fault: Arc<OnceLock<rustix::io::Errno>>,
    running: usize,
    tap: Option<Arc<dyn OutputTap>>,
}

/// What who waits for pumps hears.
#[derive(Clone, Copy)]
enum News {
    /// One has carried everything.
    Done,
    /// What is on its way is given up.
    Abandoned,
}

/// What others may do about the output while it is being waited for.
#[derive(Clone, Debug)]
pub(crate) struct OutputHandle {
    news: Sender<News>,
    fault: Arc<OnceLock<rustix::io::Errno>>,
}

impl OutputHandle {
    pub(crate) fn abandon(&self) {
        // Nobody waits any more when this fails.
        self.news.send(News::Abandoned).ok();
    }

    pub(crate) fn error(&self) -> Option<io::Error> {
        self.fault.get().map(|errno| io::Error::from(*errno))
    }
}

impl Default for Pumps {
    fn default() -> Self {
        Self { stops: Vec::new(), news: channel(), fault: Arc::default(), running: 0, tap: None }
    }
}

/// One way: from where to where, and who is told.
struct Way {
    from: OwnedFd,
    to: OwnedFd,
    budget: Option<Arc<Budget>>,
    notice: Option<OwnedFd>,
    fault: Option<Arc<OnceLock<rustix::io::Errno>>>,
    tap: Option<(Arc<dyn OutputTap>, TappedStream)>,
}

impl std::fmt::Debug for Pumps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pumps").field("running", &self.running).finish_non_exhaustive()
    }
}

impl Pumps {
    /// Has output heard on its way from here on.
    pub(crate) fn tapped(&mut self, tap: Option<Arc<dyn OutputTap>>) {
        self.tap = tap;
    }

    /// Whether output is heard on its way, so that all of it must be carried.
    pub(crate) fn is_tapped(&self) -> bool {
        self.tap.is_some()
    }

    /// Starts carrying output from `from`, a descriptor of this process alone, to `to`.
    pub(crate) fn start(
        &mut self,
        stream: TappedStream,
        from: OwnedFd,
        to: OwnedFd,
        budget: Option<Arc<Budget>>,
    ) -> io::Result<()> {
        fcntl_setfl(&from, fcntl_getfl(&from)? | OFlags::NONBLOCK)?;
        self.start_polled(stream, from, to, (budget, None))
    }

    /// Starts carrying output from a descriptor that nobody else reads and whose flags are left
    /// alone, because others write to it. The notice is raised after each part.
    pub(crate) fn start_polled(
        &mut self,
        stream: TappedStream,
        from: OwnedFd,
        to: OwnedFd,
        (budget, notice): (Option<Arc<Budget>>, Option<OwnedFd>),
    ) -> io::Result<()> {
        let fault = Some(Arc::clone(&self.fault));
        let tap = self.tap.as_ref().map(|tap| (Arc::clone(tap), stream));
        self.spawn(Way { from, to, budget, notice, fault, tap })
    }

    /// Starts carrying from a descriptor whose file is shared with others, a terminal say: it is
    /// polled before each read and its flags are left alone. Not waited for at the end.
    pub(crate) fn start_shared(&mut self, from: OwnedFd, to: OwnedFd) -> io::Result<()> {
        self.spawn(Way { from, to, budget: None, notice: None, fault: None, tap: None })?;
        self.running -= 1;
        Ok(())
    }

    /// What others may do about the output.
    pub(crate) fn handle(&self) -> OutputHandle {
        OutputHandle { news: self.news.0.clone(), fault: Arc::clone(&self.fault) }
    }

    fn spawn(&mut self, way: Way) -> io::Result<()> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let waited_for = way.fault.is_some();
        let news = self.news.0.clone();
        let theirs = Arc::clone(&stop);
        thread::Builder::new().name("h5i-pump".to_owned()).stack_size(128 * 1024).spawn(
            move || {
                carry(&way, &theirs);
                drop(way);
                if waited_for {
                    // Nobody waits any more when this fails.
                    news.send(News::Done).ok();
                }
            },
        )?;
        self.stops.push(stop);
        self.running += 1;
        Ok(())
    }

    /// Lets the pumps carry what is there and end; yields false when one is still stuck in a write
    /// to its receiver at the deadline, if there is one, or was given up.
    pub(crate) fn finish(&mut self, deadline: Option<Instant>) -> bool {
        for stop in &self.stops {
            rustix::io::write(stop, &1u64.to_ne_bytes()).ok();
        }
        let news = &self.news.1;
        while self.running > 0 {
            let heard = match deadline {
                None => news.recv().map_err(|_gone| RecvTimeoutError::Disconnected),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    news.recv_timeout(left.max(Duration::from_millis(1)))
                }
            };
            match heard {
                Ok(News::Done) => self.running -= 1,
                Ok(News::Abandoned)
                | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
        true
    }
}

/// Carries until the source ends, the receiver fails, or `stop` is set and nothing is waiting.
fn carry(way: &Way, stop: &OwnedFd) {
    let mut buffer = vec![0u8; BUFFER];
    let mut left = usize::MAX;
    while left > 0 {
        let mut fds = [
            PollFd::new(&way.from, PollFlags::IN),
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let (readable, stopping) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if !readable && stopping {
            return;
        }
        if !readable {
            continue;
        }
        if stopping {
            left = left.min(WAITING);
        }
        let size = left.min(BUFFER);
        let got = match rustix::io::read(&way.from, &mut buffer[..size]) {
            // A terminal whose other side is closed says EIO.
            Ok(0) | Err(rustix::io::Errno::IO) => return,
            Ok(got) => got,
            Err(rustix::io::Errno::AGAIN) if stopping => return,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        };
        if stopping {
            left -= got;
        }
        let pass = way.budget.as_ref().map_or(got, |budget| budget.book(got));
        if let Some((tap, stream)) = &way.tap {
            tap.wrote(*stream, &buffer[..pass]);
        }
        if let Err(error) = write_all(&way.to, &buffer[..pass]) {
            // A reader that goes away is within its rights.
            if let (Some(fault), false) = (&way.fault, error == rustix::io::Errno::PIPE) {
                // The first one is told.
                fault.set(error).ok();
            }
            return;
        }
        if pass < got {
            return;
        }
        if let Some(notice) = &way.notice {
            // A full counter has been raised.
            rustix::io::write(notice, &1u64.to_ne_bytes()).ok();
        }
    }
}

/// Writes to a receiver whose flags are not ours to change.
fn write_all(to: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::AGAIN) => {
                let mut fds = [PollFd::new(to, PollFlags::OUT)];
                rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
