//! Threads on which names are resolved, so that a slow one keeps nobody else waiting.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use h5i_policy::HostName;

use super::resolve::{Addresses, Resolve};

/// Lookups at once. Threads are made when they are needed, and end with the pool; one that is in a
/// lookup then ends after it.
const THREADS: usize = 16;

/// A finished lookup.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: HostName,
    pub(super) addresses: io::Result<Addresses>,
}

pub(super) struct Pool {
    resolve: Arc<dyn Resolve>,
    jobs: Sender<HostName>,
    taken: Arc<Mutex<Receiver<HostName>>>,
    found: Receiver<Found>,
    tell: Sender<Found>,
    wake: Arc<OwnedFd>,
    threads: usize,
    under_way: usize,
}

impl Pool {
    /// `wake` is an eventfd that is raised when a lookup is done.
    pub(super) fn new(resolve: Arc<dyn Resolve>, wake: Arc<OwnedFd>) -> Self {
        let (jobs, taken) = channel();
        let (tell, found) = channel();
        let taken = Arc::new(Mutex::new(taken));
        Self { resolve, jobs, taken, found, tell, wake, threads: 0, under_way: 0 }
    }

    /// Begins a lookup.
    ///
    /// # Errors
    /// When there is no thread, and none can be made.
    pub(super) fn begin(&mut self, name: HostName) -> io::Result<()> {
        if self.under_way >= self.threads && self.threads < THREADS {
            match self.spawn() {
                Ok(()) => self.threads += 1,
                Err(error) if self.threads == 0 => return Err(error),
                Err(_) => {}
            }
        }
        self.under_way += 1;
        self.jobs.send(name).map_err(|_e| io::ErrorKind::BrokenPipe.into())
    }

    /// The next finished lookup.
    pub(super) fn take(&mut self) -> Option<Found> {
        let found = self.found.try_recv().ok()?;
        self.under_way = self.under_way.saturating_sub(1);
        Some(found)
    }

    fn spawn(&self) -> io::Result<()> {
        let (resolve, taken) = (Arc::clone(&self.resolve), Arc::clone(&self.taken));
        let (tell, wake) = (self.tell.clone(), Arc::clone(&self.wake));
        let work = move || loop {
            let job = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(name) = job else { return };
            let looked_up = catch_unwind(AssertUnwindSafe(|| resolve.resolve(&name)));
            let addresses = looked_up.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            if tell.send(Found { name, addresses }).is_err() {
                return;
            }
            // A counter that is full is awake anyway.
            rustix::io::write(&wake, &1_u64.to_ne_bytes()).ok();
        };
        thread::Builder::new().name("h5i-resolve".to_owned()).spawn(work).map(drop)
    }
}
