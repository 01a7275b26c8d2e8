//! One rule of a network allowlist.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::cidr::Cidr;
use crate::host_name::HostName;
use crate::word::words;

mod error;
mod parse;
#[cfg(test)]
mod tests;

pub use error::NetRuleError;

/// One rule of a network allowlist: where to, which port, which protocol.
///
/// | written | means |
/// |---|---|
/// | `api.example.com`, `api.example.com:8443` | that name |
/// | `*.example.com` | every name below that domain, at any depth, not the domain itself |
/// | `192.0.2.7`, `192.0.2.0/24:22`, `[2001:db8::/32]:22` | that address or range |
/// | `host:5432` | that port of the host's loopback; the word `host` is literal |
/// | `dns.example.com:853/udp` | UDP instead of TCP |
/// | `db.example.com:5432,sni=any` | that name, whatever name its TLS has, or none |
///
/// A rule without a port means 443. The canonical text always has the port; parsing and printing
/// are inverse on it. Names are canonical (see [`HostName`]); a wildcard over a public suffix is
/// refused; a range must have no bits set below its prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NetRule {
    target: NetTarget,
    port: u16,
    protocol: Protocol,
    server_name: ServerName,
}

/// Which names TLS may carry to a destination that is listed by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ServerName {
    /// A listed one, in clear.
    Listed,
    /// Any, none, or an encrypted one: what the host sees of a flow is its address alone.
    Any,
}
words!(ServerName { Listed => "listed", Any => "any" });

/// Where a rule leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NetTarget {
    /// One name.
    Name(HostName),
    /// Every name below a domain.
    Below(HostName),
    /// One address or a range, whatever its kind: private space is allowed by listing it.
    Addresses(Cidr),
    /// The host's own loopback.
    HostLoopback,
}

/// The transport protocol of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP, where a rule says `/udp`.
    Udp,
}

impl NetRule {
    /// The port of a rule that names none.
    pub const DEFAULT_PORT: u16 = 443;

    /// Parses and checks `text`.
    ///
    /// # Errors
    /// One variant of [`NetRuleError`] for each rule of the grammar.
    pub fn new(text: &str) -> Result<Self, NetRuleError> {
        parse::rule(text)
    }

    /// Where it leads.
    #[must_use]
    pub const fn target(&self) -> &NetTarget {
        &self.target
    }

    /// The destination port, never 0.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The transport protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Which names its TLS may carry; where a rule leads to no name, that is never asked.
    #[must_use]
    pub const fn server_name(&self) -> ServerName {
        self.server_name
    }

    /// The same rule with another demand on the names of TLS.
    ///
    /// # Errors
    /// [`NetRuleError::IdleServerName`] for a rule to which a name has no meaning.
    pub fn with_server_name(self, server_name: ServerName) -> Result<Self, NetRuleError> {
        let by_name = matches!(self.target, NetTarget::Name(_) | NetTarget::Below(_));
        match by_name && self.protocol == Protocol::Tcp {
            true => Ok(Self { server_name, ..self }),
            false => Err(NetRuleError::IdleServerName { rule: self.to_string() }),
        }
    }

    /// Whether every flow that `other` allows is allowed by this rule alone.
    ///
    /// Names and addresses are never compared: what a name resolves to is not known here.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.server_name >= other.server_name && self.leads_where(other)
    }

    /// Whether every destination of `other` is one of this rule.
    fn leads_where(&self, other: &Self) -> bool {
        if (self.port, self.protocol) != (other.port, other.protocol) {
            return false;
        }
        match (&self.target, &other.target) {
            (NetTarget::Name(a), NetTarget::Name(b)) => a == b,
            (NetTarget::Below(a), NetTarget::Name(b)) => b.is_below(a),
            (NetTarget::Below(a), NetTarget::Below(b)) => a == b || b.is_below(a),
            (NetTarget::Addresses(a), NetTarget::Addresses(b)) => a.covers(b),
            (NetTarget::HostLoopback, NetTarget::HostLoopback) => true,
            _ => false,
        }
    }

    /// The rule that allows exactly what both allow; `None` if that is nothing.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        let (inner, outer) = match (self.leads_where(other), other.leads_where(self)) {
            (true, _) => (other, self),
            (false, true) => (self, other),
            // Of two destinations one holds the other, or they have none in common.
            (false, false) => return None,
        };
        let server_name = inner.server_name.min(outer.server_name);
        Some(Self { server_name, ..inner.clone() })
    }

    /// Whether the rule allows a flow to `name` at this port, if its TLS carries that name.
    #[must_use]
    pub fn allows_name(&self, name: &HostName, port: u16, protocol: Protocol) -> bool {
        (self.port, self.protocol) == (port, protocol)
            && match &self.target {
                NetTarget::Name(own) => own == name,
                NetTarget::Below(domain) => name.is_below(domain),
                _ => false,
            }
    }

    /// Whether the rule allows a flow to `address` at this port by listing the address.
    #[must_use]
    pub fn allows_address(&self, address: IpAddr, port: u16, protocol: Protocol) -> bool {
        (self.port, self.protocol) == (port, protocol)
            && matches!(&self.target, NetTarget::Addresses(range) if range.contains(address))
    }

    /// What the rule allows that an open network allows too: nothing of private space, nothing
    /// over UDP, and not the host's loopback.
    #[must_use]
    pub fn public_part(&self) -> Vec<Self> {
        match &self.target {
            _ if self.protocol == Protocol::Udp => Vec::new(),
            NetTarget::Name(_) | NetTarget::Below(_) => vec![self.clone()],
            NetTarget::HostLoopback => Vec::new(),
            NetTarget::Addresses(range) => range
                .public_part()
                .into_iter()
                .map(|range| Self { target: NetTarget::Addresses(range), ..self.clone() })
                .collect(),
        }
    }
}

impl fmt::Display for NetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            NetTarget::Name(name) => write!(f, "{name}")?,
            NetTarget::Below(domain) => write!(f, "*.{domain}")?,
            NetTarget::Addresses(range) if range.is_ipv6() => write!(f, "[{range}]")?,
            NetTarget::Addresses(range) => write!(f, "{range}")?,
            NetTarget::HostLoopback => f.write_str("host")?,
        }
        write!(f, ":{}", self.port)?;
        if self.protocol == Protocol::Udp {
            f.write_str("/udp")?;
        }
        match self.server_name {
            ServerName::Listed => Ok(()),
            ServerName::Any => f.write_str(parse::ANY_SERVER_NAME),
        }
    }
}

impl FromStr for NetRule {
    type Err = NetRuleError;
    fn from_str(text: &str) -> Result<Self, NetRuleError> {
        Self::new(text)
    }
}

impl TryFrom<String> for NetRule {
    type Error = NetRuleError;
    fn try_from(text: String) -> Result<Self, NetRuleError> {
        Self::new(&text)
    }
}

impl From<NetRule> for String {
    fn from(rule: NetRule) -> Self {
        rule.to_string()
    }
}
