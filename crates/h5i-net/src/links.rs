//! Addresses and routes of a box's network namespace: everything leads to loopback, where the gate
//! and the relay are.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NetlinkSerializable};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::address::{BOX_V4, BOX_V6};
use crate::netlink::{Netlink, Request};

/// Loopback has this index in every network namespace.
const LOOPBACK: u32 = 1;

/// Brings loopback up, gives it the box's address and routes everything there.
///
/// Yields whether the namespace has IPv6: where the host has turned it off, the box has none either,
/// and every IPv6 destination is unreachable at once.
pub(crate) fn set_up(route: &mut Netlink) -> io::Result<bool> {
    let mut up = LinkMessage::default();
    up.header.index = LOOPBACK;
    up.header.flags = LinkFlags::Up;
    up.header.change_mask = LinkFlags::Up;
    let up = request(&RouteNetlinkMessage::SetLink(up), 0);
    let [address, default] = family(IpAddr::V4(BOX_V4));
    route.transact(&[up, address, default])?;
    match route.transact(&family(IpAddr::V6(BOX_V6))) {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// `net.ipv6.conf.*.disable_ipv6` gives EACCES, a kernel without it one of the others.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EAFNOSUPPORT | libc::EOPNOTSUPP))
}

/// The box's own address of a family, and the default route of that; the last one is acknowledged.
fn family(own: IpAddr) -> [Request; 2] {
    let (family, length) = match own {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    let mut address = AddressMessage::default();
    address.header.family = family;
    address.header.prefix_len = length;
    // Nobody else is on this link, so there is no duplicate to look for.
    address.header.flags = AddressHeaderFlags::Nodad;
    address.header.index = LOOPBACK;
    address.attributes = vec![AddressAttribute::Local(own), AddressAttribute::Address(own)];
    let address = request(&RouteNetlinkMessage::NewAddress(address), NLM_F_CREATE | NLM_F_REPLACE);
    let source = match own {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    };
    let mut default = RouteMessage::default();
    default.header.address_family = family;
    default.header.table = RouteHeader::RT_TABLE_MAIN;
    default.header.protocol = RouteProtocol::Static;
    default.header.scope = RouteScope::Universe;
    default.header.kind = RouteType::Unicast;
    default.attributes = vec![RouteAttribute::Oif(LOOPBACK), RouteAttribute::PrefSource(source)];
    let flags = NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK;
    [address, request(&RouteNetlinkMessage::NewRoute(default), flags)]
}

fn request(message: &RouteNetlinkMessage, flags: u16) -> Request {
    let mut body = vec![0; message.buffer_len()];
    message.serialize(&mut body);
    Request { kind: message.message_type(), flags, body }
}

/// Whether the host itself, or everybody on its link, answers at `address`, by the host's routes.
///
/// No route at all is a no: a connection there fails by itself.
pub(crate) fn is_hosts_own(route: &mut Netlink, address: IpAddr) -> io::Result<bool> {
    let mut question = RouteMessage::default();
    let destination = match address {
        IpAddr::V4(v4) => {
            question.header.address_family = AddressFamily::Inet;
            question.header.destination_prefix_length = 32;
            RouteAddress::Inet(v4)
        }
        IpAddr::V6(v6) => {
            question.header.address_family = AddressFamily::Inet6;
            question.header.destination_prefix_length = 128;
            RouteAddress::Inet6(v6)
        }
    };
    question.attributes = vec![RouteAttribute::Destination(destination)];
    let question = request(&RouteNetlinkMessage::GetRoute(question), 0);
    match route.fetch(question.kind, question.body) {
        // struct rtmsg: the type is its eighth byte.
        Ok(answer) => Ok(answer.body.get(7).is_none_or(|kind| *kind != libc::RTN_UNICAST)),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => Ok(false),
            _ => Err(error),
        },
    }
}
