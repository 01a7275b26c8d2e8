//! Flows that somebody else carries: the way to a broker that ends their TLS on the host.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use h5i_policy::HostName;

use crate::event::Basis;

/// Takes flows over. It is called from the network's own thread and must not wait.
pub trait Divert: Send + Sync {
    /// Takes one flow over. Dropping its socket resets the box's connection.
    fn divert(&self, flow: Diverted);
}

/// A flow that the relay would have carried to its service.
#[derive(Debug)]
pub struct Diverted {
    /// Number of the flow in its session; [`Event::FlowOpened`](crate::Event::FlowOpened) came
    /// before, and [`Event::FlowEnded`](crate::Event::FlowEnded) comes when it is over.
    pub flow: u64,
    /// The service, as the client named it in TLS.
    pub host: HostName,
    /// The port that the box connected to.
    pub port: u16,
    /// A connected stream (`AF_UNIX`, non-blocking) of the client's bytes from its first, which
    /// begin a TLS client hello, and of those to the client.
    pub socket: OwnedFd,
    /// The inode of the box's socket, as in [`Event::FlowOpened`](crate::Event::FlowOpened).
    pub holder: Option<u64>,
}

/// Which services are diverted, and to whom.
#[derive(Clone)]
pub(crate) struct Diversion {
    services: Arc<BTreeSet<(HostName, u16)>>,
    to: Arc<dyn Divert>,
}

impl fmt::Debug for Diversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diversion").field("services", &self.services).finish_non_exhaustive()
    }
}

impl Diversion {
    pub(crate) fn new(services: BTreeSet<(HostName, u16)>, to: Arc<dyn Divert>) -> Self {
        Self { services: Arc::new(services), to }
    }

    /// Whether a flow that is allowed on this basis may turn out to be one for the diversion.
    pub(crate) fn may_concern(&self, basis: &Basis, port: u16) -> bool {
        match basis {
            Basis::Names(names) => names.iter().any(|(name, _)| self.concerns(name, port)),
            Basis::Open(names) => names.iter().any(|name| self.concerns(name, port)),
            Basis::Address(_) | Basis::Host(_) => false,
        }
    }

    /// Whether flows to this service are diverted.
    pub(crate) fn concerns(&self, name: &HostName, port: u16) -> bool {
        self.services.iter().any(|(service, own)| service == name && *own == port)
    }

    /// The address that the box is given for a service: nobody connects there, so it needs not be
    /// one that the box may know, and is shared with no other name. Of the range for benchmarks of
    /// routers (RFC 2544), which leads nowhere.
    pub(crate) fn stand_in(&self, name: &HostName) -> Option<IpAddr> {
        let mut hosts: Vec<&HostName> = self.services.iter().map(|(host, _)| host).collect();
        hosts.dedup();
        let place = hosts.iter().position(|host| *host == name)?;
        let last = u8::try_from(place + 1).ok()?;
        Some(Ipv4Addr::new(198, 18, 0, last).into())
    }

    pub(crate) fn take(&self, flow: Diverted) {
        self.to.divert(flow);
    }
}
