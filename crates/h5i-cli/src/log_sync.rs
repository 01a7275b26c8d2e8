//! Brings a log to the disk once a second while a session lives.

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a record may be in the kernel's hands alone.
const PERIOD: Duration = Duration::from_secs(1);

/// Syncs a log in a thread of its own, which a session of less than a second never starts: no
/// record waits for the disk, and no program of the box does.
#[derive(Debug)]
pub(crate) struct LogSync {
    since: Instant,
    period: Duration,
    file: Option<File>,
    thread: Option<JoinHandle<()>>,
    news: Arc<News>,
}

#[derive(Debug, Default)]
struct News {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    written: bool,
    over: bool,
}

impl News {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs a period after something was written, until nobody writes any more.
    fn bring(&self, file: &File, period: Duration) {
        loop {
            let mut state = self.state();
            while !state.written && !state.over {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let waited = self.changed.wait_timeout_while(state, period, |state| !state.over);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.over {
                return;
            }
            state.written = false;
            drop(state);
            // A disk that fails is told of by the sync before an export, which waits for it.
            file.sync_data().ok();
        }
    }
}

impl LogSync {
    /// Syncs this file from a second after now on, whenever something was written. Without a file
    /// it does nothing.
    #[must_use]
    pub(crate) fn new(file: Option<File>) -> Self {
        Self { since: Instant::now(), period: PERIOD, file, thread: None, news: Arc::default() }
    }

    /// Something was written.
    pub(crate) fn written(&mut self) {
        if self.thread.is_none() {
            if self.since.elapsed() < self.period {
                return;
            }
            self.start();
        }
        let mut state = self.news.state();
        if !state.written {
            state.written = true;
            self.news.changed.notify_all();
        }
    }

    fn start(&mut self) {
        let Some(file) = self.file.take() else { return };
        let (news, period) = (Arc::clone(&self.news), self.period);
        let builder = std::thread::Builder::new().name("h5i-log".to_owned());
        self.thread = builder.stack_size(64 * 1024).spawn(move || news.bring(&file, period)).ok();
    }
}

impl Drop for LogSync {
    fn drop(&mut self) {
        self.news.state().over = true;
        self.news.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_session_starts_no_thread_and_a_long_one_one_that_ends_with_it() {
        let file = tempfile::tempfile().unwrap();
        let mut sync = LogSync::new(file.try_clone().ok());
        assert_eq!(sync.period, Duration::from_secs(1));
        // A machine may be busy for longer.
        sync.period = Duration::from_secs(60);
        sync.written();
        assert!(sync.thread.is_none(), "a session that has just begun");
        sync.since = Instant::now().checked_sub(sync.period).unwrap();
        sync.written();
        assert!(sync.thread.is_some() && sync.news.state().written);
        let mut state = sync.news.state();
        state.written = false;
        drop(state);
        sync.written();
        assert!(sync.news.state().written, "each time that something is written");
        drop(sync);
    }
}
