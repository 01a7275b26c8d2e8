//! F8, F9: loopback of the box and of the host.

use std::net::TcpListener;

use super::{must, scenario};
use crate::door::{Scenario, words};
use crate::world::{Variant, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("F8a", "the host's loopback is another one", host_loopback),
    scenario("F9d", "two runs of a session share their loopback", shared_loopback),
];

fn host_loopback(world: &World) -> Result<String, String> {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let attempt = words(&["tcp-connect", &address]);
    let seen = world.attempt(Variant::Usual, &attempt);
    must(seen == format!("errno {}", libc::ECONNREFUSED), "seen", &seen)?;
    let twin = world.attempt(Variant::HostNetwork, &attempt);
    must(twin == "ok", "twin", &twin)?;
    Ok(seen)
}

fn shared_loopback(world: &World) -> Result<String, String> {
    let session = world.session(Variant::Usual);
    let mut server = session.command(world.program());
    server.args(["attempt", "tcp-serve", "127.0.0.1:4321"]);
    let mut server = server.stdout(h5i_confine::Stdio::Piped).spawn().unwrap();
    let mut line = [0u8; 6];
    std::io::Read::read_exact(server.stdout.as_mut().unwrap(), &mut line).unwrap();
    let attempt = words(&["tcp-connect", "127.0.0.1:4321"]);
    let other = world.attempt(Variant::Second, &attempt);
    must(other == format!("errno {}", libc::ECONNREFUSED), "another box", &other)?;
    let seen = world.attempt(Variant::Usual, &attempt);
    must(seen == "ok", "seen", &seen)?;
    let outcome = server.wait();
    must(outcome == h5i_confine::Outcome::Exited(0), "server", outcome)?;
    Ok(other)
}
