//! A host with a network of its own making, an internet beside it, and a box behind the gate.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use h5i_net::{
    Addresses, Budgets, Event, EventSink, Network, Refusal, Resolve, SinkClosed, SocketRequest,
    requests,
};
use h5i_policy::{HostName, NetMode, NetPolicy, NetRule};

use crate::namespaces;

/// Addresses of the internet: public ones, and one that only looks as if it were reachable.
pub(crate) const PUBLIC: &str = "93.184.216.34";
pub(crate) const OTHER: &str = "93.184.216.35";
pub(crate) const PUBLIC_V6: &str = "2600:1408::34";
pub(crate) const METADATA: &str = "169.254.169.254";
pub(crate) const PRIVATE: &str = "10.1.2.3";
/// A public address of the host itself.
pub(crate) const HOSTS_OWN: &str = "198.41.0.4";
/// How long anything may take before it counts as hanging.
pub(crate) const LONG: Duration = Duration::from_secs(10);

/// What names resolve to on the host; they can be changed at any time.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<(Mutex<Known>, Condvar)>);

#[derive(Default)]
struct Known {
    addresses: BTreeMap<String, Vec<IpAddr>>,
    asked: Vec<String>,
    held: Option<String>,
}

impl Names {
    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|a| a.parse().unwrap()).collect();
        self.0.0.lock().unwrap().addresses.insert(name.to_owned(), addresses);
    }

    /// The names that the host was asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.0.lock().unwrap().asked.clone()
    }

    /// Keeps lookups of names below `domain` waiting until they are let go.
    pub(crate) fn hold(&self, domain: &str) {
        self.0.0.lock().unwrap().held = Some(domain.to_owned());
    }

    pub(crate) fn let_go(&self) {
        self.0.0.lock().unwrap().held = None;
        self.0.1.notify_all();
    }

    /// Waits until the host was asked for a name.
    pub(crate) fn wait_asked(&self, name: &str) {
        let known = self.0.0.lock().unwrap();
        let missing = |known: &mut Known| !known.asked.iter().any(|asked| asked == name);
        let (_known, waited) = self.0.1.wait_timeout_while(known, LONG, missing).unwrap();
        assert!(!waited.timed_out(), "{name}");
    }
}

impl Resolve for Names {
    fn resolve(&self, name: &HostName) -> io::Result<Addresses> {
        let mut known = self.0.0.lock().unwrap();
        known.asked.push(name.to_string());
        self.0.1.notify_all();
        let held =
            |k: &mut Known| k.held.as_ref().is_some_and(|domain| name.as_str().ends_with(domain));
        known = self.0.1.wait_while(known, held).unwrap();
        let found = known.addresses.get(name.as_str()).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Addresses::new(found, Duration::from_secs(60)))
    }
}

/// Keeps every event, and wakes who waits for one.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<Event>>, Condvar);

impl EventSink for Log {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        self.0.lock().unwrap().push(event);
        self.1.notify_all();
        Ok(())
    }
}

impl Log {
    pub(crate) fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// Waits for an event.
    pub(crate) fn wait(&self, wanted: impl Fn(&Event) -> bool) -> Event {
        self.wait_nth(1, wanted)
    }

