//! One flow: the box's connection, the host's, and what must be seen before bytes pass.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use h5i_policy::{HostName, Protocol, ServerName};

use super::first::{self, First};
use super::hello;
use super::lane::{End, Lane, Pipes, Step, read};
use super::request::{Answer, Requests, Switch, Upgrade};
use crate::divert::{Diversion, Diverted};
use crate::event::{FlowEnded, Refusal, Verdict};
use crate::table::{Permit, Table};

/// Bytes that a flow moves before others have their turn.
const TURN: usize = 4 << 20;
/// Bytes that are read at once where they are looked at.
pub(super) const LOOKED_AT: usize = 16 << 10;
/// Bytes of a hello that are kept for the record where none is required.
const NOTED: usize = 8 << 10;

/// A flow that a permit allows.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) number: u64,
    pub(super) destination: SocketAddr,
    permit: Permit,
    began: Instant,
    pub(super) client: End,
    server: End,
    dial: Dial,
    up: Lane,
    down: Lane,
    watch: Watch,
    answer: Option<Answer>,
    name: Option<HostName>,
    /// What its rule must allow of the name in its TLS.
    needs: ServerName,
    /// Set while it is not known whether the flow is diverted; the host has not connected then.
    undecided: Option<Undecided>,
}

/// What a flow that may be diverted is held with.
#[derive(Debug)]
struct Undecided {
    /// The end for who takes it over; the relay's is in the place of the server.
    broker: OwnedFd,
    holder: Option<u64>,
}

/// How far the host's connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dial {
    /// Under way; how many addresses were tried before this one.
    Trying(usize),
    Done,
}

/// What is done with the client's bytes.
#[derive(Debug)]
enum Watch {
    /// Nothing any more.
    Pass,
    /// They pass, and the name in them is noted if there is one.
    Note(Vec<u8>),
    /// They are held until it is seen what they are.
    First(Vec<u8>),
    /// Each request is read before it passes.
    Http(Requests),
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It waits for its sockets.
    Waits,
    /// It could go on.
    Again,
    /// It is not diverted: the host connects here.
    Dial(SocketAddr),
    Over(Verdict),
}

