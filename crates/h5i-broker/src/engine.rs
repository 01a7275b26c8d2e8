//! The thread that serves a box's grants.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;

use crate::answer::Place;
use crate::authority::Authority;
use crate::event::{Denial, End, Program};
use crate::exchange::refuse;
use crate::ledger::{Holding, Ledger};
use crate::peers::{Holder, Peers};
use crate::served::Served;
use crate::setup::Patience;
use crate::wire::Wire;
use crate::{h1, tls};

/// Threads on which sources of credentials, name lookups and questions for programs may block.
const BLOCKING: usize = 16;
/// How long connections have to tell their ends when the broker ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// Between two tries to take a connection when there are no descriptors left.
const NO_DESCRIPTORS: Duration = Duration::from_millis(50);

/// What every connection of a broker shares.
pub(crate) struct Engine {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) served: Vec<Arc<Served>>,
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) patience: Patience,
    pub(crate) authority: Option<Arc<Authority>>,
    /// Becomes true when no more requests are taken.
    pub(crate) closing: watch::Sender<bool>,
}

/// A connected socket of a program, which is to be answered in the place of the service.
#[derive(Debug)]
#[non_exhaustive]
pub struct Diverted {
    /// The socket: TCP or a unix stream.
    pub socket: OwnedFd,
    /// Name of the grant.
    pub grant: String,
    /// What was read from it already, from its first byte on.
    pub already: Vec<u8>,
    /// The run that the program belongs to; the request is refused where nobody knows.
    pub run: Option<u64>,
    /// The program, where it is known.
    pub program: Option<Program>,
}

impl Diverted {
    /// A connection to `grant`'s service of which nothing was read, and nobody knows whose it is.
    #[must_use]
    pub fn new(socket: OwnedFd, grant: impl Into<String>) -> Self {
        Self { socket, grant: grant.into(), already: Vec::new(), run: None, program: None }
    }
}

/// What the thread is told.
pub(crate) enum Job {
    Intercept(Box<Diverted>),
    /// Close connections to services that nobody uses.
    LetGo,
    /// Say that what was done before this is over and told.
    Answer(SyncSender<()>),
}

/// Where a request comes from.
pub(crate) struct Origin {
    pub(crate) served: Arc<Served>,
    /// The run, where the connection tells.
    pub(crate) run: Option<u64>,
    holder: Who,
}

enum Who {
    Known(Option<Holder>),
    Asked(watch::Receiver<Option<Option<Holder>>>),
}

impl Origin {
    /// The program, once it is known or known not to be.
    pub(crate) async fn holder(&self) -> Option<Holder> {
        match &self.holder {
            Who::Known(holder) => holder.clone(),
            Who::Asked(asked) => {
                let mut asked = asked.clone();
                let holder = asked.wait_for(Option::is_some).await.ok()?;
                holder.clone().flatten()
            }
        }
    }
}

/// What the thread waits for.
pub(crate) struct Mouths {
    pub(crate) listeners: Vec<(Arc<Served>, TcpListener)>,
    pub(crate) jobs: mpsc::UnboundedReceiver<Job>,
    pub(crate) fresh: mpsc::UnboundedReceiver<Arc<Holding>>,
    pub(crate) stop: oneshot::Receiver<()>,
}

/// Makes the runtime that [`serve`] runs in.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING)
        .thread_name("h5i-broker-ask")
        .build()
}

/// Serves until it is told to stop, or the sink is closed.
pub(crate) fn serve(runtime: tokio::runtime::Runtime, engine: &Arc<Engine>, mouths: Mouths) {
    runtime.block_on(run(engine, mouths));
    // A source that blocks must not hold up whoever ends the broker.
    runtime.shutdown_background();
}

