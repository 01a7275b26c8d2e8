//! UDP, where a rule names it: datagrams of a client and a destination are a flow until they pause.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5i_policy::{Protocol, ServerName};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::budget::Spending;
use crate::event::{Event, EventSink, FlowEnded, Refusal, SinkClosed, Spent, Verdict};
use crate::table::{Permit, Table};

/// A flow without a datagram for so long is over. The kernel forgets a flow after 30 seconds; this
/// must be sooner, so that a port which is used again is not taken for the flow before.
const PAUSE: Duration = Duration::from_secs(20);
/// How long nothing more is said of a client that was refused.
const QUIET: Duration = Duration::from_secs(1);
/// Flows at once; the one that has paused longest makes room.
const AT_ONCE: usize = 512;
/// Datagrams that are moved before others have their turn.
const TURN: usize = 64;
/// The longest datagram.
const LONGEST: usize = 65_536;

/// One flow.
struct Flow {
    number: u64,
    /// Which of the relay's sockets it came by.
    relay: usize,
    client: SocketAddr,
    destination: SocketAddr,
    permit: Permit,
    server: OwnedFd,
    began: Instant,
    last: Instant,
    sent: u64,
    received: u64,
}

/// The relay's UDP sockets, and the flows that came by them.
pub(crate) struct Datagrams {
    /// IPv4, IPv6 where the box has it; each with its own address.
    relays: Vec<(OwnedFd, SocketAddr)>,
    first_token: u64,
    poll: Arc<OwnedFd>,
    sink: Arc<dyn EventSink>,
    flows: BTreeMap<u64, Flow>,
    by_client: BTreeMap<SocketAddr, u64>,
    /// Clients that were refused, and until when no more is said of them.
    refused: BTreeMap<SocketAddr, Instant>,
    buffer: Vec<u8>,
}

impl Datagrams {
    /// Serves sockets that are bound. Flows are watched in `poll` under tokens from `first_token`.
    pub(crate) fn new(
        relays: Vec<(OwnedFd, SocketAddr)>,
        (poll, first_token): (Arc<OwnedFd>, u64),
        sink: Arc<dyn EventSink>,
    ) -> Self {
        let (flows, by_client) = (BTreeMap::new(), BTreeMap::new());
        let buffer = vec![0; LONGEST];
        let refused = BTreeMap::new();
        Self { relays, first_token, poll, sink, flows, by_client, refused, buffer }
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.relays.iter().map(|(socket, _)| socket.as_fd())
    }

    /// Carries what clients have sent. `count` numbers the flows.
    pub(crate) fn read_clients(
        &mut self,
        relay: usize,
        table: &mut Table,
        (spending, count): (&mut Spending, &mut u64),
        now: Instant,
    ) -> Result<(), SinkClosed> {
        for _ in 0..TURN {
            let Some((socket, own)) = self.relays.get(relay) else { return Ok(()) };
            let (flags, own) = (RecvFlags::DONTWAIT, *own);
            let Ok((length, _, Some(from))) =
                rustix::net::recvfrom(socket, &mut self.buffer[..], flags)
            else {
                return Ok(());
            };
            let Ok(client) = SocketAddr::try_from(from) else { continue };
            let number = match self.by_client.get(&client) {
                Some(number) => *number,
                None if self.refused.get(&client).is_some_and(|until| *until > now) => continue,
                None => {
                    let to = table.original(own, client);
                    match self.open((count, relay, client), to, table, spending, now)? {
                        Some(number) => number,
                        None => continue,
                    }
                }
            };
            let Some(flow) = self.flows.get_mut(&number) else { continue };
            flow.last = now;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            // One that is not taken is lost, as datagrams are; an error of one before is told here.
            if rustix::net::send(&flow.server, &self.buffer[..length], flags).is_ok() {
                flow.sent += length as u64;
                if let Err(spent) = spending.carried(length as u64) {
                    self.end(number, Verdict::Refused(spent), now)?;
                }
            }
        }
        Ok(())
    }

    /// Carries what a destination has answered.
    pub(crate) fn read_server(
        &mut self,
        token: u64,
        spending: &mut Spending,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        let number = token.wrapping_sub(self.first_token);
        for _ in 0..TURN {
            let Some(flow) = self.flows.get_mut(&number) else { return Ok(()) };
            let received =
                rustix::net::recv(&flow.server, &mut self.buffer[..], RecvFlags::DONTWAIT);
            let length = match received {
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => {
                    let verdict = Verdict::Unreachable(error.raw_os_error());
                    return self.end(number, verdict, now);
                }
            };
            flow.last = now;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let (relay, _) = &self.relays[flow.relay];
            let answer = &self.buffer[..length];
            if rustix::net::sendto(relay, answer, flags, &flow.client).is_ok() {
                flow.received += length as u64;
                if let Err(spent) = spending.carried(length as u64) {
                    return self.end(number, Verdict::Refused(spent), now);
                }
            }
        }
        Ok(())
    }

