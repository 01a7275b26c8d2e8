//! A box's network: the one value that its owner holds.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use h5i_policy::{HostName, NetMode, NetPolicy, NetRule, Protocol};
use rustix::event::EventfdFlags;
use rustix::event::epoll::CreateFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, getrlimit};

use crate::address::{BOX_V4, BOX_V6, RESOLVER, RESOLVER_PORT};
use crate::budget::{Budgets, Spending};
use crate::datagrams::Datagrams;
use crate::divert::{Diversion, Divert};
use crate::engine::{Command, DATAGRAM_FLOW, Engine, FLOW};
use crate::error::{ChangeError, PlanError, StartError};
use crate::event::EventSink;
use crate::gate::{Listener, Notices};
use crate::links;
use crate::netlink::Netlink;
use crate::relay::Relay;
use crate::resolver::{Resolve, Resolver};
use crate::sockets::{Sockets, sockets_request};
use crate::table::Table;

/// A socket that must be made in the box's network namespace: the arguments of socket(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// Address family.
    pub domain: i32,
    /// Type, without flags.
    pub kind: i32,
    /// Protocol.
    pub protocol: i32,
}

/// Connections that may wait at a listener.
const BACKLOG: i32 = 4096;

/// The sockets that a network needs: made in the box's network namespace, in this order, *before*
/// their maker gives up its capabilities there, and handed to [`Network::start`].
///
/// Three families of netlink go on being heeded from outside, by the owner of the box's user
/// namespace; nothing in the box holds them.
///
/// # Errors
/// [`PlanError`], for a policy that can't be served.
pub fn requests(policy: &NetPolicy) -> Result<[SocketRequest; 10], PlanError> {
    const NETLINK_ROUTE: i32 = 0;
    const NETLINK_NETFILTER: i32 = 12;
    check(policy)?;
    let diag = sockets_request();
    let netlink = |protocol| (libc::AF_NETLINK, libc::SOCK_RAW, protocol);
    let all = [
        netlink(NETLINK_ROUTE),
        netlink(NETLINK_NETFILTER),
        netlink(NETLINK_NETFILTER),
        (libc::AF_INET, libc::SOCK_STREAM, 0),
        (libc::AF_INET6, libc::SOCK_STREAM, 0),
        (libc::AF_INET, libc::SOCK_DGRAM, 0),
        (libc::AF_INET6, libc::SOCK_DGRAM, 0),
        (libc::AF_INET, libc::SOCK_DGRAM, 0),
        (libc::AF_INET, libc::SOCK_STREAM, 0),
        (diag.domain, diag.kind, diag.protocol),
    ];
    Ok(all.map(|(domain, kind, protocol)| SocketRequest { domain, kind, protocol }))
}

fn check(policy: &NetPolicy) -> Result<(), PlanError> {
    if !matches!(policy.mode, NetMode::None | NetMode::Allow | NetMode::Open) {
        return Err(PlanError::Mode { mode: policy.mode });
    }
    Ok(())
}

