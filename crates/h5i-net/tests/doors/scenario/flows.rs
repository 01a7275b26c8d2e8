//! Flows by address.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use h5i_net::{Basis, Event, RefusedProtocol, Verdict};
use h5i_policy::NetMode;

use crate::server;
use crate::world::{OTHER, PUBLIC, World};

/// Refusals come sooner than this.
const AT_ONCE: Duration = Duration::from_millis(500);

pub(crate) fn by_address() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7"]);
    server::says(world.listen(&format!("{PUBLIC}:7")), b"hello");
    server::says(world.listen(&format!("{PUBLIC}:8")), b"hello");
    server::says(world.listen(&format!("{OTHER}:7")), b"hello");
    assert_eq!(world.talk(&format!("{PUBLIC}:7"), b"abc").unwrap(), b"hello");
    let began = Instant::now();
    for refused in [format!("{PUBLIC}:8"), format!("{OTHER}:7")] {
        let error = world.connect(&refused).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{refused}");
        let to: std::net::SocketAddr = refused.parse().unwrap();
        world.log.wait(|event| {
            matches!(event, Event::RefusedAddress { address, protocol, count: 1 }
                if *address == to.ip() && *protocol == RefusedProtocol::Tcp(to.port()))
        });
    }
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let ended = world.log.wait(|event| matches!(event, Event::FlowEnded(_)));
    let Event::FlowEnded(ended) = ended else { unreachable!() };
    assert_eq!((ended.sent, ended.received, ended.verdict), (3, 5, Verdict::Done));
    assert!(matches!(ended.basis, Basis::Address(_)), "{ended:?}");
}