    /// When the flow that has paused longest is over.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.flows.values().map(|flow| flow.last + PAUSE).min()
    }

    /// Ends flows that have paused for long.
    pub(crate) fn expire(&mut self, now: Instant) -> Result<(), SinkClosed> {
        self.refused.retain(|_, until| *until > now);
        self.end_where(Verdict::Done, now, |flow| flow.last + PAUSE <= now)
    }

    /// Judges flows again after a change of rules.
    pub(crate) fn judge(&mut self, table: &mut Table, now: Instant) -> Result<(), SinkClosed> {
        let named = (None, ServerName::Listed);
        let holds =
            |flow: &Flow| table.still(flow.destination, Protocol::Udp, flow.permit.basis(), named);
        let over = self.flows.values().filter(|flow| !holds(flow));
        let over: Vec<_> = over.map(|flow| (flow.number, flow.relay, flow.client)).collect();
        for (number, relay, client) in over {
            self.end(number, Verdict::Refused(Refusal::Revoked), now)?;
            if let Some((_, own)) = self.relays.get(relay) {
                table.forget(*own, client);
            }
        }
        Ok(())
    }

    /// Ends every flow.
    pub(crate) fn end_all(&mut self, why: Refusal, now: Instant) -> Result<(), SinkClosed> {
        self.end_where(Verdict::Refused(why), now, |_| true)
    }

    fn end_where(
        &mut self,
        verdict: Verdict,
        now: Instant,
        wanted: impl Fn(&Flow) -> bool,
    ) -> Result<(), SinkClosed> {
        let over = self.flows.values().filter(|flow| wanted(flow)).map(|flow| flow.number);
        for number in over.collect::<Vec<_>>() {
            self.end(number, verdict, now)?;
        }
        Ok(())
    }

    fn open(
        &mut self,
        (count, relay, client): (&mut u64, usize, SocketAddr),
        to: std::io::Result<SocketAddr>,
        table: &mut Table,
        spending: &mut Spending,
        now: Instant,
    ) -> Result<Option<u64>, SinkClosed> {
        let protocol = Protocol::Udp;
        let judged = match &to {
            Err(_) => Err(Refusal::Relay),
            Ok(to) => table.permit(*to, protocol, now).and_then(|permit| {
                spending.connection(self.flows.len(), now)?;
                Ok((*to, permit))
            }),
        };
        let socket = to.as_ref().ok().and_then(|to| table.socket(protocol, client, *to));
        let (destination, permit) = match judged {
            Ok(judged) => judged,
            Err(reason) => {
                let destination = to.ok();
                if self.refused.len() < AT_ONCE {
                    self.refused.insert(client, now + QUIET);
                }
                self.sink.event(Event::FlowRefused { destination, protocol, reason, socket })?;
                return Ok(None);
            }
        };
        while self.flows.len() >= AT_ONCE {
            let first = self.flows.values().min_by_key(|flow| flow.last);
            let Some(first) = first.map(|flow| flow.number) else { break };
            let full = Spent { used: AT_ONCE as u64, allowed: AT_ONCE as u64 };
            self.end(first, Verdict::Refused(Refusal::AtOnce(full)), now)?;
        }
        *count += 1;
        let (number, basis) = (*count, permit.basis().clone());
        let flow = number;
        self.sink.event(Event::FlowOpened { flow, destination, protocol, basis, socket })?;
        let dial = permit.dial().first().copied().ok_or(Errno::INVAL);
        let server = dial.and_then(connect).and_then(|server| {
            let data = EventData::new_u64(self.first_token + number);
            epoll::add(&*self.poll, &server, data, EventFlags::IN)?;
            Ok(server)
        });
        let (sent, received, began, last) = (0, 0, now, now);
        match server {
            Ok(server) => {
                self.by_client.insert(client, number);
                let flow = Flow {
                    number,
                    relay,
                    client,
                    destination,
                    permit,
                    server,
                    began,
                    last,
                    sent,
                    received,
                };
                self.flows.insert(number, flow);
                Ok(Some(number))
            }
            Err(error) => {
                let verdict = Verdict::Unreachable(error.raw_os_error());
                let ended = FlowEnded::nothing((number, destination, protocol), &permit, verdict);
                self.sink.event(Event::FlowEnded(ended))?;
                Ok(None)
            }
        }
    }

    fn end(&mut self, number: u64, verdict: Verdict, now: Instant) -> Result<(), SinkClosed> {
        let Some(flow) = self.flows.remove(&number) else { return Ok(()) };
        self.by_client.remove(&flow.client);
        let of = (number, flow.destination, Protocol::Udp);
        let mut ended = FlowEnded::nothing(of, &flow.permit, verdict);
        (ended.sent, ended.received) = (flow.sent, flow.received);
        ended.duration = now.saturating_duration_since(flow.began);
        self.sink.event(Event::FlowEnded(ended))
    }
}

/// A socket of the host's that sends to one destination and hears from it alone.
fn connect(to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    rustix::net::connect(&socket, &to)?;
    Ok(socket)
}
