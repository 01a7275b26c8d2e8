//! The one thread of a network: waits for its sockets and serves gate, resolver and relay in turn.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use h5i_policy::{NetPolicy, Protocol};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::datagrams::Datagrams;
use crate::divert::Diversion;
use crate::event::{Event, EventSink, Refusal, RefusedProtocol, SinkClosed};
use crate::gate::{Announced, Notice, Notices};
use crate::relay::Relay;
use crate::resolver::Resolver;
use crate::sys;
use crate::table::Table;

const WAKE: u64 = 0;
const DATAGRAMS: u64 = 1;
const STREAMS: u64 = 2;
const NOTICES: u64 = 3;
const LISTENERS: u64 = 8;
/// Sockets for datagrams that are carried.
const CARRIED: u64 = 16;
/// Connections to the resolver.
const STREAM: u64 = 1 << 32;
/// The host's ends of flows of datagrams.
pub(crate) const DATAGRAM_FLOW: u64 = 1 << 40;
/// Ends of flows.
pub(crate) const FLOW: u64 = 1 << 48;
/// Events taken at once.
const AT_ONCE: usize = 256;

/// What the network's owner asks of its thread.
pub(crate) enum Command {
    /// These rules hold from now on.
    Replace(NetPolicy, Sender<io::Result<()>>),
    /// Flows to these services are somebody else's from now on.
    Divert(Diversion, Sender<io::Result<()>>),
    /// Everything that was counted is told now.
    Report(Sender<io::Result<()>>),
    /// It ends.
    End,
}

pub(crate) struct Engine {
    pub(crate) poll: Arc<OwnedFd>,
    pub(crate) wake: Arc<OwnedFd>,
    pub(crate) commands: Receiver<Command>,
    pub(crate) table: Table,
    pub(crate) notices: Notices,
    pub(crate) resolver: Resolver,
    pub(crate) relay: Relay,
    pub(crate) carried: Datagrams,
    pub(crate) sink: Arc<dyn EventSink>,
    /// Packets to each refused destination that were told.
    pub(crate) told: BTreeMap<Notice, u64>,
}

/// How the engine goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Go,
    End,
}

impl Engine {
    /// Puts every socket under watch. Done before the thread is made, so that a failure is told.
    pub(crate) fn watch(&self) -> io::Result<()> {
        let add = |socket: &dyn AsFd, token, flags| {
            epoll::add(&*self.poll, socket, EventData::new_u64(token), flags)
        };
        let level = EventFlags::IN;
        add(&self.wake, WAKE, level)?;
        let [datagrams, streams] = self.resolver.sockets();
        add(&datagrams, DATAGRAMS, level)?;
        add(&streams, STREAMS, level)?;
        add(&self.notices, NOTICES, level)?;
        for (token, listener) in (LISTENERS..).zip(self.relay.listeners()) {
            add(&listener, token, EventFlags::IN | EventFlags::ET)?;
        }
        for (token, socket) in (CARRIED..).zip(self.carried.sockets()) {
            add(&socket, token, level)?;
        }
        Ok(())
    }

    /// Serves until the end.
    pub(crate) fn run(mut self) {
        let served = self.serve();
        let now = Instant::now();
        // Where the record can't be written, nobody is told; the sockets are closed either way.
        if served.is_ok() {
            self.end_all(now).ok();
        }
    }

    fn end_all(&mut self, now: Instant) -> Result<(), SinkClosed> {
        self.relay.end_all(Refusal::Ended, now)?;
        self.carried.end_all(Refusal::Ended, now)?;
        self.report()
    }

    fn serve(&mut self) -> Result<(), SinkClosed> {
        // Where it fails, a reset connection ends a process that did not ignore the signal already,
        // as Rust's programs do.
        sys::block_sigpipe().ok();
        let mut events = Vec::with_capacity(AT_ONCE);
        loop {
            events.clear();
            let wait = self.wait();
            match epoll::wait(&*self.poll, spare_capacity(&mut events), wait.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Without events nothing can be carried.
                Err(_) => return Ok(()),
            }
            let now = Instant::now();
            for event in events.drain(..) {
                if self.event(event.data.u64(), event.flags, now)? == Next::End {
                    return Ok(());
                }
            }
            self.relay.work(&mut self.table, now)?;
            if self.table.next_end().is_some_and(|end| end <= now) {
                // Addresses that the gate still has are refused by the relay.
                self.table.step(now).ok();
            }
            self.carried.expire(now)?;
        }
    }

    /// How long nothing needs to be done; for ever when nothing ends by itself.
    fn wait(&self) -> Option<Timespec> {
        let wait = if self.relay.has_work() {
            Duration::ZERO
        } else {
            let ends = [self.table.next_end(), self.carried.next_end()];
            let end = ends.into_iter().flatten().min()?;
            end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
        };
        Timespec::try_from(wait).ok()
    }

