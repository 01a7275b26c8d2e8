//! The gate: nftables in the box's network namespace, set up by netlink in one transaction.
//!
//! Table `h5i`, chain `gate` (filter, output, before address translation, policy drop): what is
//! under way passes, so does the box's own loopback by *address* (everything leaves by the loopback
//! interface), so does what the sets `allow` and `range` hold. The rest is noted in `denied`,
//! announced once to the supervisor, and refused at once. Chain `lead` then leads what passed to
//! the relay's listeners.
//!
//! The first TCP packet to a destination waits until it is on record, so that the socket that sent
//! it is still there to be found; then it comes again with a mark, and is refused. That of UDP can't
//! wait: only a packet that is refused within the call has the call fail.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};

use h5i_policy::Protocol;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE};

use crate::address::{BOX_V4, BOX_V6};
use crate::attributes::{self, Attributes};
use crate::netlink::{Netlink, Request};

mod expression;
mod flows;
mod key;
mod notices;

use expression::{ACCEPT, Family, Reject};
pub(crate) use key::{Range, protocol_number};
pub(crate) use notices::{Announced, Notice, Notices};

const TABLE: &str = "h5i";
/// `NFPROTO_INET`: one table for IPv4 and IPv6.
const INET: u8 = 1;
const NFTABLES: u16 = 10 << 8;
const NEW_TABLE: u16 = NFTABLES;
const NEW_CHAIN: u16 = NFTABLES | 3;
const NEW_RULE: u16 = NFTABLES | 6;
const NEW_SET: u16 = NFTABLES | 9;
const NEW_ELEMENT: u16 = NFTABLES | 12;
const GET_ELEMENT: u16 = NFTABLES | 13;
const DELETE_ELEMENT: u16 = NFTABLES | 14;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const APPEND: u16 = 0x800;
/// Destinations that the gate keeps a count of, each family; what comes when it is full is refused
/// all the same.
const DENIED_KEPT: u32 = 4096;
/// Kinds of what comes then: the protocols.
const MORE_KEPT: u32 = 256;
/// Destinations announced in one second.
const ANNOUNCED: u64 = 200;
/// Group of the announcements.
const GROUP: u16 = 53;
/// The mark of a packet that has waited and is refused now.
const REFUSED: u32 = 0x6835_6900;
/// Bytes of a packet that are announced: enough for an IPv6 header and the ports behind it.
const HEAD: u32 = 64;
/// Numbers of protocols in an IP header.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// How many elements go into one message.
const CHUNK: usize = 512;

const INTERVAL: u32 = 4;
const UPDATED_BY_PACKETS: u32 = 0x20;
const CONCATENATED: u32 = 0x80;

/// One destination, by address, protocol and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Door {
    pub(crate) address: IpAddr,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
}

/// Where the relay takes flows of a protocol and of its address's family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) protocol: Protocol,
    pub(crate) at: SocketAddr,
}

/// A destination that was refused, and how many packets to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Denied {
    pub(crate) address: IpAddr,
    /// Number of the protocol in the IP header.
    pub(crate) protocol: u8,
    /// 0 for protocols without ports.
    pub(crate) port: u16,
    pub(crate) packets: u64,
}

/// The gate of one box.
#[derive(Debug)]
pub(crate) struct Gate {
    netlink: Netlink,
}

impl Gate {
    /// Makes table, sets, chains and rules. What is hooked into the network's path, and so what lets
    /// anything pass, comes in one transaction: all of it or nothing. Packets wait only where
    /// somebody `holds` them and the kernel has a way to.
    pub(crate) fn set_up(
        mut netlink: Netlink,
        relay: &[Listener],
        ranges: &BTreeSet<Range>,
        holds: Holds,
    ) -> io::Result<Self> {
        let way = (holds == Holds::Yes).then(|| way_to_wait(&mut netlink));
        if way.is_none_or(|way| commit(&mut netlink, refusal(Some(way))).is_err()) {
            commit(&mut netlink, refusal(None))?;
        }
        let mut batch = Vec::new();
        for family in Family::ALL {
            batch.push(set(family, "allow", CONCATENATED, None));
            batch.push(set(family, "range", CONCATENATED | INTERVAL, None));
            let flags = CONCATENATED | UPDATED_BY_PACKETS;
            batch.push(set(family, "denied", flags, Some(DENIED_KEPT)));
            batch.push(set(family, "more", flags, Some(MORE_KEPT)));
        }
        batch.push(chain("announce", None));
        batch.push(chain("gate", Some(("filter", -150, 0))));
        batch.push(chain("lead", Some(("nat", -100, 1))));
        batch.extend(announce_rules());
        batch.extend(gate_rules());
        batch.extend(lead_rules(relay));
        batch.extend(range_elements(NEW_ELEMENT, ranges));
        commit(&mut netlink, batch)?;
        Ok(Self { netlink })
    }

