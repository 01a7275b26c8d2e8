//! E, F13: sockets and other ways between processes.

use Expect::{Errno, Refused, Sees};
use Twin::{Filter, In, Like, LikeOutside, Outside};

use crate::door::{Door, Expect, Twin, door, words};
use crate::world::{Variant, World};

pub(crate) fn doors(world: &World) -> Vec<Door> {
    let by_path = world.host("secret/host.sock");
    let name = world.abstract_name();
    let own_name = "h5i-doors-own";
    let mut doors = vec![
        door(
            "E1a",
            "a host's socket by path",
            &["unix-connect", &by_path],
            Errno(libc::ENOENT),
            Outside,
        ),
        door(
            "E1b",
            "a socket of its own",
            &["unix-own", "/work"],
            Sees(String::new()),
            LikeOutside(words(&["unix-own", "/tmp"])),
        ),
        door(
            "E1c",
            "the message bus",
            &["unix-connect", "/run/dbus/system_bus_socket"],
            Errno(libc::ENOENT),
            Like(words(&["unix-own", "/run"])),
        ),
        door(
            "E2a",
            "a host's abstract socket",
            &["abstract-connect", name],
            Errno(libc::ECONNREFUSED),
            Outside,
        ),
        door(
            "E2b",
            "a host's abstract socket, on the host's network",
            &["abstract-connect", name],
            Errno(libc::EPERM),
            Outside,
        )
        .in_box(Variant::HostNetwork),
        door(
            "E2c",
            "an abstract socket of its own",
            &["abstract-own", own_name],
            Sees(String::new()),
            Outside,
        ),
        door(
            "E2c",
            "the same on the host's network",
            &["abstract-own", own_name],
            Sees(String::new()),
            Outside,
        )
        .in_box(Variant::HostNetwork),
        door("E3b", "links by netlink", &["netlink-links"], Sees("16".to_owned()), Outside),
        door(
            "E4a",
            "shared memory of its own",
            &["shm-own"],
            Sees(String::new()),
            Like(words(&["shm-get", "77"])),
        ),
        door(
            "E4a",
            "and the other box",
            &["shm-get", "77"],
            Errno(libc::ENOENT),
            In(Variant::Usual),
        )
        .in_box(Variant::Second),
        door("E4b", "a message queue", &["mq-own", "h5i"], Errno(libc::EACCES), Outside),
        door(
            "F9a",
            "a server on 127.0.0.1",
            &["tcp-own", "127.0.0.1:0"],
            Sees("hello".to_owned()),
            Outside,
        ),
        door(
            "F9b",
            "a server on [::1]",
            &["tcp-own", "[::1]:0"],
            Sees("hello".to_owned()),
            Outside,
        ),
        door(
            "F9c",
            "a server on localhost",
            &["tcp-own", "localhost:3000"],
            Sees("hello".to_owned()),
            Like(words(&["tcp-own", "localhost:3001"])),
        ),
        door(
            "F1a",
            "an address outside",
            &["tcp-connect", "192.0.2.1:9"],
            Errno(libc::ENETUNREACH),
            Like(words(&["tcp-own", "127.0.0.1:0"])),
        ),
    ];
    doors.extend(families());
    doors
}

/// Families and types that a box has no use for.
fn families() -> Vec<Door> {
    let passes = (libc::SYS_socket, [1, 1, 0]);
    [
        ("packet", libc::AF_PACKET, libc::SOCK_RAW, 3),
        ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        ("alg", libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        ("bluetooth", libc::AF_BLUETOOTH, libc::SOCK_RAW, 1),
        ("key", libc::AF_KEY, libc::SOCK_RAW, 2),
        ("tipc", libc::AF_TIPC, libc::SOCK_RDM, 0),
        ("xdp", libc::AF_XDP, libc::SOCK_RAW, 0),
        ("smc", 43, libc::SOCK_STREAM, 0),
        ("raw IPv4", libc::AF_INET, libc::SOCK_RAW, 1),
        ("raw IPv4, close-on-exec", libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 1),
        ("raw IPv6", libc::AF_INET6, libc::SOCK_RAW, 58),
        ("packet by IPv4", libc::AF_INET, 10, 3),
        ("netlink of netfilter", libc::AF_NETLINK, libc::SOCK_RAW, 12),
        ("netlink of audit", libc::AF_NETLINK, libc::SOCK_RAW, 9),
        ("netlink of device events", libc::AF_NETLINK, libc::SOCK_DGRAM, 15),
        ("netlink, generic", libc::AF_NETLINK, libc::SOCK_RAW, 16),
    ]
    .into_iter()
    .flat_map(|(name, family, kind, protocol)| {
        let [f, k, p] = [family, kind, protocol].map(|n| n.to_string());
        let args = [family, kind, protocol].map(|n| n as u64);
        [Variant::Usual, Variant::HostNetwork].map(|variant| {
            let twin = Filter { refused: (libc::SYS_socket, args), passes };
            let claim = format!("F13 a {name} socket");
            door("E3a", &claim, &["socket", &f, &k, &p], Refused("socket"), twin).in_box(variant)
        })
    })
    .collect()
}