    fn event(&mut self, token: u64, flags: EventFlags, now: Instant) -> Result<Next, SinkClosed> {
        match token {
            WAKE => return self.woken(now),
            DATAGRAMS => self.resolver.read_datagrams(&mut self.table, now)?,
            STREAMS => {
                while let Some((number, socket)) = self.resolver.accept() {
                    let data = EventData::new_u64(STREAM + number);
                    // One that can't be watched is closed when others make it the oldest.
                    epoll::add(&*self.poll, socket, data, EventFlags::IN).ok();
                }
            }
            NOTICES => self.notices()?,
            token if token >= FLOW => self.relay.happened(token, flags),
            token if token >= DATAGRAM_FLOW => {
                let (spending, _) = self.relay.shared();
                self.carried.read_server(token, spending, now)?;
            }
            token if token >= STREAM => {
                self.resolver.read_stream(token - STREAM, &mut self.table, now)?;
            }
            token if token >= CARRIED => {
                let relay = usize::try_from(token - CARRIED).unwrap_or(usize::MAX);
                self.carried.read_clients(relay, &mut self.table, self.relay.shared(), now)?;
            }
            token => self.relay.knocked(usize::try_from(token - LISTENERS).unwrap_or(usize::MAX)),
        }
        Ok(Next::Go)
    }

    fn woken(&mut self, now: Instant) -> Result<Next, SinkClosed> {
        let mut counter = [0; 8];
        rustix::io::read(&self.wake, &mut counter[..]).ok();
        self.resolver.finish(&mut self.table, now)?;
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::End => return Ok(Next::End),
                Command::Report(done) => {
                    self.report()?;
                    done.send(Ok(())).ok();
                }
                Command::Divert(diversion, done) => {
                    self.table.divert(diversion.clone());
                    self.resolver.forget();
                    self.relay.divert(diversion);
                    done.send(Ok(())).ok();
                }
                Command::Replace(policy, done) => {
                    let changed = self.replace(&policy, now)?;
                    let failed = changed.is_err();
                    done.send(changed).ok();
                    if failed {
                        return Ok(Next::End);
                    }
                }
            }
        }
        Ok(Next::Go)
    }

    /// Puts other rules in force. Where the gate can't follow, the relay refuses what it lets
    /// through, and the network ends.
    fn replace(&mut self, policy: &NetPolicy, now: Instant) -> Result<io::Result<()>, SinkClosed> {
        self.table.adopt(policy);
        self.resolver.forget();
        self.relay.judge(&self.table, now)?;
        self.carried.judge(&mut self.table, now)?;
        Ok(self.table.step(now))
    }

    /// A destination is told of when the first packet to it is refused; one that waits is refused
    /// after that.
    fn notices(&mut self) -> Result<(), SinkClosed> {
        // An error is met again at the next notice; the counts are in the gate.
        for announced in self.notices.receive().unwrap_or_default() {
            self.announced(&announced)?;
            self.notices.let_go(&announced);
        }
        Ok(())
    }

    fn announced(&mut self, announced: &Announced) -> Result<(), SinkClosed> {
        let notice = announced.notice;
        let count = self.told.entry(notice).or_insert(0);
        if *count > 0 {
            return Ok(());
        }
        *count = 1;
        let Notice { address, port, .. } = notice;
        let protocol = RefusedProtocol::new(notice.protocol, port);
        let carrier = match protocol {
            RefusedProtocol::Tcp(_) => Some(Protocol::Tcp),
            RefusedProtocol::Udp(_) => Some(Protocol::Udp),
            _ => None,
        };
        let socket = carrier.zip(announced.from).and_then(|(carrier, from)| {
            self.table.socket(carrier, from, SocketAddr::new(address, port))
        });
        self.sink.event(Event::RefusedAddress { address, protocol, count: 1, socket })
    }

    /// Tells what was counted since it was last told.
    fn report(&mut self) -> Result<(), SinkClosed> {
        self.notices()?;
        if self.notices.is_silent() {
            return self.resolver.report();
        }
        for denied in self.table.denied().unwrap_or_default() {
            let (address, port) = (denied.address, denied.port);
            let notice = Notice { address, protocol: denied.protocol, port };
            let told = self.told.entry(notice).or_insert(0);
            let count = denied.packets.saturating_sub(*told);
            *told = denied.packets;
            if count > 0 {
                let protocol = RefusedProtocol::new(denied.protocol, port);
                self.sink.event(if address.is_unspecified() {
                    Event::MoreRefusedAddresses { protocol, count }
                } else {
                    Event::RefusedAddress { address, protocol, count, socket: None }
                })?;
            }
        }
        self.resolver.report()
    }
}
