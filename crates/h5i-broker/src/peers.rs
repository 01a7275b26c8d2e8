//! Who holds the other end of a connection.

use std::net::SocketAddr;

use crate::event::Program;

/// Who holds a socket of the box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The run that its process belongs to, where that is known.
    pub run: Option<u64>,
    /// The program.
    pub program: Program,
}

/// Tells who holds the other end of a connection. Asked once for each connection, when it is taken,
/// on a thread that may block for some milliseconds.
pub trait Peers: Send + Sync {
    /// The holder of the box's socket with the address `peer`, which is connected to `local`, as the
    /// box has them. `None` where it can't be told: a grant that lists programs refuses it then.
    fn holder(&self, peer: SocketAddr, local: SocketAddr) -> Option<Holder>;
}

/// Knows nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPeers;

impl Peers for NoPeers {
    fn holder(&self, _: SocketAddr, _: SocketAddr) -> Option<Holder> {
        None
    }
}
