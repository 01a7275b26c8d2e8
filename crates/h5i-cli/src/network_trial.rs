//! Tries a box's network on this host: the real gate, resolver and relay.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use h5i_confine::{Access, HOME, HostFacts, Layout, NoSink, PlanError, SessionHandle, WORKSPACE};
use h5i_net::{Event, EventSink, HOST_V4, RESOLVER, SinkClosed};
use h5i_policy::{NetMode, NetRule, ResolvedPolicy, Tier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::AddressFamily;

use crate::box_network::Doors;
use crate::box_plan;
use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::running::spawn_failure;
use crate::store::{HostId, Store, replace_file};

/// How long an answer may take, in seconds.
const PATIENCE: i64 = 10;
/// Where a yes is kept.
const ANSWER: &str = "network-works";

/// One thing that was tried.
#[derive(Debug)]
pub(crate) struct Tried {
    /// Its name.
    pub(crate) mechanism: &'static str,
    /// What was attempted.
    pub(crate) attempts: &'static str,
    /// Why it does not hold.
    pub(crate) problem: Option<String>,
}

/// Refuses where this host can't give a box its network; it is tried once for this boot, kernel and
/// user.
///
/// # Errors
/// `unavailable`, with what does not work.
pub(crate) fn check(store: &Store, facts: &HostFacts) -> Result<(), Failure> {
    let question = question(facts)?;
    let known = fs::read_to_string(store.root().join(ANSWER));
    if known.is_ok_and(|known| known == question) {
        return Ok(());
    }
    for tried in attempt(facts)? {
        if let Some(problem) = tried.problem {
            let message = format!("this host can't run the supervised tier: {problem}");
            return Err(Failure::told(Kind::Unavailable, message)
                .hint("h5i box probe --tier supervised, or --tier process"));
        }
    }
    // Where there is no state directory yet, it is tried again the next time.
    if store.root().is_dir() {
        replace_file(store.root(), ANSWER, question.as_bytes())?;
    }
    Ok(())
}

/// Starts a box without a program, with two servers on the host's loopback of which one is listed.
///
/// # Errors
/// A failure when the trial itself can't be made.
pub(crate) fn attempt(facts: &HostFacts) -> Result<Vec<Tried>, Failure> {
    let io = |error: io::Error| {
        Failure::told(Kind::Io, format!("could not try the network: {error}"))
            .hint("see that this host's loopback is up and descriptors are left (ulimit -n)")
    };
    let (listed, other) = (Server::start().map_err(io)?, Server::start().map_err(io)?);
    let mut policy = ResolvedPolicy::default();
    (policy.tier, policy.net.mode) = (Tier::Supervised, NetMode::Allow);
    let rule = NetRule::new(&format!("host:{}", listed.port))
        .map_err(|e| Failure::new(Kind::Internal, &e))?;
    policy.net.allow.insert(rule);
    let seen = Arc::new(Seen::default());
    let started = begin(facts, &policy, &seen);
    let (session, network) = match started {
        Ok(started) => started,
        Err(failure) => return Ok(vec![Tried::gate(Some(failure.message))]),
    };
    let handle = session.handle();
    let relay = relayed(&handle, listed.port);
    let gate = refused(&handle, other.port);
    let resolver = unlisted_name(&handle);
    session.end();
    // It tells what it counted.
    drop(network);
    let gate = gate.or_else(|| seen.lacks(other.port));
    Ok(vec![
        Tried::gate(gate),
        Tried {
            mechanism: "network relay",
            attempts: "a flow to a listed server of the host; must carry its bytes",
            problem: relay,
        },
        Tried {
            mechanism: "network resolver",
            attempts: "a question for a name that no rule lists; must be refused",
            problem: resolver,
        },
    ])
}

impl Tried {
    const fn gate(problem: Option<String>) -> Self {
        Self {
            mechanism: "network gate",
            attempts: "a flow to a server that no rule lists; must be refused and recorded",
            problem,
        }
    }
}

fn begin(
    facts: &HostFacts,
    policy: &ResolvedPolicy,
    seen: &Arc<Seen>,
) -> Result<(h5i_confine::Session, h5i_net::Network), Failure> {
    // Nothing is run in it, so these need be nobody's.
    let mut layout =
        Layout::default().place("/usr", WORKSPACE, Access::Read).place("/usr", HOME, Access::Read);
    if facts.uid == 0 {
        layout = layout.host_id(HostId::first().number());
    }
    let mut plan = h5i_confine::Plan::new(policy, &layout, facts)
        .map_err(|e: PlanError| box_plan::plan_failure(e))?;
    let doors = Doors::ask(&mut plan, policy)?;
    let mut session = plan
        .start(Arc::new(NoSink))
        .map_err(|e| spawn_failure(&h5i_confine::SpawnError::Session(e)))?;
    let doors = doors.ok_or_else(|| Failure::told(Kind::Internal, "a tier without doors"))?;
    let sink: Arc<dyn EventSink> = Arc::<Seen>::clone(seen);
    let network = doors.open(&mut session, policy, sink)?;
    Ok((session, network))
}

/// A connection from inside of the box's network.
fn connect(session: &SessionHandle, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = session.tcp_socket(AddressFamily::INET)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS) => {
            let mut fds = [PollFd::new(&socket, PollFlags::OUT)];
            let patience = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
            if rustix::io::retry_on_intr(|| poll(&mut fds, Some(&patience)))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            rustix::net::sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    rustix::io::ioctl_fionbio(&socket, false)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(std::time::Duration::from_secs(2)))?;
    Ok(stream)
}