    /// Changes the sets in one transaction.
    pub(crate) fn change(&mut self, change: &Change) -> io::Result<()> {
        let mut batch = Vec::new();
        batch.extend(door_elements(DELETE_ELEMENT, &change.close));
        batch.extend(range_elements(DELETE_ELEMENT, &change.close_ranges));
        batch.extend(door_elements(NEW_ELEMENT, &change.open));
        batch.extend(range_elements(NEW_ELEMENT, &change.open_ranges));
        if batch.is_empty() { Ok(()) } else { commit(&mut self.netlink, batch) }
    }

    /// Where a datagram of `client` was going that came to the relay's own address `relay`.
    pub(crate) fn original(
        &mut self,
        relay: SocketAddr,
        client: SocketAddr,
    ) -> io::Result<SocketAddr> {
        flows::original(&mut self.netlink, relay, client)
    }

    /// Has the kernel forget the flow of these datagrams.
    pub(crate) fn forget(&mut self, relay: SocketAddr, client: SocketAddr) -> io::Result<()> {
        flows::forget(&mut self.netlink, relay, client)
    }

    /// What was refused since the start, with counts. Those of destinations that there was no room
    /// for come under the unspecified address, port 0.
    pub(crate) fn denied(&mut self) -> io::Result<Vec<Denied>> {
        let mut found = Vec::new();
        let sets = ["denied", "more"].into_iter();
        for set in sets.flat_map(|base| Family::ALL.map(|family| name(base, family))) {
            let body = Attributes::new().text(1, TABLE).text(2, &set);
            let request = request(GET_ELEMENT, 0, &body);
            for answer in self.netlink.dump(request.kind, request.body)? {
                let Some(attributes) = answer.body.get(GENERIC..) else { continue };
                let Some(list) = attributes::find(attributes, 3) else { continue };
                found.extend(attributes::parse(list).filter_map(|(_, one)| denied(one)));
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Whether the supervisor serves the queue that packets wait in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Yes,
    No,
}

/// A change of the gate's sets. Elements that are opened must not be there, those that are closed
/// must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) open: BTreeSet<Door>,
    pub(crate) close: BTreeSet<Door>,
    pub(crate) open_ranges: BTreeSet<Range>,
    pub(crate) close_ranges: BTreeSet<Range>,
}

/// Length of `struct nfgenmsg`.
const GENERIC: usize = 4;

fn request(kind: u16, flags: u16, body: &Attributes) -> Request {
    let mut bytes = vec![INET, 0, 0, 0];
    bytes.extend(body.as_bytes());
    Request { kind, flags, body: bytes }
}

/// Makes changes, in their order. So many that they do not fit one datagram are several
/// transactions; the rules and chains of a set-up, which come first, are far from that.
fn commit(netlink: &mut Netlink, batch: Vec<Request>) -> io::Result<()> {
    /// Below the least buffer that a kernel gives a socket.
    const LONGEST: usize = 96 << 10;
    let mut part = Vec::new();
    let mut length = 0;
    for request in batch {
        if length + request.body.len() > LONGEST {
            transaction(netlink, std::mem::take(&mut part))?;
            length = 0;
        }
        length += request.body.len();
        part.push(request);
    }
    transaction(netlink, part)
}

fn transaction(netlink: &mut Netlink, mut batch: Vec<Request>) -> io::Result<()> {
    // AF_UNSPEC, version 0, and the subsystem in network byte order.
    let marker = |kind| Request { kind, flags: 0, body: vec![0, 0, 0, 10] };
    if let Some(last) = batch.last_mut() {
        last.flags |= NLM_F_ACK;
    }
    batch.insert(0, marker(BATCH_BEGIN));
    batch.push(marker(BATCH_END));
    netlink.transact(&batch)
}

fn name(set: &str, family: Family) -> String {
    match family {
        Family::V4 => format!("{set}4"),
        Family::V6 => format!("{set}6"),
    }
}

fn set(family: Family, base: &str, flags: u32, size: Option<u32>) -> Request {
    let fields = [family.width(), 1, 2].map(|length| Attributes::new().be32(1, length));
    let mut description = Attributes::new();
    if let Some(size) = size {
        description = description.be32(1, size);
    }
    let description = description.list(2, fields);
    // The type is a note for the program that lists sets; nobody does here.
    let body = Attributes::new()
        .text(1, TABLE)
        .text(2, &name(base, family))
        .be32(3, flags)
        .be32(4, 0)
        .be32(5, family.width() + 8)
        .nest(9, &description)
        .be32(10, set_id(base, family));
    request(NEW_SET, NLM_F_CREATE, &body)
}

/// A number of its own for each set within the transaction.
fn set_id(base: &str, family: Family) -> u32 {
    let first = match base {
        "allow" => 1,
        "range" => 3,
        "denied" => 5,
        _ => 7,
    };
    first + u32::from(family == Family::V6)
}

fn chain(name: &str, hook: Option<(&str, i32, u32)>) -> Request {
    /// `NF_INET_LOCAL_OUT`.
    const OUTPUT: u32 = 3;
    let mut body = Attributes::new().text(1, TABLE).text(3, name);
    if let Some((kind, priority, policy)) = hook {
        let hook = Attributes::new().be32(1, OUTPUT).be32(2, priority.cast_unsigned());
        body = body.nest(4, &hook).be32(5, policy).text(7, kind);
    }
    request(NEW_CHAIN, NLM_F_CREATE, &body)
}

fn rule(chain: &str, expressions: impl IntoIterator<Item = Attributes>) -> Request {
    let body = Attributes::new().text(1, TABLE).text(2, chain).list(4, expressions);
    request(NEW_RULE, NLM_F_CREATE | APPEND, &body)
}

fn with(mut first: Vec<Attributes>, rest: impl IntoIterator<Item = Attributes>) -> Vec<Attributes> {
    first.extend(rest);
    first
}

/// What stays in the box: loopback and its own address.
fn own_destinations() -> [Vec<Attributes>; 4] {
    use std::net::Ipv6Addr;
    [
        expression::destination_begins(Family::V4, &[127]),
        expression::destination_begins(Family::V4, &BOX_V4.octets()),
        expression::destination_begins(Family::V6, &Ipv6Addr::LOCALHOST.octets()),
        expression::destination_begins(Family::V6, &BOX_V6.octets()),
    ]
}

fn gate_rules() -> Vec<Request> {
    let accept = || [expression::verdict(ACCEPT)];
    let mut rules = vec![rule("gate", with(expression::is_under_way(), accept()))];
    rules.extend(own_destinations().map(|own| rule("gate", with(own, accept()))));
    rules.push(rule("gate", with(expression::is_marked(REFUSED).into(), [to_refuse()])));
    let of = |family, protocol| {
        let first = Vec::from(expression::is_family(family));
        let first = with(first, expression::is_protocol(protocol));
        with(first, expression::key(family))
    };
    for family in Family::ALL {
        for protocol in [TCP, UDP] {
            for set in ["allow", "range"] {
                let found = [expression::in_set(&name(set, family)), expression::verdict(ACCEPT)];
                rules.push(rule("gate", with(of(family, protocol), found)));
            }
            rules.extend(deny(family, &of(family, protocol)));
        }
        let other = Vec::from(expression::is_family(family));
        rules.extend(deny(family, &with(other, expression::key_without_port(family))));
    }
    rules.push(rule("gate", [to_refuse()]));
    rules
}

fn to_refuse() -> Attributes {
    expression::go_to("refuse")
}

/// A destination that was refused before is counted; a new one is noted and announced; one that
/// there is no more room for is counted with the others of its protocol.
fn deny(family: Family, key: &[Attributes]) -> [Request; 4] {
    let set = name("denied", family);
    let known = [expression::in_set(&set), to_refuse()];
    let new = [expression::note(&set), expression::go_to("announce")];
    let mut more = key.to_vec();
    more.extend(expression::no_destination(family));
    more.extend([expression::note(&name("more", family)), to_refuse()]);
    [
        rule("gate", with(key.to_vec(), known)),
        rule("gate", with(key.to_vec(), new)),
        rule("gate", more),
        rule("gate", with(key.to_vec(), [to_refuse()])),
    ]
}

fn announce_rules() -> [Request; 2] {
    let burst = 2 * u32::try_from(ANNOUNCED).unwrap_or(u32::MAX / 2);
    let some = [expression::at_most(ANNOUNCED, burst), expression::go_to("tell")];
    [rule("announce", some), rule("announce", [to_refuse()])]
}

/// How a packet can wait in this kernel. It is asked, not tried: a transaction that fails waits for
/// every processor, some milliseconds.
fn way_to_wait(netlink: &mut Netlink) -> Attributes {
    /// `NFNL_MSG_COMPAT_GET`, for a target of IPv4, which this one is of every family.
    const GET: u16 = 11 << 8;
    let mut body = vec![2, 0, 0, 0];
    body.extend(expression::has_target().as_bytes());
    match netlink.fetch(GET, body) {
        Ok(_) => expression::wait_by_target(),
        Err(_) => expression::wait(),
    }
}

/// The table, and the chains that end what does not pass: nothing leads there yet. `way` is how the
/// first TCP packet to a destination waits.
fn refusal(way: Option<Attributes>) -> Vec<Request> {
    let table = Attributes::new().text(1, TABLE);
    let mut batch = vec![request(NEW_TABLE, NLM_F_CREATE, &table)];
    batch.extend(["refuse", "tell"].map(|name| chain(name, None)));
    batch.extend(refuse_rules());
    batch.extend(way.map(|way| rule("tell", with(expression::is_protocol(TCP).into(), [way]))));
    batch.push(rule("tell", [expression::log(GROUP, HEAD), to_refuse()]));
    batch
}

fn refuse_rules() -> Vec<Request> {
    let by = |protocol: u8, how| {
        let first = Vec::from(expression::is_protocol(protocol));
        rule("refuse", with(first, [expression::reject(how)]))
    };
    vec![
        by(TCP, Reject::Reset),
        by(UDP, Reject::PortUnreachable),
        rule("refuse", [expression::reject(Reject::Prohibited)]),
    ]
}

fn lead_rules(relay: &[Listener]) -> Vec<Request> {
    let stay = own_destinations();
    let mut rules: Vec<Request> = stay
        .into_iter()
        .map(|own| rule("lead", with(own, [expression::verdict(ACCEPT)])))
        .collect();
    for Listener { protocol, at } in relay {
        let (family, address) = match at.ip() {
            IpAddr::V4(v4) => (Family::V4, v4.octets().to_vec()),
            IpAddr::V6(v6) => (Family::V6, v6.octets().to_vec()),
        };
        let of = expression::is_protocol(protocol_number(*protocol));
        let of = with(expression::is_family(family).into(), of);
        rules.push(rule("lead", with(of, expression::lead_to(family, &address, at.port()))));
    }
    rules
}

fn elements(kind: u16, set: &str, elements: &[Attributes]) -> Vec<Request> {
    let flags = if kind == NEW_ELEMENT { NLM_F_CREATE } else { 0 };
    elements
        .chunks(CHUNK)
        .map(|chunk| {
            let body = Attributes::new().text(1, TABLE).text(2, set).list(3, chunk.to_vec());
            request(kind, flags, &body)
        })
        .collect()
}

fn value(bytes: &[u8]) -> Attributes {
    Attributes::new().bytes(1, bytes)
}

fn door_elements(kind: u16, doors: &BTreeSet<Door>) -> Vec<Request> {
    Family::ALL
        .into_iter()
        .flat_map(|family| {
            let of: Vec<_> = doors
                .iter()
                .filter(|door| door.address.is_ipv6() == (family == Family::V6))
                .map(|door| key::key(door.address, protocol_number(door.protocol), door.port))
                .map(|key| Attributes::new().nest(1, &value(&key)))
                .collect();
            elements(kind, &name("allow", family), &of)
        })
        .collect()
}

fn range_elements(kind: u16, ranges: &BTreeSet<Range>) -> Vec<Request> {
    Family::ALL
        .into_iter()
        .flat_map(|family| {
            let of: Vec<_> = ranges
                .iter()
                .filter(|range| range.family() == family)
                .map(Range::ends)
                .map(|(first, last)| {
                    Attributes::new().nest(1, &value(&first)).nest(10, &value(&last))
                })
                .collect();
            elements(kind, &name("range", family), &of)
        })
        .collect()
}

fn denied(element: &[u8]) -> Option<Denied> {
    let key = attributes::find(attributes::find(element, 1)?, 1)?;
    let (address, protocol, port) = key::read(key)?;
    // An expression's data, and in it the counter of packets.
    let counter = attributes::find(attributes::find(element, 7)?, 2)?;
    let packets = attributes::find(counter, 2)?.first_chunk().map(|b| u64::from_be_bytes(*b))?;
    Some(Denied { address, protocol, port, packets })
}
