//! A broker, as whoever composes a box holds it.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use h5i_policy::Via;
use tokio::sync::{mpsc, oneshot, watch};

use crate::authority::Authority;
use crate::engine::{Diverted, Engine, Job, Mouths, runtime, serve};
use crate::error::{ChangeError, IssueError, StartError};
use crate::event::EventSink;
use crate::issue::Issue;
use crate::ledger::{Entry, Ledger};
use crate::served::{Crowd, Served};
use crate::setup::{Service, Setup};
use crate::state::GrantState;
use crate::upstream::{Connector, Trust, Upstream};

/// How long the end of a run's grants waits for what was answered to be told.
const ANSWER: Duration = Duration::from_secs(1);
/// Connections that wait to be taken, for one grant.
const BACKLOG: i32 = 1024;

/// Serves the grants of one box, from one thread of its own. It ends when this value goes: nothing
/// is carried any more then, and every end has been told.
///
/// Memory is bounded for each request under way by 64 KiB of a head, 64 KiB of a body that is kept
/// to be sent again until its answer begins, and what waits unread in TLS and HTTP/2 (128 KiB a
/// stream); a stream that is idle holds less than 70 KiB, most of it TLS. How many there are at once
/// is bounded over all grants: [`Setup::at_once`].
pub struct Broker {
    ledger: Arc<Ledger>,
    authority: Option<String>,
    grants: BTreeSet<String>,
    jobs: mpsc::UnboundedSender<Job>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").field("grants", &self.grants).finish_non_exhaustive()
    }
}

impl Broker {
    /// Starts to serve. Nobody holds a grant before it is [issued](Broker::issue).
    ///
    /// # Errors
    /// [`StartError`]; nothing is served then.
    pub fn start(setup: Setup, sink: Arc<dyn EventSink>) -> Result<Self, StartError> {
        let Setup { grants, roots, resolver, peers, patience, at_once } = setup;
        let crowd = Crowd::of(at_once);
        let trust = Arc::new(Trust::new(roots).map_err(StartError::Root)?);
        let intercepted = grants.iter().filter(|one| one.grant.via == Via::Intercept);
        let hosts: BTreeSet<_> = intercepted.map(|one| one.grant.host.clone()).collect();
        let authority = match hosts.is_empty() {
            true => None,
            false => Some(Arc::new(Authority::new(hosts.iter()).map_err(StartError::Authority)?)),
        };
        let mut names = BTreeSet::new();
        let (mut entries, mut served, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
        for (place, service) in grants.into_iter().enumerate() {
            let Service { name, grant, credentials, stamp, listener } = service;
            if !names.insert(name.clone()) {
                return Err(StartError::Twice { name });
            }
            let listening = match (grant.via, listener) {
                (Via::Intercept, _) => None,
                (_, None) => return Err(StartError::NoListener { name }),
                (_, Some(socket)) => Some(listen(socket)?),
            };
            let port = listening.as_ref().map(|(_, address)| address.port());
            let connector = Connector {
                host: grant.host.clone(),
                port: grant.port,
                resolver: Arc::clone(&resolver),
                trust: Arc::clone(&trust),
                patience: patience.connect,
            };
            let base_url = listening.as_ref().map(|(_, address)| format!("http://{address}"));
            entries.push(Entry { name: name.clone(), grant: grant.clone(), base_url });
            let way = (Upstream::new(connector), port);
            let mut one = Served::new(place, (name, grant), credentials, way, crowd.clone());
            one.stamp = stamp;
            let one = Arc::new(one);
            listeners.extend(listening.map(|(listener, _)| (Arc::clone(&one), listener)));
            served.push(one);
        }
        let (fresh, to_watch) = mpsc::unbounded_channel();
        let (jobs, to_do) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let ledger = Arc::new(Ledger::new(entries, sink, fresh));
        let pem = authority.as_ref().map(|authority| authority.pem());
        let closing = watch::Sender::new(false);
        let engine = Arc::new(Engine {
            ledger: Arc::clone(&ledger),
            served,
            peers,
            patience,
            authority,
            closing,
        });
        let step = |step: &'static str| move |source| StartError::Step { step, source };
        let runtime = runtime().map_err(step("make the broker's runtime"))?;
        let mouths = Mouths { listeners, jobs: to_do, fresh: to_watch, stop: stopped };
        let work = move || serve(runtime, &engine, mouths);
        let thread = std::thread::Builder::new().name("h5i-broker".to_owned()).spawn(work);
        let thread = thread.map_err(step("start the broker's thread"))?;
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self { ledger, authority: pem, grants: names, jobs, stop, thread })
    }