fn host(port: u16) -> SocketAddr {
    SocketAddr::from((HOST_V4, port))
}

fn relayed(session: &SessionHandle, port: u16) -> Option<String> {
    let asked = connect(session, host(port)).and_then(|mut stream| {
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    match asked {
        Ok(answer) if answer == WORD => None,
        Ok(_) => Some("a listed flow lost its bytes".to_owned()),
        Err(error) => Some(format!("a listed flow is not carried: {error}")),
    }
}

fn refused(session: &SessionHandle, port: u16) -> Option<String> {
    match connect(session, host(port)) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => None,
        Err(error) => Some(format!("a flow that no rule lists got another error: {error}")),
        Ok(_) => Some("a flow that no rule lists was let out".to_owned()),
    }
}

fn unlisted_name(session: &SessionHandle) -> Option<String> {
    /// A question for the address of `a.invalid` (RFC 1035 section 4, over TCP: its length first).
    const QUESTION: &[u8] =
        b"\x00\x1b\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07invalid\x00\x00\x01\x00\x01";
    const REFUSED: u8 = 5;
    let to = SocketAddr::from((RESOLVER, 53));
    let asked = connect(session, to).and_then(|mut stream| {
        stream.write_all(QUESTION)?;
        let mut head = [0; 6];
        stream.read_exact(&mut head)?;
        Ok(head[5] & 0xf)
    });
    match asked {
        Ok(REFUSED) => None,
        Ok(code) => Some(format!("a name that no rule lists was answered with code {code}")),
        Err(error) => Some(format!("the resolver does not answer: {error}")),
    }
}

/// What servers of a trial say.
const WORD: &str = "reached\n";

/// A server on the host's loopback that says one word to whoever comes.
struct Server {
    port: u16,
    listener: TcpListener,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (port, accepting) = (listener.local_addr()?.port(), listener.try_clone()?);
        let serve = move || {
            while let Ok((mut stream, _)) = accepting.accept() {
                // Who hung up meanwhile reads nothing.
                stream.write_all(WORD.as_bytes()).ok();
            }
        };
        let thread = std::thread::Builder::new().name("h5i-trial".to_owned()).spawn(serve)?;
        Ok(Self { port, listener, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends the accept that is waiting.
        rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both).ok();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The ports whose refusal was told.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<u16>>);

impl Seen {
    fn lacks(&self, port: u16) -> Option<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!seen.contains(&port)).then(|| "a refused flow is not on record".to_owned())
    }
}

impl EventSink for Seen {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        if let Event::RefusedAddress { protocol: h5i_net::RefusedProtocol::Tcp(port), .. } = event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(port);
        }
        Ok(())
    }
}

/// All that the answer depends on.
fn question(facts: &HostFacts) -> Result<String, PathError> {
    let read = |path: &str| {
        let path = Path::new(path);
        fs::read_to_string(path).map_err(PathError::at(Action::Read, path))
    };
    let boot = read("/proc/sys/kernel/random/boot_id")?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    Ok(format!("{boot}{kernel}uid {}\n", facts.uid))
}
