//! The resolver that a box asks: sockets in the box's namespace, answered from outside.
//!
//! A listed name is resolved on the host, its addresses are filtered and pinned, the gate is
//! opened for them, the record is written, and then the box is told. Every other name is refused at
//! once, and never leaves the host.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5i_policy::{HostName, Protocol};
use rustix::net::{RecvFlags, SendFlags};

use crate::address::{HOST_V4, RESOLVER, RESOLVER_PORT};
use crate::event::{Event, EventSink, SinkClosed};
use crate::table::Table;

mod message;
mod pool;
mod resolve;
mod streams;

pub(crate) use message::read as read_packet;
use message::{Packet, Question, Say};
use pool::{Found, Pool};
pub use resolve::{Addresses, HostResolver, Resolve};
use streams::Streams;

/// Questions that wait for a lookup, in all; more are told that it failed.
const WAITING: usize = 1024;
/// Names that are looked up at once or remembered.
const NAMES: usize = 512;
/// Kinds of refused names that are counted apart.
const REFUSED_KINDS: usize = 1024;
/// Datagrams that are read before others have their turn.
const TURN: usize = 64;
/// How long a failed lookup is remembered.
const STAND_IN_LIVES: Duration = Duration::from_secs(60);
const FAILED_LIVES: Duration = Duration::from_secs(2);
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Datagram(SocketAddr),
    Stream(u64),
}

/// What a lookup came to, while it holds. `None`: it failed.
#[derive(Clone, Debug)]
struct Known {
    addresses: Option<Vec<IpAddr>>,
    until: Instant,
}

pub(crate) struct Resolver {
    datagrams: OwnedFd,
    streams: Streams,
    pool: Pool,
    sink: Arc<dyn EventSink>,
    known: BTreeMap<HostName, Known>,
    waiting: BTreeMap<HostName, Vec<(From, Question)>>,
    /// How often each kind was refused since it was last reported.
    refused: BTreeMap<(String, u16), u64>,
    more_refused: u64,
    /// Lookups left in the budget.
    lookups: Option<u64>,
}

impl Resolver {
    /// Serves sockets that are bound; `wake` is raised when a lookup is done.
    pub(crate) fn new(
        (datagrams, listener): (OwnedFd, OwnedFd),
        resolve: Arc<dyn Resolve>,
        wake: Arc<OwnedFd>,
        sink: Arc<dyn EventSink>,
        lookups: Option<u64>,
    ) -> Self {
        Self {
            datagrams,
            streams: Streams::new(listener),
            pool: Pool::new(resolve, wake),
            sink,
            known: BTreeMap::new(),
            waiting: BTreeMap::new(),
            refused: BTreeMap::new(),
            more_refused: 0,
            lookups,
        }
    }

    /// The sockets to be watched: datagrams, and connections to be accepted.
    pub(crate) fn sockets(&self) -> [BorrowedFd<'_>; 2] {
        [self.datagrams.as_fd(), self.streams.as_fd()]
    }

    /// Answers datagrams that have come.
    pub(crate) fn read_datagrams(
        &mut self,
        table: &mut Table,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        let mut buffer = [0; 4096];
        for _ in 0..TURN {
            let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
            let Ok((_, length, Some(from))) =
                rustix::net::recvfrom(&self.datagrams, &mut buffer[..], flags)
            else {
                return Ok(());
            };
            let (Ok(from), true) = (SocketAddr::try_from(from), length <= buffer.len()) else {
                continue;
            };
            self.packet(&buffer[..length], From::Datagram(from), table, now)?;
        }
        Ok(())
    }

    /// Takes a connection: its number and socket, to be watched. `None` when there is no more.
    pub(crate) fn accept(&mut self) -> Option<(u64, BorrowedFd<'_>)> {
        self.streams.accept()
    }

    /// Answers what has come on a connection.
    pub(crate) fn read_stream(
        &mut self,
        number: u64,
        table: &mut Table,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        for message in self.streams.read(number) {
            self.packet(&message, From::Stream(number), table, now)?;
        }
        Ok(())
    }

    /// Answers those who waited for lookups that are done.
    pub(crate) fn finish(&mut self, table: &mut Table, now: Instant) -> Result<(), SinkClosed> {
        while let Some(Found { name, addresses }) = self.pool.take() {
            let waiting = self.waiting.remove(&name).unwrap_or_default();
            // The rules may have changed meanwhile.
            if !table.rules().resolves(&name) {
                for (from, question) in waiting {
                    self.refuse(from, &question, table)?;
                }
                continue;
            }
            let known = self.learn(&name, addresses.ok(), table, now)?;
            for (from, question) in waiting {
                self.tell(from, &question, &known, now);
            }
            while self.known.len() >= NAMES {
                self.known.pop_first();
            }
            self.known.insert(name, known);
        }
        Ok(())
    }

    /// Filters and pins an answer, opens the gate, and puts it on record.
    fn learn(
        &self,
        name: &HostName,
        found: Option<Addresses>,
        table: &mut Table,
        now: Instant,
    ) -> Result<Known, SinkClosed> {
        let lives = found.as_ref().map_or(FAILED_LIVES, |f| f.live.clamp(SHORTEST, LONGEST));
        let kept = found.and_then(|found| table.keep(name, &found.addresses, lives, now).ok());
        let Some(kept) = kept else {
            self.sink.event(Event::Unresolved { name: name.clone() })?;
            return Ok(Known { addresses: None, until: now + FAILED_LIVES });
        };
        let (pinned, withheld) = (kept.told.clone(), kept.withheld);
        self.sink.event(Event::Resolved { name: name.clone(), pinned, withheld })?;
        Ok(Known { addresses: Some(kept.told), until: now + lives })
    }

