//! Network namespaces of a test, and what connects them.

use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Gives an ordinary user's process a user namespace with its own ids, so that it may make network
/// namespaces. It must have one thread.
pub(crate) fn take_user_namespace() {
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    if uid.is_root() {
        return;
    }
    // SAFETY: unshare(2) takes flags only; no other thread of this process exists yet.
    let taken = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
    assert_eq!(taken, 0, "{}", std::io::Error::last_os_error());
    fs::write("/proc/self/setgroups", "deny").unwrap();
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", uid.as_raw())).unwrap();
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", gid.as_raw())).unwrap();
}

/// Makes a network namespace and leaves the calling thread in it.
pub(crate) fn new() -> OwnedFd {
    // SAFETY: flags only; a network namespace is each thread's own.
    let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    let namespace = current();
    link_up(1);
    namespace
}

fn current() -> OwnedFd {
    fs::File::open("/proc/thread-self/ns/net").unwrap().into()
}

/// Moves the calling thread into a namespace.
pub(crate) fn enter(namespace: BorrowedFd<'_>) {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).unwrap();
}

/// Does something in a namespace.
pub(crate) fn within<T>(namespace: &OwnedFd, act: impl FnOnce() -> T) -> T {
    let home = current();
    enter(namespace.as_fd());
    let result = act();
    enter(home.as_fd());
    result
}

fn tell(message: RouteNetlinkMessage, flags: u16) {
    let family = rustix::net::AddressFamily::NETLINK;
    let socket =
        rustix::net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None).unwrap();
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    rustix::net::send(&socket, &bytes, SendFlags::empty()).unwrap();
    let mut answer = [0; 4096];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length]).unwrap();
    let NetlinkPayload::Error(error) = answer.payload else { panic!("{answer:?}") };
    assert_eq!(error.code, None, "{error:?}");
}

fn link_up(index: u32) {
    let mut up = LinkMessage::default();
    up.header.index = index;
    up.header.flags = LinkFlags::Up;
    up.header.change_mask = LinkFlags::Up;
    tell(RouteNetlinkMessage::SetLink(up), 0);
}

/// Index of the one link beside loopback.
const CABLE: u32 = 2;

/// Lays a cable from the current namespace to `other`: link 2 in each.
pub(crate) fn lay_cable(other: &OwnedFd) {
    let mut peer = LinkMessage::default();
    peer.header.index = CABLE;
    peer.attributes =
        vec![LinkAttribute::IfName("eth0".into()), LinkAttribute::NetNsFd(other.as_raw_fd())];
    let mut cable = LinkMessage::default();
    cable.header.index = CABLE;
    cable.attributes = vec![
        LinkAttribute::IfName("eth0".into()),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]),
    ];
    tell(RouteNetlinkMessage::NewLink(cable), NLM_F_CREATE);
    link_up(CABLE);
    within(other, || link_up(CABLE));
}

/// Gives the cable of the current namespace an address.
pub(crate) fn cable_address(address: IpAddr, prefix: u8) {
    address_on(CABLE, address, prefix);
}

/// Gives loopback of the current namespace an address.
pub(crate) fn loopback_address(address: IpAddr) {
    address_on(1, address, if address.is_ipv4() { 32 } else { 128 });
}

fn address_on(index: u32, address: IpAddr, prefix: u8) {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = prefix;
    message.header.index = index;
    message.header.flags = netlink_packet_route::address::AddressHeaderFlags::Nodad;
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    tell(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE);
}

/// Routes everything of the current namespace over the cable.
pub(crate) fn default_route(gateway: IpAddr) {
    let mut route = RouteMessage::default();
    route.header.address_family = family(gateway);
    route.header.table = 254;
    route.header.protocol = RouteProtocol::Static;
    route.header.kind = RouteType::Unicast;
    let gateway = match gateway {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    };
    route.attributes = vec![RouteAttribute::Gateway(gateway), RouteAttribute::Oif(CABLE)];
    tell(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE);
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// Puts a rule before all others of the gate that accepts everything, by hand: table `h5i`, chain
/// `gate`.
pub(crate) fn open_gate() {
    const NETFILTER: u32 = 12;
    let attribute = |kind: u16, value: &[u8]| {
        let mut bytes = u16::try_from(value.len() + 4).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let accept = attribute(2, &attribute(1, &1_u32.to_be_bytes()));
    let data = [attribute(1, &[0; 4]), attribute(2, &accept)].concat();
    let expression = [attribute(1, b"immediate\0"), attribute(2, &data)].concat();
    let rule = [
        vec![1, 0, 0, 0],
        attribute(1, b"h5i\0"),
        attribute(2, b"gate\0"),
        attribute(4, &attribute(1, &expression)),
    ];
    let message = |kind: u16, flags: u16, body: &[u8]| {
        let mut bytes = u32::try_from(body.len() + 16).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | NLM_F_REQUEST).to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        bytes
    };
    let batch = [
        message(16, 0, &[0, 0, 0, 10]),
        message((10 << 8) | 6, NLM_F_CREATE | NLM_F_ACK, &rule.concat()),
        message(17, 0, &[0, 0, 0, 10]),
    ];
    let family = rustix::net::AddressFamily::NETLINK;
    let protocol = rustix::net::Protocol::from_raw(std::num::NonZero::new(NETFILTER).unwrap());
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::RAW, flags, Some(protocol)).unwrap();
    rustix::net::send(&socket, &batch.concat(), SendFlags::empty()).unwrap();
    let mut answer = [0; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
    assert_eq!((length, &answer[16..20]), (36, &[0; 4][..]));
}
