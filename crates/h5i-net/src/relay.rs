//! The relay: takes the flows that the gate led here, judges each again by its original
//! destination, and carries its bytes.
//!
//! One thread does it, with one epoll set: a flow costs two descriptors and some hundred bytes, the
//! bytes themselves stay in the kernel, and a pipe is lent to a flow only while bytes of it are
//! under way.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use h5i_policy::Protocol;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType, sockopt};

use crate::budget::Spending;
use crate::divert::Diversion;
use crate::event::{Event, EventSink, FlowEnded, Refusal, SinkClosed, Verdict};
use crate::table::{Permit, Table};

mod first;
mod flow;
mod hello;
mod lane;
mod request;

pub(crate) use first::{First, tell};
use flow::{Flow, LOOKED_AT, Turn};
use lane::{End, Pipes};
pub(crate) use request::Requests;

/// Connections taken before others have their turn.
const TURN: usize = 64;

/// Which end of a flow a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The listeners and flows of one box.
pub(crate) struct Relay {
    /// IPv4, IPv6 where the box has it; and whether more may be waiting there.
    listeners: Vec<(OwnedFd, bool)>,
    first_token: u64,
    poll: Arc<OwnedFd>,
    sink: Arc<dyn EventSink>,
    spending: Spending,
    flows: Vec<Option<Box<Flow>>>,
    free: Vec<usize>,
    /// Places that are free once no event of this round can mean them.
    freed: Vec<usize>,
    ready: VecDeque<usize>,
    pipes: Pipes,
    buffer: Box<[u8; LOOKED_AT]>,
    count: u64,
    diversion: Option<Diversion>,
}

impl Relay {
    /// Serves listeners that are bound. Flows are watched in `poll` under tokens from
    /// `first_token`, two each.
    pub(crate) fn new(
        listeners: Vec<OwnedFd>,
        (poll, first_token): (Arc<OwnedFd>, u64),
        sink: Arc<dyn EventSink>,
        spending: Spending,
    ) -> Self {
        Self {
            listeners: listeners.into_iter().map(|listener| (listener, false)).collect(),
            first_token,
            poll,
            sink,
            spending,
            flows: Vec::new(),
            free: Vec::new(),
            freed: Vec::new(),
            ready: VecDeque::new(),
            pipes: Pipes::default(),
            buffer: Box::new([0; LOOKED_AT]),
            count: 0,
            diversion: None,
        }
    }

    /// The budgets, and the number of the last flow, which flows of datagrams share.
    pub(crate) fn shared(&mut self) -> (&mut Spending, &mut u64) {
        (&mut self.spending, &mut self.count)
    }

    /// Has flows to some services carried by somebody else.
    pub(crate) fn divert(&mut self, diversion: Diversion) {
        self.diversion = Some(diversion);
    }