    /// Waits until so many events are as wanted, and yields the last of them.
    pub(crate) fn wait_nth(&self, count: usize, wanted: impl Fn(&Event) -> bool) -> Event {
        let mut events = self.0.lock().unwrap();
        let end = Instant::now() + LONG;
        loop {
            if let Some(found) = events.iter().filter(|event| wanted(event)).nth(count - 1) {
                return found.clone();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no such event in {events:#?}");
            events = self.1.wait_timeout(events, left).unwrap().0;
        }
    }

    /// Waits until a flow was refused, or ended, for this reason.
    pub(crate) fn wait_refusal(&self, wanted: Refusal) -> Event {
        self.wait(|event| refusal(event) == Some(wanted))
    }
}

pub(crate) fn refusal(event: &Event) -> Option<Refusal> {
    match event {
        Event::FlowRefused { reason, .. } => Some(*reason),
        Event::FlowEnded(ended) => match ended.verdict {
            h5i_net::Verdict::Refused(reason) => Some(reason),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) struct World {
    pub(crate) internet: OwnedFd,
    pub(crate) inside: OwnedFd,
    pub(crate) names: Names,
    pub(crate) log: Arc<Log>,
    pub(crate) network: Option<Network>,
}

pub(crate) fn policy(mode: NetMode, rules: &[&str]) -> NetPolicy {
    let mut policy = NetPolicy::default();
    policy.mode = mode;
    policy.allow = rules.iter().map(|rule| NetRule::new(rule).unwrap()).collect();
    policy
}

impl World {
    /// A host and an internet; the calling thread is the host's.
    pub(crate) fn bare() -> Self {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let inside = namespaces::new();
        let internet = namespaces::new();
        for address in [PUBLIC, OTHER, METADATA, PRIVATE, PUBLIC_V6] {
            namespaces::loopback_address(ip(address));
        }
        for last in 1..=8_u8 {
            namespaces::loopback_address([93, 184, 217, last].into());
        }
        // The thread stays in the host's.
        namespaces::new();
        namespaces::lay_cable(&internet);
        namespaces::loopback_address(ip(HOSTS_OWN));
        namespaces::cable_address(ip("192.168.77.1"), 30);
        namespaces::cable_address(ip("fd77::1"), 126);
        namespaces::within(&internet, || {
            namespaces::cable_address(ip("192.168.77.2"), 30);
            namespaces::cable_address(ip("fd77::2"), 126);
        });
        namespaces::default_route(ip("192.168.77.2"));
        namespaces::default_route(ip("fd77::2"));
        let (names, log) = (Names::default(), Arc::new(Log::default()));
        Self { internet, inside, names, log, network: None }
    }

    /// The same with a box behind the gate.
    pub(crate) fn new(mode: NetMode, rules: &[&str]) -> Self {
        Self::with_budgets(mode, rules, Budgets::default())
    }

    pub(crate) fn with_budgets(mode: NetMode, rules: &[&str], budgets: Budgets) -> Self {
        let mut world = Self::bare();
        let policy = policy(mode, rules);
        let sockets = world.sockets(&requests(&policy).unwrap());
        world.network = Some(world.start(sockets, &policy, budgets));
        world
    }

    /// Sockets of the box.
    pub(crate) fn sockets(&self, asked: &[SocketRequest]) -> Vec<OwnedFd> {
        let make = |one: &SocketRequest| {
            // SAFETY: numbers only.
            let socket = unsafe { libc::socket(one.domain, one.kind, one.protocol) };
            assert!(socket >= 0, "{}", io::Error::last_os_error());
            // SAFETY: the descriptor was just made, and nobody else has it.
            unsafe { OwnedFd::from_raw_fd(socket) }
        };
        namespaces::within(&self.inside, || asked.iter().map(make).collect())
    }

    /// Starts a network on sockets of a box.
    pub(crate) fn start(
        &self,
        sockets: Vec<OwnedFd>,
        policy: &NetPolicy,
        budgets: Budgets,
    ) -> Network {
        let sink = Arc::clone(&self.log) as Arc<dyn EventSink>;
        let names = Arc::new(self.names.clone());
        Network::start(sockets, policy, budgets, names, sink).unwrap()
    }

    pub(crate) fn network(&self) -> &Network {
        self.network.as_ref().unwrap()
    }

    /// Does something as a program of the box.
    pub(crate) fn inside<T>(&self, act: impl FnOnce() -> T) -> T {
        namespaces::within(&self.inside, act)
    }

    /// Forgets what names resolved to a moment ago, without waiting for its time.
    pub(crate) fn forget_answers(&self) {
        self.network().replace(&self.network().policy()).unwrap();
    }

    /// A listener of the internet.
    pub(crate) fn listen(&self, at: &str) -> TcpListener {
        namespaces::within(&self.internet, || TcpListener::bind(at).unwrap())
    }

    /// Connects from the box.
    pub(crate) fn connect(&self, to: &str) -> io::Result<TcpStream> {
        self.inside(|| connect(to.parse().unwrap()))
    }

    /// Connects from the box, says something and reads to the end.
    pub(crate) fn talk(&self, to: &str, words: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = self.connect(to)?;
        stream.write_all(words)?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    }
}

/// Connects with an end to all waiting.
pub(crate) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, LONG)?;
    stream.set_read_timeout(Some(LONG))?;
    stream.set_write_timeout(Some(LONG))?;
    Ok(stream)
}

/// An IPv6 address and port as text.
pub(crate) fn v6(address: &str, port: u16) -> String {
    format!("[{}]:{port}", address.parse::<Ipv6Addr>().unwrap())
}
