//! How the names of services are resolved.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use h5i_policy::HostName;

/// Resolves names on the host. Asked for each new connection to a service, on a thread that it may
/// block.
pub trait Resolve: Send + Sync {
    /// The addresses of `name`, in the order in which they are to be tried.
    ///
    /// # Errors
    /// When it can't be found out; the service is unreachable then.
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>>;
}

/// Resolves as every program of the host does, by getaddrinfo(3).
#[derive(Clone, Copy, Debug, Default)]
pub struct HostResolver;

impl Resolve for HostResolver {
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }
}

impl<F> Resolve for F
where
    F: Fn(&HostName) -> io::Result<Vec<IpAddr>> + Send + Sync,
{
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        self(name)
    }
}
