//! How listed names are resolved on the host.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

use h5i_policy::HostName;

/// The addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// The addresses, in the order in which they should be tried.
    pub addresses: Vec<IpAddr>,
    /// How long they hold; kept between one second and five minutes.
    pub live: Duration,
}

impl Addresses {
    /// Addresses that hold for `live`.
    #[must_use]
    pub fn new(addresses: Vec<IpAddr>, live: Duration) -> Self {
        Self { addresses, live }
    }
}

/// Resolves names on the host. It is asked for listed names only, several at once, each on a thread
/// that it may block.
pub trait Resolve: Send + Sync {
    /// The addresses of `name`; none is an answer, too.
    ///
    /// # Errors
    /// When it can't be found out; the box is told that the lookup failed.
    fn resolve(&self, name: &HostName) -> io::Result<Addresses>;
}

/// Resolves as every program of the host does, by getaddrinfo(3): hosts file, search domains and
/// private name servers included. The time that an answer lives is not told there; it is taken to
/// be 30 seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostResolver;

impl Resolve for HostResolver {
    fn resolve(&self, name: &HostName) -> io::Result<Addresses> {
        let found = (name.as_str(), 0).to_socket_addrs()?;
        let addresses = found.map(|address| address.ip()).collect();
        Ok(Addresses::new(addresses, Duration::from_secs(30)))
    }
}
