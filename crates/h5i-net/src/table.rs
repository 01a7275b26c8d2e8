//! What may pass now: the rules, what names resolved to, and the gate that is kept in step.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use h5i_policy::{HostName, NetPolicy, NetRule, Protocol, ServerName};

use crate::address::{HOST_V4, canonical, is_never_carried};
use crate::divert::Diversion;
use crate::event::{Basis, Refusal};
use crate::gate::{Change, Denied, Door, Gate, Holds, Listener, Range};
use crate::links;
use crate::netlink::Netlink;
use crate::pins::{PinnedAddress, Pins};
use crate::rules::{Rules, is_public};
use crate::sockets::Sockets;

/// How long an address stays reachable after the answer that gave it has ended: programs keep
/// addresses longer than they were told to.
const GRACE: Duration = Duration::from_secs(600);

/// A flow that may pass. Holding one proves that the table allowed the destination when it was made;
/// only the table makes it, and the relay connects nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    dial: Vec<SocketAddr>,
    basis: Basis,
}

impl Permit {
    /// Where the host connects: the first that answers.
    pub(crate) fn dial(&self) -> &[SocketAddr] {
        &self.dial
    }

    pub(crate) fn basis(&self) -> &Basis {
        &self.basis
    }

    /// The names that the client must name, where it is allowed by name.
    pub(crate) fn names(&self) -> Option<impl Iterator<Item = &HostName>> {
        match &self.basis {
            Basis::Names(names) => Some(names.iter().map(|(name, _)| name)),
            _ => None,
        }
    }

    /// Keeps some of the names by which it is allowed; whether it still is.
    pub(crate) fn keep_names(&mut self, keep: impl Fn(&HostName) -> bool) -> bool {
        match &mut self.basis {
            Basis::Names(names) => {
                names.retain(|(name, _)| keep(name));
                !names.is_empty()
            }
            Basis::Open(names) => {
                names.retain(keep);
                true
            }
            Basis::Address(_) | Basis::Host(_) => true,
        }
    }

    /// What the rules by which it is allowed demand of the names in TLS: the least of it.
    pub(crate) fn server_name(&self) -> ServerName {
        match &self.basis {
            Basis::Names(names) => {
                let demands = names.iter().map(|(_, rule)| rule.server_name());
                demands.max().unwrap_or(ServerName::Listed)
            }
            _ => ServerName::Any,
        }
    }
}

/// What a name's addresses came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// What the box is told.
    pub(crate) told: Vec<IpAddr>,
    pub(crate) withheld: Vec<IpAddr>,
}

/// Rules, pins and gate of one box.
#[derive(Debug)]
pub(crate) struct Table {
    rules: Rules,
    pins: Pins,
    gate: Gate,
    ranges: BTreeSet<Range>,
    doors: BTreeSet<Door>,
    /// When the next pin ends, as of the last step.
    next_end: Option<Instant>,
    host_route: Netlink,
    sockets: Sockets,
    diversion: Option<Diversion>,
}

