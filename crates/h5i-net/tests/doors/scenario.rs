//! The rehearsals.

mod askers;
mod attacks;
mod carried;
mod datagrams;
mod diverted;
mod flows;
mod live;
mod names;
mod real;
mod spoken;

/// Id of the door, claim, rehearsal.
pub(crate) const ALL: &[(&str, &str, fn())] = &[
    ("F1", "a listed address is reached and another is refused at once", flows::by_address),
    ("F1", "with network none everything is refused, by name and address", flows::none),
    ("F1", "a range is reached in its port only", flows::by_range),
    ("F2", "UDP, QUIC, ICMP and other ports are refused at once and recorded", flows::protocols),
    ("F2", "IPv6 is carried where it is listed and refused where not", flows::ipv6),
    ("F2", "UDP is carried where a rule names it, and only there", datagrams::carried),
    ("F2", "one socket reaches two destinations, and hears from each", datagrams::two),
    (
        "F2",
        "a revoked UDP rule ends its flow, and a port that is used again is judged again",
        datagrams::revoked,
    ),
    ("F3", "a listed name resolves, another is refused and never leaves the host", names::listed),
    ("F3", "names below a listed domain resolve, the domain itself does not", names::wildcard),
    ("F3", "a slow name keeps no other waiting", names::slow),
    ("F4", "no spelling of private space is reached in open mode", flows::open),
    ("F4", "private space is reached where it is listed by address", flows::private_listed),
    ("F5", "a listed name that turns to a private address is refused", names::rebinding),
    ("F6", "TLS to a name must carry that name", spoken::tls),
    ("F6", "where a rule says so, TLS may carry any name, or none", spoken::any_name),
    ("F6", "HTTP to a name must carry a listed host in every request", spoken::http),
    ("F6", "other protocols pass by name and port", spoken::other),
    ("F6", "a web socket passes, HTTP/2 in clear does not", spoken::upgrade),
    ("G3", "a flow to a service with a broker is the broker's, whole", diverted::to_the_service),
    ("G3", "what is no TLS to the service is carried by nobody", diverted::nothing_else),
    ("G3", "another name or port of the same address is reached as ever", diverted::neighbours),
    ("G3", "the broker's flows are closed with their rule", diverted::revoked),
    ("F7", "200 fetches of a name with eight rotating addresses", names::rotating),
    ("F8", "the host's loopback is unreachable but for a listed port", flows::host),
    ("F8", "a direct connection to the relay goes nowhere", attacks::direct),
    ("F9", "a server in the box is reached there, and from nowhere else", flows::own_server),
    ("F10", "revoke closes open flows and refuses new ones", live::revoke),
    ("F10", "allow opens at once, cut closes everything", live::allow_and_cut),
    ("F10", "a flow is closed whatever it was about to do", live::in_every_state),
    ("F10", "revoking a name closes its flow, and not that of its neighbour", live::revoke_name),
    ("F10", "a rule that no longer frees the name of TLS closes what used that", live::stricter),
    ("F11", "each budget stops with its name", live::budgets),
    ("F12", "bytes and names are on record", live::counted),
    ("F12", "a flow names the socket of the box that it came from", live::socket),
    ("F13", "a refused destination names the socket that tried it", askers::addresses),
    ("F13", "a refused name names the socket that asked", askers::names),
    ("F13", "what a program of a real box is refused leads to it", askers::programs),
    ("F13", "refusals are counted and told at the end", live::told_at_the_end),
    ("R1", "programs of a real box work without a proxy variable, or fail at once", real::clients),
    ("R1", "a static program of C is behind the gate as all others", real::static_program),
    ("R1", "git works over HTTPS where its host is listed, and fails at once elsewhere", real::git),
    ("R2", "a box can't change its gate or routes", real::tampering),
    ("N1", "bytes arrive whole, in both directions, past slow readers", carried::whole),
    ("N2", "half-closed flows go on in the other direction", carried::half_closed),
    ("N3", "a reset is a reset on the other side, and an unreachable host too", carried::resets),
    ("N4", "1,000 flows at once", carried::many),
    ("N5", "a sink that is closed ends the network", live::sink_closed),
    ("A1", "10,000 refused connections", attacks::refused_flood),
    ("A2", "a flood of names and hostile packets", attacks::resolver),
    ("A3", "a cut client hello holds nobody up", attacks::fragments),
    ("A4", "2,000 rules and 3,600 pinned addresses, cut at once", attacks::crowd),
    ("A5", "what a gate with a hole lets through, the relay refuses", attacks::hole),
    ("A6", "two boxes have nothing of each other", attacks::two_boxes),
];
