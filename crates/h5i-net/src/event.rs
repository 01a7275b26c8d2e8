//! What the supervisor observes of a box's network, as it happens.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use h5i_policy::{HostName, NetRule, Protocol};

use crate::table::Permit;

/// One observation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A flow is let go on: sent before the host connects anywhere for it.
    FlowOpened {
        /// Number of the flow in its session, from 1.
        flow: u64,
        /// Where the box wanted to go.
        destination: SocketAddr,
        /// TCP or UDP.
        protocol: Protocol,
        /// Why it may.
        basis: Basis,
        /// The inode of the box's socket, as the links in `/proc/PID/fd` have it, where the kernel
        /// tells: the way to the program that opened it.
        socket: Option<u64>,
    },
    /// A flow that was opened is over.
    FlowEnded(FlowEnded),
    /// A flow was closed before anything was carried.
    FlowRefused {
        /// Where the box wanted to go; `None` for a connection to the relay itself.
        destination: Option<SocketAddr>,
        /// TCP or UDP.
        protocol: Protocol,
        /// Why not.
        reason: Refusal,
        /// As in [`Event::FlowOpened`].
        socket: Option<u64>,
    },
    /// Packets to a destination were refused by the gate: the first one, or how many came since it
    /// was last reported.
    RefusedAddress {
        /// The address.
        address: IpAddr,
        /// What was sent there.
        protocol: RefusedProtocol,
        /// How many packets; a program that tries again is counted again.
        count: u64,
        /// Of the first packet, as in [`Event::FlowOpened`]: of TCP always where the kernel can hold
        /// it back (`nfnetlink_queue`), of UDP where the socket is still there; of other protocols,
        /// and of what is only counted, never.
        socket: Option<u64>,
    },
    /// More destinations were refused than are kept apart: packets to the others, by protocol
    /// (port 0).
    MoreRefusedAddresses {
        /// What was sent there.
        protocol: RefusedProtocol,
        /// How many packets since it was last reported.
        count: u64,
    },
    /// A name was asked for that no rule lists: the first time, or how often since it was last
    /// reported.
    RefusedName {
        /// The name, or what stood in its place, printable and at most 255 characters.
        name: String,
        /// The type of record by its number in the DNS.
        record: u16,
        /// How often.
        count: u64,
        /// Of the first time, as in [`Event::FlowOpened`]: the socket that asked, which waits for
        /// its answer. Of what is only counted, none.
        socket: Option<u64>,
    },
    /// More kinds of names were refused than are kept apart; how often in all, of those.
    MoreRefusedNames {
        /// How often.
        count: u64,
    },
    /// A listed name was resolved: sent before the box has the answer.
    Resolved {
        /// The name.
        name: HostName,
        /// The addresses that the box is given and may reach by this name.
        pinned: Vec<IpAddr>,
        /// Addresses that were kept from it: not public, or the host's own, and not listed.
        withheld: Vec<IpAddr>,
    },
    /// A listed name could not be resolved on the host.
    Unresolved {
        /// The name.
        name: HostName,
    },
}

/// The end of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowEnded {
    /// Number of the flow in its session.
    pub flow: u64,
    /// Where the box wanted to go, which is where the host connected, but for `host:PORT`.
    pub destination: SocketAddr,
    /// TCP, or UDP, where datagrams of one client and one destination are a flow until they pause
    /// for 20 seconds.
    pub protocol: Protocol,
    /// Why it was allowed.
    pub basis: Basis,
    /// The name that the client named in TLS or HTTP; of several requests the last.
    pub name: Option<HostName>,
    /// Bytes from the box to the destination.
    pub sent: u64,
    /// Bytes from the destination to the box.
    pub received: u64,
    /// From the box's connection to its end.
    pub duration: Duration,
    /// How it ended.
    pub verdict: Verdict,
}

impl FlowEnded {
    /// The end of a flow that has carried nothing.
    pub(crate) fn nothing(
        (flow, destination, protocol): (u64, SocketAddr, Protocol),
        permit: &Permit,
        verdict: Verdict,
    ) -> Self {
        Self {
            flow,
            destination,
            protocol,
            basis: permit.basis().clone(),
            name: None,
            sent: 0,
            received: 0,
            duration: Duration::ZERO,
            verdict,
        }
    }
}

