//! The instructions of nftables that the gate is made of (`linux/netfilter/nf_tables.h`).

use crate::attributes::Attributes;

/// Registers of four bytes; a key of several fields stands in consecutive ones.
pub(super) const KEY: u32 = 8;
/// A register behind the longest key.
const SCRATCH: u32 = 16;

pub(super) const ACCEPT: i32 = 1;
const GOTO: i32 = -4;
const VERDICT: u32 = 0;

/// One family of addresses, by where the packet has its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// `NFPROTO_IPV4`, `NFPROTO_IPV6`.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }

    /// Length of an address in bytes.
    pub(super) const fn width(self) -> u32 {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }

    const fn destination(self) -> u32 {
        match self {
            Self::V4 => 16,
            Self::V6 => 24,
        }
    }

    /// The registers of a key: address, protocol, port.
    const fn protocol_register(self) -> u32 {
        KEY + self.width() / 4
    }

    const fn port_register(self) -> u32 {
        self.protocol_register() + 1
    }
}

fn expression(name: &str, data: &Attributes) -> Attributes {
    Attributes::new().text(1, name).nest(2, data)
}

fn value(bytes: &[u8]) -> Attributes {
    Attributes::new().bytes(1, bytes)
}

/// Loads a fact about the packet: `NFT_META_NFPROTO` 15, `NFT_META_L4PROTO` 16.
fn meta(key: u32, register: u32) -> Attributes {
    expression("meta", &Attributes::new().be32(1, register).be32(2, key))
}

fn equals(register: u32, bytes: &[u8]) -> Attributes {
    expression("cmp", &Attributes::new().be32(1, register).be32(2, 0).nest(3, &value(bytes)))
}

/// Loads bytes of the packet: base 1 is the network header, 2 the transport header.
fn payload(base: u32, offset: u32, length: u32, register: u32) -> Attributes {
    let data = Attributes::new().be32(1, register).be32(2, base).be32(3, offset).be32(4, length);
    expression("payload", &data)
}

fn constant(register: u32, bytes: &[u8]) -> Attributes {
    expression("immediate", &Attributes::new().be32(1, register).nest(2, &value(bytes)))
}

pub(super) fn verdict(code: i32) -> Attributes {
    verdict_of(&Attributes::new().be32(1, code.cast_unsigned()))
}

pub(super) fn go_to(chain: &str) -> Attributes {
    verdict_of(&Attributes::new().be32(1, GOTO.cast_unsigned()).text(2, chain))
}

fn verdict_of(verdict: &Attributes) -> Attributes {
    let data = Attributes::new().nest(2, verdict);
    expression("immediate", &Attributes::new().be32(1, VERDICT).nest(2, &data))
}

/// The packet is of this family.
pub(super) fn is_family(family: Family) -> [Attributes; 2] {
    [meta(15, SCRATCH), equals(SCRATCH, &[family.number()])]
}

/// The packet is of this protocol over IP.
pub(super) fn is_protocol(protocol: u8) -> [Attributes; 2] {
    [meta(16, SCRATCH), equals(SCRATCH, &[protocol])]
}

/// The packet carries this mark (`NFT_META_MARK` 3). Only who rules the network can set one.
pub(super) fn is_marked(mark: u32) -> [Attributes; 2] {
    [meta(3, SCRATCH), equals(SCRATCH, &mark.to_ne_bytes())]
}

/// The flow is under way, or answers one that is (connection tracking states 2 and 4, which the
/// kernel keeps in its own byte order).
pub(super) fn is_under_way() -> Vec<Attributes> {
    let load = expression("ct", &Attributes::new().be32(1, SCRATCH).be32(2, 0));
    let mask = Attributes::new()
        .be32(1, SCRATCH)
        .be32(2, SCRATCH)
        .be32(3, 4)
        .nest(4, &value(&6_u32.to_ne_bytes()))
        .nest(5, &value(&[0; 4]));
    let some = Attributes::new().be32(1, SCRATCH).be32(2, 1).nest(3, &value(&[0; 4]));
    vec![load, expression("bitwise", &mask), expression("cmp", &some)]
}

/// The destination lies in the range of `address` whose first `prefix` bytes are given.
pub(super) fn destination_begins(family: Family, prefix: &[u8]) -> Vec<Attributes> {
    let length = u32::try_from(prefix.len()).unwrap_or(family.width());
    let mut all = Vec::from(is_family(family));
    all.push(payload(1, family.destination(), length, SCRATCH));
    all.push(equals(SCRATCH, prefix));
    all
}