    pub(crate) fn listeners(&self) -> impl Iterator<Item = impl AsFd + '_> {
        self.listeners.iter().map(|(listener, _)| listener.as_fd())
    }

    /// Connections wait at a listener.
    pub(crate) fn knocked(&mut self, listener: usize) {
        if let Some((_, waiting)) = self.listeners.get_mut(listener) {
            *waiting = true;
        }
    }

    /// Something happened at one end of a flow.
    pub(crate) fn happened(&mut self, token: u64, flags: EventFlags) {
        let offset = token.wrapping_sub(self.first_token);
        let side = if offset.is_multiple_of(2) { Side::Client } else { Side::Server };
        let Ok(place) = usize::try_from(offset / 2) else { return };
        let Some(Some(flow)) = self.flows.get_mut(place) else { return };
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let end = match side {
            Side::Client => &mut flow.client,
            Side::Server => flow.server(),
        };
        end.readable |= broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        end.writable |= broken || flags.contains(EventFlags::OUT);
        end.broken |= flags.contains(EventFlags::ERR);
        self.ready.push_back(place);
    }

    /// Whether there is something to do without an event.
    pub(crate) fn has_work(&self) -> bool {
        !self.ready.is_empty() || self.listeners.iter().any(|(_, waiting)| *waiting)
    }

    /// Moves bytes and takes connections, a turn each. What ends goes before what begins: a client
    /// that opens one connection after another has closed the one before.
    pub(crate) fn work(&mut self, table: &mut Table, now: Instant) -> Result<(), SinkClosed> {
        for _ in 0..self.ready.len() {
            let Some(place) = self.ready.pop_front() else { break };
            self.turn(place, now)?;
        }
        for listener in 0..self.listeners.len() {
            self.accept(listener, table, now)?;
        }
        self.free.append(&mut self.freed);
        Ok(())
    }

    /// Judges open flows again after a change of rules; what no rule allows is closed.
    pub(crate) fn judge(&mut self, table: &Table, now: Instant) -> Result<(), SinkClosed> {
        for place in 0..self.flows.len() {
            let Some(Some(flow)) = self.flows.get(place) else { continue };
            if !flow.holds(table) {
                self.end(place, Verdict::Refused(Refusal::Revoked), now)?;
            }
        }
        Ok(())
    }

    /// Closes every flow.
    pub(crate) fn end_all(&mut self, why: Refusal, now: Instant) -> Result<(), SinkClosed> {
        for place in 0..self.flows.len() {
            self.end(place, Verdict::Refused(why), now)?;
        }
        Ok(())
    }

    fn accept(
        &mut self,
        listener: usize,
        table: &mut Table,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        for _ in 0..TURN {
            let Some((socket, waiting)) = self.listeners.get_mut(listener) else { return Ok(()) };
            if !*waiting {
                return Ok(());
            }
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match rustix::net::acceptfrom_with(&*socket, flags) {
                Ok((client, from)) => self.admit((client, from), table, now)?,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Also when there are no descriptors left: the next flow that ends looks again.
                Err(_) => *waiting = false,
            }
        }
        Ok(())
    }

    fn admit(
        &mut self,
        (client, from): (OwnedFd, Option<SocketAddrAny>),
        table: &mut Table,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        let destination = original_destination(&client);
        let judged = destination.ok_or(Refusal::Relay).and_then(|to| {
            let permit = table.permit(to, Protocol::Tcp, now)?;
            let open = self.flows.len() - self.free.len() - self.freed.len();
            self.spending.connection(open, now)?;
            Ok((to, permit))
        });
        let protocol = Protocol::Tcp;
        let from = from.and_then(|from| SocketAddr::try_from(from).ok());
        let socket = from.zip(destination).and_then(|(from, to)| table.socket(protocol, from, to));
        match judged {
            Ok((to, permit)) => self.open(client, (to, socket), permit, now),
            Err(reason) => {
                break_off(&client);
                self.sink.event(Event::FlowRefused { destination, protocol, reason, socket })
            }
        }
    }

    fn open(
        &mut self,
        client: OwnedFd,
        (destination, socket): (SocketAddr, Option<u64>),
        permit: Permit,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        self.count += 1;
        let (flow, basis) = (self.count, permit.basis().clone());
        let protocol = Protocol::Tcp;
        let opened =
            Event::FlowOpened { flow, destination, protocol, basis: basis.clone(), socket };
        self.sink.event(opened)?;
        let place = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() - 1
        });
        let waits = self.diversion.as_ref().filter(|d| d.may_concern(&basis, destination.port()));
        let mut broker = None;
        let server = match waits {
            Some(_) => pair().map(|(server, other)| {
                broker = Some(other);
                server
            }),
            None => permit.dial().first().copied().ok_or(Errno::INVAL).and_then(connect),
        };
        let watched = server.and_then(|server| {
            sockopt::set_tcp_nodelay(&client, true)?;
            self.watch(place, Side::Client, &client)?;
            self.watch(place, Side::Server, &server)?;
            Ok(server)
        });
        match watched {
            Ok(server) => {
                let (client, server) = (End::new(client), End::new(server));
                let mut flow = Flow::new((flow, destination), permit, client, server, now);
                if let Some(broker) = broker {
                    flow.wait_for_name(broker, socket);
                }
                self.flows[place] = Some(Box::new(flow));
                Ok(())
            }
            Err(error) => {
                break_off(&client);
                self.freed.push(place);
                let verdict = Verdict::Unreachable(error.raw_os_error());
                let ended = FlowEnded::nothing((flow, destination, protocol), &permit, verdict);
                self.sink.event(Event::FlowEnded(ended))
            }
        }
    }

    fn watch(&self, place: usize, side: Side, socket: &OwnedFd) -> Result<(), Errno> {
        let token = self.first_token + 2 * place as u64 + u64::from(side == Side::Server);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&*self.poll, socket, EventData::new_u64(token), flags)
    }

    fn turn(&mut self, place: usize, now: Instant) -> Result<(), SinkClosed> {
        let Some(Some(flow)) = self.flows.get_mut(place) else { return Ok(()) };
        let before = flow.bytes();
        let turn = flow.turn(&mut self.pipes, &mut self.buffer, self.diversion.as_ref());
        let carried = flow.bytes() - before;
        let next = match turn {
            Turn::Over(Verdict::Unreachable(_)) => flow.next_address(),
            _ => None,
        };
        if carried > 0
            && let Err(spent) = self.spending.carried(carried)
        {
            return self.end(place, Verdict::Refused(spent), now);
        }
        match (turn, next) {
            (Turn::Waits, _) => Ok(()),
            (Turn::Again, _) => {
                self.ready.push_back(place);
                Ok(())
            }
            (Turn::Dial(first), _) => self.dial(place, first, now),
            (Turn::Over(_), Some(next)) => self.try_instead(place, next, now),
            (Turn::Over(verdict), None) => self.end(place, verdict, now),
        }
    }

    /// Connects a flow that was to be diverted, and is none of those.
    fn dial(&mut self, place: usize, to: SocketAddr, now: Instant) -> Result<(), SinkClosed> {
        if let Some(Some(flow)) = self.flows.get_mut(place) {
            flow.dials_now();
        }
        self.connect_instead(place, to, now)
    }

    fn try_instead(
        &mut self,
        place: usize,
        next: SocketAddr,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        if let Some(Some(flow)) = self.flows.get_mut(place) {
            flow.tries_next();
        }
        self.connect_instead(place, next, now)
    }

    fn connect_instead(
        &mut self,
        place: usize,
        next: SocketAddr,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        let server = connect(next).and_then(|server| {
            self.watch(place, Side::Server, &server)?;
            Ok(server)
        });
        match (server, self.flows.get_mut(place)) {
            (Ok(server), Some(Some(flow))) => {
                flow.connects(End::new(server));
                Ok(())
            }
            (Err(error), _) => self.end(place, Verdict::Unreachable(error.raw_os_error()), now),
            _ => Ok(()),
        }
    }

    fn end(&mut self, place: usize, verdict: Verdict, now: Instant) -> Result<(), SinkClosed> {
        let Some(mut flow) = self.flows.get_mut(place).and_then(Option::take) else {
            return Ok(());
        };
        if verdict != Verdict::Done {
            flow.break_off();
        }
        self.freed.push(place);
        for (_, waiting) in &mut self.listeners {
            *waiting = true;
        }
        self.sink.event(Event::FlowEnded(flow.ended(verdict, now)))
    }
}

/// Where a connection was going before the gate led it here. A direct one to the listener has the
/// listener's own address there, which is refused as such.
fn original_destination(client: &OwnedFd) -> Option<SocketAddr> {
    match sockopt::ip_original_dst(client) {
        Ok(v4) => Some(SocketAddr::V4(v4)),
        Err(_) => sockopt::ipv6_original_dst(client).ok().map(SocketAddr::V6),
    }
}

/// The two ends of a connection within this process.
fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Begins a connection of the host's.
fn connect(to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Has the close of a connection that is refused reset it.
fn break_off(client: &OwnedFd) {
    let zero = Some(std::time::Duration::ZERO);
    // A client that is gone already needs no reset.
    sockopt::set_socket_linger(client, zero).map_err(io::Error::from).ok();
}
