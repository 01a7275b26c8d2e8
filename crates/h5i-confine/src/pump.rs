//! Carries bytes between a run and its caller, counted.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::outcome::{Limit, Stop};
use crate::session::Shared;

const BUFFER: usize = 64 * 1024;

/// Bytes that a run may still write, over all its outputs.
#[derive(Debug)]
pub(crate) struct Budget {
    shared: Arc<Shared>,
    run: u64,
    allowed: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn new(shared: Arc<Shared>, run: u64, allowed: u64) -> Self {
        Self { shared, run, allowed, used: AtomicU64::new(0) }
    }

    /// Books `wanted` bytes; yields how many of them may pass. The first one too many stops the run.
    fn book(&self, wanted: usize) -> usize {
        let before = self.used.fetch_add(wanted as u64, Ordering::Relaxed);
        let free = usize::try_from(self.allowed.saturating_sub(before)).unwrap_or(usize::MAX);
        if wanted > free {
            let used = before.saturating_add(wanted as u64);
            if let Some(run) = self.shared.state().runs.get_mut(&self.run)
                && run.stop.is_none()
                && run.end.is_none()
            {
                run.stop = Some(Stop { limit: Limit::Output, used, allowed: self.allowed });
            }
            self.shared.wake();
        }
        wanted.min(free)
    }
}

/// Threads that carry a run's bytes.
#[derive(Default)]
pub(crate) struct Pumps {
    stops: Vec<Arc<OwnedFd>>,
    done: Option<(Sender<()>, Receiver<()>)>,
    running: usize,
}

impl std::fmt::Debug for Pumps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pumps").field("running", &self.running).finish_non_exhaustive()
    }
}

impl Pumps {
    /// Starts carrying from `from`, a descriptor of this process alone, to `to`.
    pub(crate) fn start(
        &mut self,
        from: OwnedFd,
        to: OwnedFd,
        budget: Option<Arc<Budget>>,
    ) -> io::Result<()> {
        fcntl_setfl(&from, fcntl_getfl(&from)? | OFlags::NONBLOCK)?;
        self.spawn(from, to, budget)
    }

    /// Starts carrying from a descriptor whose file is shared with others, a terminal say: it is
    /// polled before each read and its flags are left alone. Not waited for at the end.
    pub(crate) fn start_shared(&mut self, from: OwnedFd, to: OwnedFd) -> io::Result<()> {
        self.spawn(from, to, None)?;
        self.running -= 1;
        Ok(())
    }

    fn spawn(&mut self, from: OwnedFd, to: OwnedFd, budget: Option<Arc<Budget>>) -> io::Result<()> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let done = self.done.get_or_insert_with(channel).0.clone();
        let theirs = Arc::clone(&stop);
        thread::Builder::new().name("h5i-pump".to_owned()).stack_size(128 * 1024).spawn(
            move || {
                carry(from, to, budget.as_deref(), &theirs);
                // Nobody waits any more when this fails.
                done.send(()).ok();
            },
        )?;
        self.stops.push(stop);
        self.running += 1;
        Ok(())
    }

    /// Lets the pumps carry what is there and end; yields false when one is still stuck in a write
    /// to its receiver at `deadline`.
    pub(crate) fn finish(&mut self, deadline: Instant) -> bool {
        for stop in &self.stops {
            rustix::io::write(stop, &1u64.to_ne_bytes()).ok();
        }
        let Some((_, done)) = &self.done else { return true };
        while self.running > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            match done.recv_timeout(left.max(Duration::from_millis(1))) {
                Ok(()) => self.running -= 1,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
        true
    }
}

/// Carries until the source ends, the receiver is gone, or `stop` is set and nothing is waiting.
fn carry(from: OwnedFd, to: OwnedFd, budget: Option<&Budget>, stop: &OwnedFd) {
    let mut buffer = vec![0u8; BUFFER];
    loop {
        let mut fds = [
            PollFd::new(&from, PollFlags::IN),
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
        let got = match rustix::io::read(&from, &mut buffer) {
            // A terminal whose other side is closed says EIO.
            Ok(0) | Err(rustix::io::Errno::IO) => return,
            Ok(got) => got,
            Err(rustix::io::Errno::AGAIN) if stopping => return,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        };
        let pass = budget.map_or(got, |budget| budget.book(got));
        if write_all(&to, &buffer[..pass]).is_err() || pass < got {
            return;
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