/// Loads (destination, protocol, port) for [`in_set`] and [`note`]. Only protocols with ports.
pub(super) fn key(family: Family) -> Vec<Attributes> {
    vec![
        payload(1, family.destination(), family.width(), KEY),
        meta(16, family.protocol_register()),
        payload(2, 2, 2, family.port_register()),
    ]
}

/// As [`key`], with port 0, for protocols without ports.
pub(super) fn key_without_port(family: Family) -> Vec<Attributes> {
    vec![
        payload(1, family.destination(), family.width(), KEY),
        meta(16, family.protocol_register()),
        constant(family.port_register(), &[0; 4]),
    ]
}

/// Puts no address and no port in the place of those of the key.
pub(super) fn no_destination(family: Family) -> [Attributes; 2] {
    let none = vec![0; family.width() as usize];
    [constant(KEY, &none), constant(family.port_register(), &[0; 4])]
}

/// The key is in the set. An element with a counter counts.
pub(super) fn in_set(set: &str) -> Attributes {
    expression("lookup", &Attributes::new().text(1, set).be32(2, KEY))
}

/// Adds the key to the set, with a counter; ends the rule when the set is full.
pub(super) fn note(set: &str) -> Attributes {
    let counter = expression("counter", &Attributes::new());
    let data = Attributes::new().text(1, set).be32(3, 0).be32(4, KEY).nest(7, &counter);
    expression("dynset", &data)
}

/// The packet waits in queue 0 for the supervisor's word; it is lost where nobody serves that.
pub(super) fn wait() -> Attributes {
    expression("queue", &Attributes::new().bytes(1, &[0, 0]).bytes(2, &[0, 1]))
}

/// The same by iptables' target. Its revision 0 has one field, the queue's number, in eight bytes by
/// its alignment.
pub(super) fn wait_by_target() -> Attributes {
    let target = Attributes::new().text(1, TARGET).be32(2, 0).bytes(3, &[0; 8]);
    expression("target", &target)
}

/// The question whether the kernel has that target (`NFTA_COMPAT_TYPE` 1 is targets).
pub(super) fn has_target() -> Attributes {
    Attributes::new().text(1, TARGET).be32(2, 0).be32(3, 1)
}

const TARGET: &str = "NFQUEUE";

/// Ends the rule when more than this many packets a second have come here.
pub(super) fn at_most(per_second: u64, burst: u32) -> Attributes {
    expression("limit", &Attributes::new().be64(1, per_second).be64(2, 1).be32(3, burst))
}

/// Sends the head of the packet to the listeners of `group`.
pub(super) fn log(group: u16, length: u32) -> Attributes {
    let data = Attributes::new()
        .bytes(1, &group.to_be_bytes())
        .be32(3, length)
        .bytes(4, &1_u16.to_be_bytes());
    expression("log", &data)
}

/// How a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reject {
    /// TCP reset: `connect` fails with ECONNREFUSED.
    Reset,
    /// ICMP port unreachable. It is the caller's `send` that fails, with EPERM, as for whatever the
    /// output hook drops: the ICMP error itself is not made by kernels whose route is not `local`.
    PortUnreachable,
    /// ICMP administratively prohibited; `send` fails with EPERM as well.
    Prohibited,
}

pub(super) fn reject(how: Reject) -> Attributes {
    let data = match how {
        Reject::Reset => Attributes::new().be32(1, 1),
        Reject::PortUnreachable => Attributes::new().be32(1, 2).bytes(2, &[1]),
        Reject::Prohibited => Attributes::new().be32(1, 2).bytes(2, &[3]),
    };
    expression("reject", &data)
}

/// Leads the flow to `address` and `port` of this namespace.
pub(super) fn lead_to(family: Family, address: &[u8], port: u16) -> [Attributes; 3] {
    let nat = Attributes::new()
        .be32(1, 1)
        .be32(2, u32::from(family.number()))
        .be32(3, KEY)
        .be32(5, SCRATCH);
    let [high, low] = port.to_be_bytes();
    [constant(KEY, address), constant(SCRATCH, &[high, low, 0, 0]), expression("nat", &nat)]
}