    /// Gives a run its grants, and yields the variables by which its programs find them: for each
    /// grant by `reverse`, where the broker is and a token of 256 random bits, of which the broker
    /// keeps a digest only. A grant that the run holds already gets a new token and keeps what was
    /// used of it.
    ///
    /// Each grant is an [`Event::Issued`](crate::Event::Issued) before this returns.
    ///
    /// # Errors
    /// [`IssueError`]; the run gets none of them then.
    pub fn issue(&self, issue: &Issue) -> Result<Vec<(String, String)>, IssueError> {
        self.ledger.issue(issue)
    }

    /// A run is over: its grants hold no more, what is open is cut within a second. What its
    /// programs were answered before this is told before the end of its grants, unless this broker's
    /// thread has no time for a second.
    pub fn end(&self, run: u64) {
        let (heard, answer) = sync_channel(1);
        if self.jobs.send(Job::Answer(heard)).is_ok() {
            answer.recv_timeout(ANSWER).ok();
        }
        self.ledger.end(run);
    }

    /// Takes a grant back from a run, or from all, for good. What is open is cut within a second,
    /// and nothing begins once this has returned.
    ///
    /// # Errors
    /// [`ChangeError`], when there is no such grant, or the run does not hold it.
    pub fn revoke(&self, grant: &str, run: Option<u64>) -> Result<(), ChangeError> {
        self.ledger.revoke(grant, run)
    }

    /// Has a grant end later, for all runs that hold it; yields when that is. Budgets stay as they
    /// are.
    ///
    /// # Errors
    /// [`ChangeError`], when there is no such grant, or no run holds it for a limited time.
    pub fn extend(&self, grant: &str, by: Duration) -> Result<SystemTime, ChangeError> {
        self.ledger.extend(grant, by)
    }

    /// Cuts everything that is open, within a second, and lets nothing begin. Every token is worth
    /// nothing from now on.
    pub fn suspend(&self) {
        self.ledger.suspend();
        self.let_go();
    }

    /// Takes a suspension back. Intercepted grants go on; tokens stay worthless, and a run that is
    /// to go on with a grant by `reverse` is issued a new one.
    pub fn resume(&self) {
        self.ledger.resume();
    }

    fn let_go(&self) {
        // The thread is gone when the sink is closed; then nothing is open.
        self.jobs.send(Job::LetGo).ok();
    }

    /// Every grant that a run holds, and the last 256 that one has held.
    #[must_use]
    pub fn state(&self) -> Vec<GrantState> {
        self.ledger.state()
    }

    /// The certificate, in PEM, that the box has to trust for grants by `intercept`; `None` where
    /// there are none. Its key was made for this broker and is in no file.
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Answers a connection of the box in the place of its service. It has to begin with TLS for
    /// the grant's host.
    ///
    /// # Errors
    /// [`ChangeError`], when there is no such grant or the broker has ended; the socket is closed
    /// then.
    pub fn intercept(&self, diverted: Diverted) -> Result<(), ChangeError> {
        if !self.grants.contains(&diverted.grant) {
            return Err(ChangeError::NoGrant { name: diverted.grant });
        }
        let job = Job::Intercept(Box::new(diverted));
        self.jobs.send(job).map_err(|_gone| ChangeError::Ended)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.ledger.withdraw_all();
        // The thread is gone already when the sink was closed.
        self.stop.take().map(|stop| stop.send(()));
        // A thread that has panicked has nothing more to say.
        self.thread.take().map(|thread| thread.join().ok());
        self.ledger.end_all();
    }
}

/// Binds a socket to a free port of loopback, where it was made.
fn listen(socket: OwnedFd) -> Result<(TcpListener, SocketAddr), StartError> {
    let step = |step: &'static str| {
        move |source: rustix::io::Errno| StartError::Step { step, source: io::Error::from(source) }
    };
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    rustix::net::bind(&socket, &any).map_err(step("bind a socket for a grant"))?;
    rustix::net::listen(&socket, BACKLOG).map_err(step("listen for a grant"))?;
    rustix::io::ioctl_fionbio(&socket, true).map_err(step("make a socket that does not block"))?;
    let listener = TcpListener::from(socket);
    let address = listener.local_addr();
    let address =
        address.map_err(|source| StartError::Step { step: "find a grant's port", source })?;
    Ok((listener, address))
}
