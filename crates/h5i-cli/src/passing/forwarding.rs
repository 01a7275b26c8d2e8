//! Hears the signals that are meant for a run.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use h5i_confine::SessionHandle;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::attendant::Attendant;

type Signals = SignalDelivery<UnixStream, SignalOnly>;

/// Hears signals and passes them on to who attends to the run; until there is one they wait.
pub(super) struct Forwarding {
    signals: Signals,
    to: Arc<Mutex<Recipient>>,
}

/// What signals are passed on to.
pub(super) enum Recipient {
    /// Nothing runs yet; these came meanwhile.
    Awaited(Vec<i32>),
    /// Who attends to the run.
    Attendant(Arc<Attendant>),
    /// The run has ended; this is the session in which others go on.
    Others(SessionHandle),
}

impl Recipient {
    /// Passes on what came meanwhile, and from here on what comes.
    pub(super) fn set(to: &Mutex<Self>, attendant: Arc<Attendant>) {
        let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Self::Awaited(came) = &*to {
            came.iter().for_each(|signal| attendant.signal(*signal));
        }
        *to = Self::Attendant(attendant);
    }

    /// The run has ended, and others have not.
    pub(super) fn others_go_on(to: &Mutex<Self>, session: SessionHandle) {
        *to.lock().unwrap_or_else(PoisonError::into_inner) = Self::Others(session);
    }
}

impl Forwarding {
    /// Takes the signals, and yields what tells that there are some.
    pub(super) fn start() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = UnixStream::pair()?;
        let told = read.try_clone()?.into();
        let signals = Signals::with_pipe(read, write, SignalOnly, heard()?)?;
        let to = Arc::new(Mutex::new(Recipient::Awaited(Vec::new())));
        Ok((Self { signals, to }, told))
    }

    pub(super) fn recipient(&self) -> Arc<Mutex<Recipient>> {
        Arc::clone(&self.to)
    }

    /// Passes on what came.
    pub(super) fn forward(&mut self) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        for signal in self.signals.pending() {
            match &mut *to {
                Recipient::Awaited(came) => came.push(signal),
                Recipient::Attendant(attendant) => attendant.signal(signal),
                Recipient::Others(session) if matches!(signal, SIGINT | SIGTERM | SIGQUIT) => {
                    session.stop();
                }
                // The others have terminals of their own.
                Recipient::Others(_) => {}
            }
        }
    }
}

/// The signals that are passed on: all but those that h5i's own caller had ignored, as `nohup` does
/// with SIGHUP and a shell with SIGINT for what it starts in the background.
fn heard() -> io::Result<Vec<i32>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT];
    Ok(all.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).collect())
}