impl Table {
    /// Sets the gate up in the box's namespace. `host_route` is a route socket of the host's.
    pub(crate) fn set_up(
        policy: &NetPolicy,
        relay: &[Listener],
        (gate, sockets, host_route): (Netlink, Sockets, Netlink),
        holds: Holds,
    ) -> io::Result<Self> {
        let rules = Rules::new(policy);
        let ranges = rules.ranges().clone();
        let gate = Gate::set_up(gate, relay, &ranges, holds)?;
        let (pins, doors, next_end) = (Pins::default(), BTreeSet::new(), None);
        let diversion = None;
        Ok(Self { rules, pins, gate, ranges, doors, next_end, host_route, sockets, diversion })
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Flows to some services are somebody else's.
    pub(crate) fn divert(&mut self, diversion: Diversion) {
        self.diversion = Some(diversion);
    }

    /// The address that stands for a service all of whose flows are diverted.
    pub(crate) fn stand_in(&self, name: &HostName) -> Option<IpAddr> {
        let diversion = self.diversion.as_ref().filter(|_| !self.rules.is_open())?;
        let diverted = |rule: &NetRule| {
            rule.protocol() == Protocol::Tcp && diversion.concerns(name, rule.port())
        };
        diversion.stand_in(name).filter(|_| self.rules.of_name(name).all(diverted))
    }

    /// Pins it, and opens the gate for it.
    ///
    /// # Errors
    /// When the gate can't be changed; it may not be told then.
    pub(crate) fn keep_stand_in(
        &mut self,
        name: &HostName,
        address: IpAddr,
        (lives, now): (Duration, Instant),
    ) -> io::Result<()> {
        self.pins.keep(&PinnedAddress::stand_in(name, address), now + lives + GRACE);
        self.step(now)
    }

    /// Judges a flow by its original destination.
    pub(crate) fn permit(
        &mut self,
        to: SocketAddr,
        protocol: Protocol,
        now: Instant,
    ) -> Result<Permit, Refusal> {
        let to = SocketAddr::new(canonical(to.ip()), to.port());
        if is_never_carried(to.ip()) || to.port() == 0 {
            return Err(Refusal::Relay);
        }
        if to.ip() == IpAddr::V4(HOST_V4)
            && let Some(rule) = self.rules.host(to.port(), protocol)
        {
            let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            let dial = loopback.map(|address| SocketAddr::new(address, to.port())).to_vec();
            return Ok(Permit { dial, basis: Basis::Host(rule.clone()) });
        }
        if let Some(rule) = self.rules.address(to, protocol) {
            return Ok(Permit { dial: vec![to], basis: Basis::Address(rule.clone()) });
        }
        let basis = self.by_name(to, protocol, now)?;
        match links::is_hosts_own(&mut self.host_route, to.ip()) {
            Ok(false) => Ok(Permit { dial: vec![to], basis }),
            Ok(true) => Err(Refusal::HostsOwn),
            Err(_) => Err(Refusal::Unknown),
        }
    }

    fn by_name(&self, to: SocketAddr, protocol: Protocol, now: Instant) -> Result<Basis, Refusal> {
        if self.rules.is_open() {
            if protocol != Protocol::Tcp {
                return Err(Refusal::NotListed);
            }
            if !is_public(to.ip()) {
                return Err(Refusal::NotPublic);
            }
            return Ok(Basis::Open(self.pins.names(to.ip(), now).cloned().collect()));
        }
        let names: Vec<_> = self
            .pins
            .names(to.ip(), now)
            .filter_map(|name| {
                let allows = |rule: &&NetRule| rule.allows_name(name, to.port(), protocol);
                let rules = self.rules.of_name(name).filter(allows);
                Some((name.clone(), rules.max_by_key(|rule| rule.server_name())?.clone()))
            })
            .collect();
        if names.is_empty() { Err(Refusal::NotListed) } else { Ok(Basis::Names(names)) }
    }

    /// Whether the rules of now allow a flow that is under way: to `to`, opened on `basis`, in which
    /// the client has named `named` in a way that `needs` this of its rule. What a name resolves to now is not asked: a flow may be older
    /// than any answer.
    pub(crate) fn still(
        &self,
        to: SocketAddr,
        protocol: Protocol,
        basis: &Basis,
        (named, needs): (Option<&HostName>, ServerName),
    ) -> bool {
        let allows = |name: &HostName| {
            let allows = |r: &NetRule| r.allows_name(name, to.port(), protocol);
            self.rules.of_name(name).any(|r| allows(r) && r.server_name() >= needs)
        };
        let by_basis = match basis {
            Basis::Address(_) => false,
            Basis::Host(_) => self.rules.host(to.port(), protocol).is_some(),
            Basis::Names(names) => match named {
                Some(name) if needs == ServerName::Listed => allows(name),
                _ => names.iter().any(|(name, _)| allows(name)),
            },
            Basis::Open(_) => self.rules.is_open(),
        };
        by_basis || self.rules.address(to, protocol).is_some()
    }

    /// Takes an answer for a listed name: filters it, pins it, and opens the gate for it.
    ///
    /// # Errors
    /// When the gate can't be changed; nothing of the answer may then be told.
    pub(crate) fn keep(
        &mut self,
        name: &HostName,
        answer: &[IpAddr],
        lives: Duration,
        now: Instant,
    ) -> io::Result<Kept> {
        let mut kept = Kept::default();
        for address in answer.iter().map(|address| canonical(*address)) {
            // What can't be told apart from the host's own is treated as such.
            let own = is_public(address)
                && links::is_hosts_own(&mut self.host_route, address).unwrap_or(true);
            let pinned = PinnedAddress::check(name, address, own);
            if let Some(pinned) = &pinned {
                self.pins.keep(pinned, now + lives + GRACE);
            }
            let listed = !is_never_carried(address) && self.rules.lists_address(address);
            let list = if pinned.is_some() || listed { &mut kept.told } else { &mut kept.withheld };
            if !list.contains(&address) {
                list.push(address);
            }
        }
        self.step(now)?;
        Ok(kept)
    }

    /// Puts other rules in force, for flows that come from now on. The caller judges those that are
    /// open again, and then brings the gate in step.
    pub(crate) fn adopt(&mut self, policy: &NetPolicy) {
        self.rules = Rules::new(policy);
        let rules = &self.rules;
        self.pins.retain(|name| rules.resolves(name));
    }

    /// Brings the gate in step with rules and pins.
    pub(crate) fn step(&mut self, now: Instant) -> io::Result<()> {
        self.pins.expire(now);
        self.next_end = self.pins.next_end();
        let doors: BTreeSet<Door> = self
            .pins
            .iter()
            .flat_map(|(address, name, _)| {
                self.rules.of_name(name).map(move |rule| Door {
                    address,
                    protocol: rule.protocol(),
                    port: rule.port(),
                })
            })
            .collect();
        let ranges = self.rules.ranges();
        let less = |a: &BTreeSet<Door>, b: &BTreeSet<Door>| a.difference(b).copied().collect();
        let change = Change {
            open: less(&doors, &self.doors),
            close: less(&self.doors, &doors),
            open_ranges: ranges.difference(&self.ranges).cloned().collect(),
            close_ranges: self.ranges.difference(ranges).cloned().collect(),
        };
        self.gate.change(&change)?;
        self.ranges.clone_from(ranges);
        self.doors = doors;
        Ok(())
    }

    /// Where a datagram of `client` was going that came to the relay's own address `relay`.
    pub(crate) fn original(
        &mut self,
        relay: SocketAddr,
        client: SocketAddr,
    ) -> io::Result<SocketAddr> {
        self.gate.original(relay, client)
    }

    /// Has the gate judge the next datagram of `client` anew.
    pub(crate) fn forget(&mut self, relay: SocketAddr, client: SocketAddr) {
        // A flow that is forgotten already is what is wanted.
        self.gate.forget(relay, client).ok();
    }

    /// When the next pinned address ends.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.next_end
    }

    /// The inode of the box's socket at `client` that wanted to go `to`.
    pub(crate) fn socket(
        &mut self,
        protocol: Protocol,
        client: SocketAddr,
        to: SocketAddr,
    ) -> Option<u64> {
        self.sockets.inode(protocol, client, to)
    }

    /// What the gate has refused.
    pub(crate) fn denied(&mut self) -> io::Result<Vec<Denied>> {
        self.gate.denied()
    }
}