    /// The address of a service whose flows are diverted: nobody is asked for it.
    fn learn_stand_in(
        &self,
        name: &HostName,
        address: IpAddr,
        table: &mut Table,
        now: Instant,
    ) -> Result<Known, SinkClosed> {
        if table.keep_stand_in(name, address, (STAND_IN_LIVES, now)).is_err() {
            self.sink.event(Event::Unresolved { name: name.clone() })?;
            return Ok(Known { addresses: None, until: now + FAILED_LIVES });
        }
        let (pinned, withheld) = (vec![address], Vec::new());
        self.sink.event(Event::Resolved { name: name.clone(), pinned, withheld })?;
        Ok(Known { addresses: Some(vec![address]), until: now + STAND_IN_LIVES })
    }

    /// Forgets what was learnt under other rules.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Reports refusals that were counted but not yet told. The next one of each kind is told at
    /// once again, with who asked: what comes after a report is often of another run.
    pub(crate) fn report(&mut self) -> Result<(), SinkClosed> {
        for ((name, record), count) in std::mem::take(&mut self.refused) {
            if count > 0 {
                let socket = None;
                self.sink.event(Event::RefusedName { name, record, count, socket })?;
            }
        }
        match std::mem::take(&mut self.more_refused) {
            0 => Ok(()),
            count => self.sink.event(Event::MoreRefusedNames { count }),
        }
    }

    fn packet(
        &mut self,
        bytes: &[u8],
        from: From,
        table: &mut Table,
        now: Instant,
    ) -> Result<(), SinkClosed> {
        let question = match message::read(bytes) {
            Packet::Noise => return Ok(()),
            Packet::Answered(answer) => {
                self.send(from, &answer);
                return Ok(());
            }
            Packet::Question(question) => question,
        };
        let Ok(name) = question.name.clone() else { return self.refuse(from, &question, table) };
        if let Some(addresses) = well_known(&name, table) {
            self.send(from, &question.answer(Say::Addresses(&addresses, 60)));
            return Ok(());
        }
        if !table.rules().resolves(&name) {
            return self.refuse(from, &question, table);
        }
        if let Some(address) = table.stand_in(&name)
            && self.known.get(&name).is_none_or(|known| known.until <= now)
        {
            let known = self.learn_stand_in(&name, address, table, now)?;
            self.known.insert(name.clone(), known);
        }
        match self.known.get(&name).filter(|known| known.until > now).cloned() {
            Some(known) => self.tell(from, &question, &known, now),
            None if self.lookups == Some(0) && !self.waiting.contains_key(&name) => {
                return self.refuse(from, &question, table);
            }
            None => self.look_up(name, from, question),
        }
        Ok(())
    }

    fn look_up(&mut self, name: HostName, from: From, question: Question) {
        let in_all: usize = self.waiting.values().map(Vec::len).sum();
        if in_all >= WAITING || (self.waiting.len() >= NAMES && !self.waiting.contains_key(&name)) {
            return self.send(from, &question.answer(Say::Failed));
        }
        if let Some(others) = self.waiting.get_mut(&name) {
            others.push((from, question));
        } else if self.pool.begin(name.clone()).is_ok() {
            self.lookups = self.lookups.map(|left| left.saturating_sub(1));
            self.waiting.insert(name, vec![(from, question)]);
        } else {
            self.send(from, &question.answer(Say::Failed));
        }
    }

    fn tell(&mut self, from: From, question: &Question, known: &Known, now: Instant) {
        let left = known.until.saturating_duration_since(now).as_secs().max(1);
        let say = match &known.addresses {
            Some(addresses) => Say::Addresses(addresses, u32::try_from(left).unwrap_or(1)),
            None => Say::Failed,
        };
        self.send(from, &question.answer(say));
    }

    /// Refuses a name. The first time is told at once, before the answer; the others are counted.
    fn refuse(
        &mut self,
        from: From,
        question: &Question,
        table: &mut Table,
    ) -> Result<(), SinkClosed> {
        let name = match &question.name {
            Ok(name) => name.to_string(),
            Err(text) => text.clone(),
        };
        let kind = (name.clone(), question.record());
        if let Some(count) = self.refused.get_mut(&kind) {
            *count += 1;
        } else if self.refused.len() < REFUSED_KINDS {
            self.refused.insert(kind, 0);
            let (record, socket) = (question.record(), self.asks(from, table));
            self.sink.event(Event::RefusedName { name, record, count: 1, socket })?;
        } else {
            self.more_refused += 1;
        }
        self.send(from, &question.answer(Say::Refused));
        Ok(())
    }

    /// The box's socket that asked, while it waits for the answer.
    fn asks(&self, from: From, table: &mut Table) -> Option<u64> {
        let (protocol, client) = match from {
            From::Datagram(client) => (Protocol::Udp, client),
            From::Stream(number) => (Protocol::Tcp, self.streams.client(number)?),
        };
        table.socket(protocol, client, SocketAddr::from((RESOLVER, RESOLVER_PORT)))
    }

    /// Sends an answer. A client that does not take it is not waited for.
    fn send(&mut self, to: From, answer: &[u8]) {
        match to {
            From::Datagram(address) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                rustix::net::sendto(&self.datagrams, answer, flags, &address).ok();
            }
            From::Stream(number) => self.streams.answer(number, answer),
        }
    }
}

/// Names that are answered without a look at the host: the box's own loopback (RFC 6761), and the
/// host, where a rule lists a port of it.
fn well_known(name: &HostName, table: &Table) -> Option<Vec<IpAddr>> {
    if name.is_localhost() {
        return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    let is_host = name.as_str() == "host" && table.rules().lists_host();
    is_host.then(|| vec![HOST_V4.into()])
}
