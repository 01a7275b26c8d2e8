//! What a broker is started with.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use h5i_policy::{Grant, Via};
use rustix::process::{Resource, getrlimit};

use crate::credential::Credentials;
use crate::peers::{NoPeers, Peers};
use crate::resolve::{HostResolver, Resolve};

/// What a broker serves, and what of the host it uses for that.
#[non_exhaustive]
pub struct Setup {
    /// The grants, each under its own name.
    pub grants: Vec<Service>,
    /// Whom the broker trusts to be a service.
    pub roots: Roots,
    /// Resolves the names of services.
    pub resolver: Arc<dyn Resolve>,
    /// Tells who holds a connection's other end.
    pub peers: Arc<dyn Peers>,
    /// How long it waits for others.
    pub patience: Patience,
    /// Connections of programs at once, and requests under way at once, over all grants. What does
    /// not fit is refused with the status 503, and may be tried again.
    ///
    /// 1,024; where the process may have fewer than 8,448 open files, an eighth of those that it may
    /// have beyond 256, so that all of the box's connections and their requests take a quarter. At
    /// least 16.
    pub at_once: usize,
}

/// Connections, and requests, at once where the limit of open files allows them.
const AT_ONCE: usize = 1024;
/// Descriptors that are left to the rest of the caller's process.
const LEFT: u64 = 256;

/// What the limit of open files allows.
fn fit(open_files: u64) -> usize {
    let fit = open_files.saturating_sub(LEFT) / 8;
    usize::try_from(fit).unwrap_or(AT_ONCE).clamp(16, AT_ONCE)
}

impl Setup {
    /// Serves these grants by the host's own roots and resolver; nobody tells which program a
    /// connection is of.
    #[must_use]
    pub fn new(grants: Vec<Service>) -> Self {
        Self {
            grants,
            roots: Roots::Host,
            resolver: Arc::new(HostResolver),
            peers: Arc::new(NoPeers),
            patience: Patience::default(),
            at_once: fit(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)),
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("grants", &self.grants)
            .field("roots", &self.roots)
            .field("patience", &self.patience)
            .field("at_once", &self.at_once)
            .finish_non_exhaustive()
    }
}

/// One grant with what serves it.
#[non_exhaustive]
pub struct Service {
    /// Its name in the policy.
    pub name: String,
    /// What may be asked.
    pub grant: Grant,
    /// The credential of its secret.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// A header of the host's own that each request carries in the place of the box's, by its name
    /// in lower case; no secret.
    pub stamp: Option<(String, String)>,
    /// For a grant by `reverse`, where its programs connect to.
    pub listener: Option<OwnedFd>,
}

impl Service {
    /// A grant whose programs find the broker at `listener`: a TCP socket of IPv4 that was made in
    /// the box's network namespace and is bound to nothing. The broker binds it to a port of
    /// 127.0.0.1 that is free there.
    #[must_use]
    pub fn reverse(name: impl Into<String>, mut grant: Grant, listener: OwnedFd) -> Self {
        grant.via = Via::Reverse;
        Self { name: name.into(), grant, credentials: None, stamp: None, listener: Some(listener) }
    }

    /// A grant whose connections are handed over one by one, by
    /// [`Broker::intercept`](crate::Broker::intercept).
    #[must_use]
    pub fn intercept(name: impl Into<String>, mut grant: Grant) -> Self {
        grant.via = Via::Intercept;
        Self { name: name.into(), grant, credentials: None, stamp: None, listener: None }
    }

    /// Adds this credential to each request. A grant with a secret that has none here lets no
    /// request pass.
    #[must_use]
    pub fn with(mut self, credentials: Arc<dyn Credentials>) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Has each request carry this header; what the box says under that name, in any spelling, does
    /// not reach the service. A name or value that can be none of a header lets no request pass.
    #[must_use]
    pub fn stamped(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.stamp = Some((name.into(), value.into()));
        self
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("name", &self.name)
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

/// Whose certificates a service may show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Roots {
    /// Those that the host trusts; where it has none, Mozilla's list of the day this was built.
    Host,
    /// These, each in DER.
    These(Vec<Vec<u8>>),
}

/// How long the broker waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Patience {
    /// For a connection to the service, from the lookup of its name to the end of the TLS
    /// handshake. 10 seconds.
    pub connect: Duration,
    /// For the head of a request from its first byte, and for the TLS handshake of a program. 10
    /// seconds.
    pub head: Duration,
    /// For the next byte of a request's body. 60 seconds.
    pub body: Duration,
    /// For the head of the service's answer. 10 minutes: some think for long.
    pub answer: Duration,
    /// For the next byte of the service's answer. 10 minutes.
    pub stream: Duration,
    /// For the next request on a connection of a program. 90 seconds.
    pub keep: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(10),
            head: seconds(10),
            body: seconds(60),
            answer: seconds(600),
            stream: seconds(600),
            keep: seconds(90),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn few_open_files_leave_room_for_others() {
        for (open_files, at_once) in
            [(0, 16), (1024, 96), (4096, 480), (8448, 1024), (1 << 20, 1024), (u64::MAX, 1024)]
        {
            assert_eq!(fit(open_files), at_once, "{open_files}");
        }
    }
}