/// A box's network. Holding one proves that, when it was made, the gate stood, the resolver
/// answered and the relay listened. Dropping it closes every flow and every socket; the box then
/// reaches nothing but itself, and hears so of a destination that it never tried before within two
/// seconds, not at once.
pub struct Network {
    commands: Sender<Command>,
    wake: Arc<OwnedFd>,
    policy: Mutex<NetPolicy>,
    ipv6: bool,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Network {
    /// Sets everything up and returns when it is in place: before that, no program of the box may
    /// run. `sockets` are those that [`requests`] asked for, in that order.
    ///
    /// # Errors
    /// [`StartError`]; a failing step is named.
    pub fn start(
        sockets: Vec<OwnedFd>,
        policy: &NetPolicy,
        budgets: Budgets,
        resolve: Arc<dyn Resolve>,
        sink: Arc<dyn EventSink>,
    ) -> Result<Self, StartError> {
        let asked = requests(policy)?.len();
        let given = sockets.len();
        let sockets: [OwnedFd; 10] =
            sockets.try_into().map_err(|_e| StartError::Sockets { given, asked })?;
        let [route, gate, notices, tcp4, tcp6, udp4, udp6, datagrams, streams, diag] = sockets;
        let wake = Arc::new(at("make an eventfd", eventfd)?);
        let poll = Arc::new(at("make an epoll set", || {
            Ok(rustix::event::epoll::create(CreateFlags::CLOEXEC)?)
        })?);
        let ipv6 =
            at("route the box's network to loopback", || links::set_up(&mut Netlink::new(route)))?;
        let mut listeners = vec![listener(tcp4, BOX_V4.into())?];
        let mut carried = vec![own(udp4, BOX_V4.into())?];
        if ipv6 {
            listeners.push(listener(tcp6, BOX_V6.into())?);
            carried.push(own(udp6, BOX_V6.into())?);
        }
        let relay: Vec<Listener> = [(Protocol::Tcp, &listeners), (Protocol::Udp, &carried)]
            .into_iter()
            .flat_map(|(protocol, all)| {
                all.iter().map(move |(_, at)| Listener { protocol, at: *at })
            })
            .collect();
        let resolver_at = SocketAddr::from((RESOLVER, RESOLVER_PORT));
        at("bind the resolver", || bind(&datagrams, resolver_at))?;
        at("bind the resolver", || bind(&streams, resolver_at))?;
        at("listen for the resolver", || listen(&streams))?;
        let host_route = at("make a route socket of the host", host_route)?;
        let now = Instant::now();
        // A packet that waits in a queue which nobody serves is lost: so this comes first.
        let (notices, holds) =
            at("listen to the gate", || Notices::subscribe(Netlink::new(notices)))?;
        let table = at("set the gate up", || {
            let sockets = (Netlink::new(gate), Sockets::new(diag), Netlink::new(host_route));
            Table::set_up(policy, &relay, sockets, holds)
        })?;
        let resolver = Resolver::new(
            (datagrams, streams),
            resolve,
            Arc::clone(&wake),
            Arc::clone(&sink),
            budgets.lookups,
        );
        let open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let spending = Spending::new(budgets, open_files, now);
        let listeners = listeners.into_iter().map(|(socket, _)| socket).collect();
        let (flows, datagram_flows) =
            ((Arc::clone(&poll), FLOW), (Arc::clone(&poll), DATAGRAM_FLOW));
        let carried = Datagrams::new(carried, datagram_flows, Arc::clone(&sink));
        let relay = Relay::new(listeners, flows, Arc::clone(&sink), spending);
        let (commands, received) = channel();
        let told = BTreeMap::new();
        let engine = Engine {
            poll,
            wake: Arc::clone(&wake),
            commands: received,
            table,
            notices,
            resolver,
            relay,
            carried,
            sink,
            told,
        };
        at("watch the network's sockets", || engine.watch())?;
        let thread = at("make the network's thread", || {
            std::thread::Builder::new().name("h5i-net".to_owned()).spawn(|| engine.run())
        })?;
        let policy = Mutex::new(policy.clone());
        Ok(Self { commands, wake, policy, ipv6, thread: Some(thread) })
    }

    /// Whether the box has IPv6. Without it, as where the host has it turned off, every IPv6
    /// destination is unreachable at once.
    #[must_use]
    pub fn has_ipv6(&self) -> bool {
        self.ipv6
    }

    /// Puts other rules in force. When it returns, what they do not allow is refused, and flows
    /// that they do not allow are closed.
    ///
    /// # Errors
    /// [`ChangeError`]; where the gate itself can't be changed the network ends.
    pub fn replace(&self, policy: &NetPolicy) -> Result<(), ChangeError> {
        check(policy)?;
        let mut held = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        self.ask(|done| Command::Replace(policy.clone(), done))?.map_err(ChangeError::Gate)?;
        *held = policy.clone();
        Ok(())
    }

    /// Allows one rule more; a network of mode `none` becomes one of mode `allow`.
    ///
    /// # Errors
    /// As [`Network::replace`].
    pub fn allow(&self, rule: &NetRule) -> Result<(), ChangeError> {
        let mut policy = self.policy();
        if policy.mode == NetMode::None {
            policy.mode = NetMode::Allow;
        }
        policy.allow.insert(rule.clone());
        self.replace(&policy)
    }

    /// Takes one rule back, and closes what only it allowed.
    ///
    /// # Errors
    /// As [`Network::replace`].
    pub fn revoke(&self, rule: &NetRule) -> Result<(), ChangeError> {
        let mut policy = self.policy();
        policy.allow.remove(rule);
        self.replace(&policy)
    }

    /// Closes everything; from here on nothing is allowed.
    ///
    /// # Errors
    /// As [`Network::replace`].
    pub fn cut(&self) -> Result<(), ChangeError> {
        self.replace(&NetPolicy::default())
    }

    /// Has flows to these services carried by `to` from now on, those of before set apart: to a
    /// host that a rule lists (or, in open mode, one that the box resolved), at this port, in TLS
    /// that names it. Nothing else is carried there on the word of such a rule: what names no host
    /// or is no TLS is refused. A flow to another listed name of the same address passes as ever,
    /// though the host connects only once it has named it.
    ///
    /// # Errors
    /// [`ChangeError::Ended`].
    pub fn divert(
        &self,
        services: BTreeSet<(HostName, u16)>,
        to: Arc<dyn Divert>,
    ) -> Result<(), ChangeError> {
        let diversion = Diversion::new(services, to);
        self.ask(|done| Command::Divert(diversion, done))?.map_err(ChangeError::Gate)
    }

    /// The rules that hold.
    #[must_use]
    pub fn policy(&self) -> NetPolicy {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells the sink what was counted and not yet told: how often each name and destination was
    /// refused. The end of the network does the same.
    ///
    /// # Errors
    /// [`ChangeError::Ended`].
    pub fn report(&self) -> Result<(), ChangeError> {
        self.ask(Command::Report)?.map_err(ChangeError::Gate)
    }

    fn ask(
        &self,
        command: impl FnOnce(Sender<io::Result<()>>) -> Command,
    ) -> Result<io::Result<()>, ChangeError> {
        let (done, answer) = channel();
        self.commands.send(command(done)).map_err(|_e| ChangeError::Ended)?;
        self.wake();
        answer.recv().map_err(|_e| ChangeError::Ended)
    }

    fn wake(&self) {
        // A counter that is full is awake anyway.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // A thread that is gone needs no word.
        self.commands.send(Command::End).ok();
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by the panic hook; its sockets are closed.
            drop(thread.join());
        }
    }
}

fn at<T>(step: &'static str, act: impl FnOnce() -> io::Result<T>) -> Result<T, StartError> {
    act().map_err(|source| StartError::Step { step, source })
}

fn eventfd() -> io::Result<OwnedFd> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    Ok(rustix::event::eventfd(0, flags)?)
}

fn host_route() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// A listener of the relay.
fn listener(socket: OwnedFd, address: IpAddr) -> Result<(OwnedFd, SocketAddr), StartError> {
    let bound = own(socket, address)?;
    at("listen for the relay", || listen(&bound.0))?;
    Ok(bound)
}

/// Binds a socket of the relay to a port that the kernel chooses. The box's own programs can't take
/// it: a second socket on it needs the consent of the first.
fn own(socket: OwnedFd, address: IpAddr) -> Result<(OwnedFd, SocketAddr), StartError> {
    let bound = at("bind the relay", || {
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        bind(&socket, SocketAddr::new(address, 0))?;
        local_address(&socket)
    })?;
    Ok((socket, bound))
}

fn bind(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    rustix::io::ioctl_fionbio(socket, true)?;
    Ok(rustix::net::bind(socket, &address)?)
}

fn listen(socket: &OwnedFd) -> io::Result<()> {
    Ok(rustix::net::listen(socket, BACKLOG)?)
}

fn local_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    let address = rustix::net::getsockname(socket)?;
    SocketAddr::try_from(address).map_err(|_e| io::ErrorKind::InvalidData.into())
}