/// Why a turn ended a flow.
enum Stop {
    Io(io::Error),
    Refused(Refusal),
    Dial,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Flow {
    pub(super) fn new(
        (number, destination): (u64, SocketAddr),
        permit: Permit,
        client: End,
        server: End,
        began: Instant,
    ) -> Self {
        let watch = match permit.names() {
            Some(_) => Watch::First(Vec::new()),
            None => Watch::Note(Vec::new()),
        };
        let (up, down) = (Lane::default(), Lane::default());
        Self {
            number,
            destination,
            permit,
            began,
            client,
            server,
            dial: Dial::Trying(0),
            up,
            down,
            watch,
            answer: None,
            name: None,
            needs: ServerName::Listed,
            undecided: None,
        }
    }

    /// Has the flow wait for the name in its TLS: somebody else may be to carry it, who then gets
    /// `broker`.
    pub(super) fn wait_for_name(&mut self, broker: OwnedFd, holder: Option<u64>) {
        self.dial = Dial::Done;
        self.watch = Watch::First(Vec::new());
        self.undecided = Some(Undecided { broker, holder });
    }

    /// Bytes in both directions.
    pub(super) fn bytes(&self) -> u64 {
        self.up.bytes() + self.down.bytes()
    }

    /// The host's end.
    pub(super) fn server(&mut self) -> &mut End {
        &mut self.server
    }

    /// The next address to try when a connection failed; the flow is then given the new end.
    pub(super) fn next_address(&self) -> Option<SocketAddr> {
        match self.dial {
            Dial::Trying(tried) => self.permit.dial().get(tried + 1).copied(),
            Dial::Done => None,
        }
    }

    /// The first address is tried.
    pub(super) fn dials_now(&mut self) {
        self.dial = Dial::Trying(0);
    }

    /// The next address is tried.
    pub(super) fn tries_next(&mut self) {
        if let Dial::Trying(tried) = self.dial {
            self.dial = Dial::Trying(tried + 1);
        }
    }

    /// The connection that is tried.
    pub(super) fn connects(&mut self, end: End) {
        self.server = end;
    }

    /// Whether the rules of now allow what it does.
    pub(super) fn holds(&self, table: &Table) -> bool {
        let named = (self.name.as_ref(), self.needs);
        table.still(self.destination, Protocol::Tcp, self.permit.basis(), named)
    }

    /// The record of its end.
    pub(super) fn ended(self, verdict: Verdict, now: Instant) -> FlowEnded {
        let of = (self.number, self.destination, Protocol::Tcp);
        let mut ended = FlowEnded::nothing(of, &self.permit, verdict);
        (ended.sent, ended.received) = (self.up.bytes(), self.down.bytes());
        ended.duration = now.saturating_duration_since(self.began);
        ended.name = self.name;
        ended
    }

    /// Makes both ends fail on close instead of ending in order: a flow that was broken off must
    /// not look complete.
    pub(super) fn break_off(&mut self) {
        let zero = Some(std::time::Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&self.client.socket, zero).ok();
        rustix::net::sockopt::set_socket_linger(&self.server.socket, zero).ok();
    }

    /// Moves what can be moved now.
    pub(super) fn turn(
        &mut self,
        pipes: &mut Pipes,
        buffer: &mut [u8; LOOKED_AT],
        diversion: Option<&Diversion>,
    ) -> Turn {
        match self.step(pipes, buffer, diversion) {
            // Nothing more can come of it, whatever the other side still does.
            Ok(Turn::Waits) if self.client.broken || self.server.broken => {
                Turn::Over(Verdict::Reset)
            }
            Ok(turn) => turn,
            Err(Stop::Refused(refusal)) => Turn::Over(Verdict::Refused(refusal)),
            Err(Stop::Dial) => match self.permit.dial().first() {
                Some(first) => Turn::Dial(*first),
                None => Turn::Over(Verdict::Reset),
            },
            Err(Stop::Io(error)) => match (self.dial, error.raw_os_error()) {
                (Dial::Trying(_), Some(code)) => Turn::Over(Verdict::Unreachable(code)),
                _ => Turn::Over(Verdict::Reset),
            },
        }
    }

    fn step(
        &mut self,
        pipes: &mut Pipes,
        buffer: &mut [u8; LOOKED_AT],
        diversion: Option<&Diversion>,
    ) -> Result<Turn, Stop> {
        if self.dial != Dial::Done {
            if !self.server.writable {
                return Ok(Turn::Waits);
            }
            rustix::net::sockopt::socket_error(&self.server.socket)
                .and_then(|result| result)
                .map_err(io::Error::from)?;
            self.dial = Dial::Done;
        }
        let mut moved = 0;
        while moved < TURN {
            let up = self.up(pipes, buffer, diversion)?;
            let down = self.down(pipes, buffer)?;
            match (up, down) {
                (Step::Over, Step::Over) => return Ok(Turn::Over(Verdict::Done)),
                (Step::Waits | Step::Over, Step::Waits | Step::Over) => return Ok(Turn::Waits),
                (up, down) => {
                    for step in [up, down] {
                        if let Step::Moved(count) = step {
                            moved += count;
                        }
                    }
                }
            }
        }
        Ok(Turn::Again)
    }

    fn up(
        &mut self,
        pipes: &mut Pipes,
        buffer: &mut [u8; LOOKED_AT],
        diversion: Option<&Diversion>,
    ) -> Result<Step, Stop> {
        if matches!(self.watch, Watch::Pass) {
            return Ok(self.up.carry(&mut self.client, &mut self.server, pipes)?);
        }
        if !self.up.flush(&mut self.server, pipes)? {
            return Ok(Step::Waits);
        }
        if self.up.is_over() {
            return Ok(Step::Over);
        }
        // The answer to an upgrade comes first.
        if self.answer.is_some() || !self.client.readable {
            return Ok(Step::Waits);
        }
        let Some(count) = read(&mut self.client, buffer)? else { return Ok(Step::Waits) };
        if count == 0 {
            return self.up_ends(pipes);
        }
        match diversion {
            Some(diversion) if self.undecided.is_some() => {
                self.decide(&buffer[..count], diversion)?;
            }
            _ => self.look(&buffer[..count])?,
        }
        self.up.flush(&mut self.server, pipes)?;
        Ok(Step::Moved(count))
    }

    /// The client has said all; in the middle of what is read before it passes, that is an error.
    fn up_ends(&mut self, pipes: &mut Pipes) -> Result<Step, Stop> {
        let cut = match &self.watch {
            Watch::First(bytes) => !bytes.is_empty(),
            Watch::Http(requests) => !requests.is_between(),
            _ => false,
        };
        if cut {
            return Err(Refusal::MalformedRequest.into());
        }
        // A connection that said nothing needs nobody to carry it.
        self.undecided = None;
        self.up.end();
        self.up.flush(&mut self.server, pipes)?;
        Ok(if self.up.is_over() { Step::Over } else { Step::Waits })
    }

    /// Looks at bytes of the client, and puts into the lane what may pass.
    fn look(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        match &mut self.watch {
            Watch::Pass => self.up.held().extend(bytes),
            Watch::Note(seen) => {
                self.up.held().extend(bytes);
                seen.extend(bytes);
                match first::tell(seen, self.destination.port()) {
                    First::Incomplete if seen.len() < NOTED => return Ok(()),
                    First::Tls(hello) => self.name = hello.name,
                    First::Http => {
                        let mut requests = Requests::new(self.destination.port());
                        // Only the name is wanted; whether all is in order is not asked here.
                        requests.read(seen, &mut Vec::new(), |_| true).ok();
                        self.name = requests.name().cloned();
                    }
                    _ => {}
                }
                self.watch = Watch::Pass;
            }
            Watch::First(seen) => {
                seen.extend(bytes);
                let seen = std::mem::take(seen);
                self.first(seen)?;
            }
            Watch::Http(_) => self.requests(bytes)?,
        }
        Ok(())
    }

    /// Finds out from the client's first bytes who carries the flow.
    fn decide(&mut self, bytes: &[u8], diversion: &Diversion) -> Result<(), Stop> {
        let Watch::First(seen) = &mut self.watch else { return self.look(bytes) };
        seen.extend(bytes);
        let seen = std::mem::take(seen);
        let port = self.destination.port();
        let refusal = match first::tell(&seen, port) {
            First::Incomplete if seen.len() > hello::LONGEST => Refusal::MalformedHello,
            First::Incomplete => {
                self.watch = Watch::First(seen);
                return Ok(());
            }
            First::Refused(refusal) => refusal,
            First::Tls(hello) => match hello.name {
                _ if hello.encrypted => Refusal::EncryptedHello,
                None => Refusal::NoServerName,
                Some(host) if diversion.concerns(&host, port) => {
                    self.name = Some(host.clone());
                    if let Some(Undecided { broker, holder }) = self.undecided.take() {
                        let flow = self.number;
                        diversion.take(Diverted { flow, host, port, socket: broker, holder });
                    }
                    *self.up.held() = seen;
                    self.watch = Watch::Pass;
                    return Ok(());
                }
                Some(_) => Refusal::OtherName,
            },
            First::Http | First::Other => Refusal::NotTls,
        };
        // It may still be a flow to another name, for which the diversion changes nothing.
        if !self.permit.keep_names(|name| !diversion.concerns(name, port)) {
            return Err(refusal.into());
        }
        self.undecided = None;
        if self.permit.names().is_some() {
            self.first(seen)?;
        } else {
            self.watch = Watch::Note(Vec::new());
            self.look(&seen)?;
        }
        Err(Stop::Dial)
    }

    fn first(&mut self, seen: Vec<u8>) -> Result<(), Stop> {
        match first::tell(&seen, self.destination.port()) {
            First::Incomplete if seen.len() > hello::LONGEST => Err(Refusal::MalformedHello.into()),
            First::Incomplete => {
                self.watch = Watch::First(seen);
                Ok(())
            }
            First::Refused(refusal) => Err(refusal.into()),
            First::Tls(hello) => {
                self.name.clone_from(&hello.name);
                let named = match &hello.name {
                    _ if hello.encrypted => Err(Refusal::EncryptedHello),
                    None => Err(Refusal::NoServerName),
                    Some(name) if !allows(&self.permit, name) => Err(Refusal::OtherName),
                    Some(_) => Ok(()),
                };
                if let Err(refusal) = named {
                    if self.permit.server_name() == ServerName::Listed {
                        return Err(refusal.into());
                    }
                    self.needs = ServerName::Any;
                }
                *self.up.held() = seen;
                self.watch = Watch::Pass;
                Ok(())
            }
            First::Http => {
                self.watch = Watch::Http(Requests::new(self.destination.port()));
                self.requests(&seen)
            }
            First::Other => {
                *self.up.held() = seen;
                self.watch = Watch::Pass;
                Ok(())
            }
        }
    }

    fn requests(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let Watch::Http(requests) = &mut self.watch else { return Ok(()) };
        let permit = &self.permit;
        let read = requests.read(bytes, self.up.held(), |name| allows(permit, name));
        self.name = requests.name().cloned();
        // A client that speaks before the answer would speak in the dark.
        if read? < bytes.len() {
            return Err(Refusal::MalformedRequest.into());
        }
        if requests.waits_for().is_some() {
            self.answer = Some(Answer::default());
        }
        Ok(())
    }

    fn down(&mut self, pipes: &mut Pipes, buffer: &mut [u8; LOOKED_AT]) -> Result<Step, Stop> {
        let Some(answer) = &mut self.answer else {
            return Ok(self.down.carry(&mut self.server, &mut self.client, pipes)?);
        };
        if !self.down.flush(&mut self.client, pipes)? {
            return Ok(Step::Waits);
        }
        if self.down.is_over() {
            return Ok(Step::Over);
        }
        if !self.server.readable {
            return Ok(Step::Waits);
        }
        let Some(count) = read(&mut self.server, buffer)? else { return Ok(Step::Waits) };
        if count == 0 {
            self.answer = None;
            self.down.end();
        } else {
            let switch = answer.read(&buffer[..count])?;
            self.answered(switch)?;
            self.down.held().extend(&buffer[..count]);
        }
        self.down.flush(&mut self.client, pipes)?;
        Ok(Step::Moved(count))
    }

    fn answered(&mut self, switch: Switch) -> Result<(), Stop> {
        let Watch::Http(requests) = &mut self.watch else { return Ok(()) };
        match (switch, requests.waits_for()) {
            (Switch::Open, _) => return Ok(()),
            (Switch::Yes, Some(Upgrade::WebSocket)) => self.watch = Watch::Pass,
            (Switch::Yes, _) => return Err(Refusal::MalformedRequest.into()),
            (Switch::No, _) => requests.stays(),
        }
        self.answer = None;
        Ok(())
    }
}

fn allows(permit: &Permit, name: &HostName) -> bool {
    permit.names().is_some_and(|mut names| names.any(|own| own == name))
}