async fn run(engine: &Arc<Engine>, mouths: Mouths) {
    let Mouths { listeners, mut jobs, mut fresh, mut stop } = mouths;
    let (open, mut all_closed) = mpsc::channel::<()>(1);
    let mut over = engine.ledger.over();
    let mut accepting = Vec::new();
    for (served, listener) in listeners {
        let (engine, open) = (Arc::clone(engine), open.clone());
        accepting.push(tokio::spawn(accept(engine, served, listener, open)));
    }
    loop {
        tokio::select! {
            _ = &mut stop => break,
            _ = over.wait_for(|over| *over) => break,
            Some(holding) = fresh.recv() => watch_over(engine, holding),
            Some(job) = jobs.recv() => match job {
                Job::Intercept(diverted) => intercept(engine, *diverted, open.clone()),
                Job::LetGo => engine.served.iter().for_each(|served| served.let_go()),
                // Nobody waits any more when this fails.
                Job::Answer(waiting) => drop(waiting.try_send(())),
            },
            else => break,
        }
    }
    accepting.iter().for_each(tokio::task::JoinHandle::abort);
    engine.closing.send_replace(true);
    // Every connection holds one end of this channel.
    drop(open);
    // Who is not done by then is cut with the runtime.
    tokio::time::timeout(FAREWELL, all_closed.recv()).await.ok();
}

/// Withdraws a grant when its time is over.
fn watch_over(engine: &Arc<Engine>, holding: Arc<Holding>) {
    let ledger = Arc::clone(&engine.ledger);
    let over = holding.over();
    tokio::spawn(async move {
        if over.await == End::Expired {
            ledger.used_up(&holding, End::Expired);
        }
    });
}

async fn accept(
    engine: Arc<Engine>,
    served: Arc<Served>,
    listener: TcpListener,
    open: mpsc::Sender<()>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if !matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                ) {
                    tokio::time::sleep(NO_DESCRIPTORS).await;
                }
                continue;
            }
        };
        // An answer is written as it comes; one that waits for more would be late.
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let wire = Wire::tcp(stream);
        let place = served.connection().map(Arc::new);
        let holder = match &place {
            Some(place) => ask(&engine, &wire, place),
            None => Who::Known(None),
        };
        let origin = Origin { served: Arc::clone(&served), run: None, holder };
        let (engine, open) = (Arc::clone(&engine), open.clone());
        tokio::spawn(async move {
            match place {
                Some(_place) => {
                    h1::serve(&engine, &origin, (wire.clone(), wire.clone()), &wire).await;
                }
                None => h1::turn_away(&engine, &origin, wire, Denial::AtOnce.into()).await,
            }
            drop(open);
        });
    }
}

/// Begins to ask whose connection it is. The connection keeps its place until that is known: who
/// opens and closes connections can't have more asked than there are places.
fn ask(engine: &Engine, wire: &Wire, place: &Arc<Place>) -> Who {
    let Some((peer, local)) = wire.addresses() else { return Who::Known(None) };
    let (tell, asked) = watch::channel(None);
    let (peers, place) = (Arc::clone(&engine.peers), Arc::clone(place));
    spawn_blocking(move || {
        // Nobody listens when the connection has ended.
        tell.send(Some(peers.holder(peer, local))).ok();
        drop(place);
    });
    Who::Asked(asked)
}

fn intercept(engine: &Arc<Engine>, diverted: Diverted, open: mpsc::Sender<()>) {
    let Diverted { socket, grant, already, run, program } = diverted;
    let Some(served) = engine.served.iter().find(|served| served.name == grant) else { return };
    // A socket that is none is closed; its program sees that.
    let Ok(wire) = Wire::handed(socket, already) else { return };
    let holder = Who::Known(program.map(|program| Holder { run, program }));
    let origin = Arc::new(Origin { served: Arc::clone(served), run, holder });
    let engine = Arc::clone(engine);
    tokio::spawn(async move {
        match origin.served.connection() {
            Some(_place) => tls::serve(&engine, &origin, wire).await,
            None => {
                refuse(&engine, &origin, Denial::AtOnce.into(), None, None).await;
                wire.break_off();
            }
        }
        drop(open);
    });
}
