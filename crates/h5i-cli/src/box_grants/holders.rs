//! Which program of the box speaks to the broker.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use h5i_broker::{Broker, Holder, Peers, Program};
use h5i_confine::SocketHolder;
use h5i_net::{Divert, Sockets};
use h5i_policy::{HostName, Protocol};

use crate::receipt_log::Recorder;

/// Tells by the kernel's table of the box's sockets, and by who holds which.
pub(super) struct Holders {
    sockets: Mutex<Sockets>,
    recorder: Arc<Recorder>,
}

impl Holders {
    pub(super) fn new(sockets: Sockets, recorder: Arc<Recorder>) -> Self {
        Self { sockets: Mutex::new(sockets), recorder }
    }
}

impl Peers for Holders {
    fn holder(&self, peer: SocketAddr, local: SocketAddr) -> Option<Holder> {
        let inode = {
            let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            sockets.inode(Protocol::Tcp, peer, local)?
        };
        let holder = self.recorder.holder_of(inode)?;
        Some(Holder { run: holder.run, program: program(holder) })
    }
}

/// Hands the network's flows over to the broker.
pub(super) struct ToBroker {
    broker: Arc<Broker>,
    grants: BTreeMap<(HostName, u16), String>,
    recorder: Arc<Recorder>,
}

impl ToBroker {
    pub(super) fn new(
        broker: Arc<Broker>,
        grants: BTreeMap<(HostName, u16), String>,
        recorder: Arc<Recorder>,
    ) -> Self {
        Self { broker, grants, recorder }
    }
}

impl Divert for ToBroker {
    fn divert(&self, flow: h5i_net::Diverted) {
        let Some(grant) = self.grants.get(&(flow.host, flow.port)) else { return };
        let holder = flow.holder.and_then(|inode| self.recorder.holder_of(inode));
        let mut diverted = h5i_broker::Diverted::new(flow.socket, grant);
        // With one run only, it is that one's, whoever holds the socket by now.
        diverted.run = holder.as_ref().and_then(|h| h.run).or_else(|| self.recorder.alone());
        diverted.program = holder.map(program);
        // A broker that has ended closes the socket.
        self.broker.intercept(diverted).ok();
    }
}

fn program(holder: SocketHolder) -> Program {
    Program { pid: holder.pid, path: PathBuf::from(OsString::from_vec(holder.program)) }
}