/// Why a flow is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Basis {
    /// A rule lists the address.
    Address(NetRule),
    /// A rule lists the port of the host's loopback.
    Host(NetRule),
    /// Listed names resolved to the address: each with its rule.
    Names(Vec<(HostName, NetRule)>),
    /// The network is open and the address public: the names that resolved to it, if any.
    Open(Vec<HostName>),
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Both sides were done.
    Done,
    /// One side reset it or vanished.
    Reset,
    /// The host could not connect; the errno.
    Unreachable(i32),
    /// The relay closed it.
    Refused(Refusal),
}

/// Why the relay closes a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Refusal {
    /// It was a connection to the relay itself, to loopback, or to no destination.
    Relay,
    /// No rule allows the destination, or none any more.
    NotListed,
    /// The network is open, and the address not public.
    NotPublic,
    /// The address is the host's own.
    HostsOwn,
    /// It could not be found out whether the address is the host's own.
    Unknown,
    /// TLS without a server name, to an address that is allowed by name.
    NoServerName,
    /// TLS with an encrypted client hello, whose true name can't be seen.
    EncryptedHello,
    /// TLS or HTTP that names a host which is not allowed at this address.
    OtherName,
    /// No TLS, to a service whose flows somebody else carries.
    NotTls,
    /// A client hello that is none.
    MalformedHello,
    /// HTTP that is none, or whose end two parsers could see at two places.
    MalformedRequest,
    /// The budget of bytes is spent.
    Bytes(Spent),
    /// The budget of connections is spent.
    Connections(Spent),
    /// More connections in a second than the budget has.
    Rate(Spent),
    /// More connections at once than the host can carry.
    AtOnce(Spent),
    /// A rule was revoked, or everything was cut.
    Revoked,
    /// The network ended.
    Ended,
}

/// How much of a budget was used when it stopped something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Spent {
    /// Bytes or connections that were counted. Of bytes it may be more than was allowed.
    pub used: u64,
    /// The budget.
    pub allowed: u64,
}

impl Refusal {
    /// How much of its budget was used, where one is the reason.
    #[must_use]
    pub const fn spent(self) -> Option<Spent> {
        match self {
            Self::Bytes(spent)
            | Self::Connections(spent)
            | Self::Rate(spent)
            | Self::AtOnce(spent) => Some(spent),
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Relay => "a connection to the relay itself",
            Self::NotListed => "no rule allows it",
            Self::NotPublic => "the address is not public",
            Self::HostsOwn => "the address is the host's own",
            Self::Unknown => "it could not be found out whose address it is",
            Self::NoServerName => "TLS without a server name",
            Self::EncryptedHello => "TLS with an encrypted client hello",
            Self::OtherName => "it names another host",
            Self::NotTls => "no TLS, which a grant for this service needs",
            Self::MalformedHello => "a malformed TLS client hello",
            Self::MalformedRequest => "a malformed HTTP request",
            Self::Bytes(_) => "the budget of bytes is spent",
            Self::Connections(_) => "the budget of connections is spent",
            Self::Rate(_) => "more connections a second than the budget has",
            Self::AtOnce(_) => "more connections at once than can be carried",
            Self::Revoked => "its rule was revoked",
            Self::Ended => "the network ended",
        })
    }
}

/// What was sent to a destination that the gate refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RefusedProtocol {
    /// TCP, to this port.
    Tcp(u16),
    /// UDP, to this port.
    Udp(u16),
    /// ICMP or `ICMPv6`.
    Icmp,
    /// Another one, by its number in the IP header.
    Other(u8),
}

impl RefusedProtocol {
    pub(crate) const fn new(number: u8, port: u16) -> Self {
        match number {
            6 => Self::Tcp(port),
            17 => Self::Udp(port),
            1 | 58 => Self::Icmp,
            other => Self::Other(other),
        }
    }
}

/// Takes observations. It is called from the network's own thread.
pub trait EventSink: Send + Sync {
    /// Takes one observation.
    ///
    /// # Errors
    /// [`SinkClosed`] when it can't be kept; the network then lets nothing go on, and ends.
    fn event(&self, event: Event) -> Result<(), SinkClosed>;
}

/// The sink can't keep observations any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record of the network can't be written")]
pub struct SinkClosed;

/// A sink that drops everything, for harnesses without a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl EventSink for NoSink {
    fn event(&self, _: Event) -> Result<(), SinkClosed> {
        Ok(())
    }
}
