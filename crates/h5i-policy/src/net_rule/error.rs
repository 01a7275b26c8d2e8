//! Why a text is not a rule.

use crate::cidr::CidrError;
use crate::escape::Tail;
use crate::host_name::HostNameError;

/// Why a text is not a [`NetRule`](super::NetRule); each variant has the text of the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetRuleError {
    /// Nothing.
    #[error("a network rule must not be empty")]
    Empty,
    /// What follows a comma is not `sni=any`.
    #[error("rule \"{}\" has something other than `sni=any` after its comma", Tail(rule))]
    Option {
        /// The rule as written.
        rule: String,
    },
    /// A word about the names of TLS, where no name is asked for.
    #[error("`sni` has no meaning in rule \"{}\", which allows no TLS by name", Tail(rule))]
    IdleServerName {
        /// The rule without the word.
        rule: String,
    },
    /// It has a scheme or a path.
    #[error("rule \"{}\" is a URL, not a host", Tail(rule))]
    Url {
        /// The rule as written.
        rule: String,
    },
    /// A `*` that stands for every host.
    #[error("rule \"{}\" would allow every host", Tail(rule))]
    EveryHost {
        /// The rule as written.
        rule: String,
    },
    /// A `*` elsewhere than as the whole first label.
    #[error("rule \"{}\" has a `*` that is not its whole first label", Tail(rule))]
    WildcardInside {
        /// The rule as written.
        rule: String,
    },
    /// A wildcard over a domain below which anybody can have a name.
    #[error("rule \"{}\" would allow every name under a public suffix", Tail(rule))]
    PublicSuffix {
        /// The rule as written.
        rule: String,
    },
    /// The word `host` without a port.
    #[error("rule \"{}\" would allow every port of the host's loopback", Tail(rule))]
    HostWithoutPort {
        /// The rule as written.
        rule: String,
    },
    /// `localhost` or a name below it, which in the box is the box.
    #[error("rule \"{}\" names the box's own loopback, which is always reachable", Tail(rule))]
    Localhost {
        /// The rule as written.
        rule: String,
    },
    /// The port is not a number from 1 to 65535.
    #[error("rule \"{}\" has a port that is not a number from 1 to 65535", Tail(rule))]
    BadPort {
        /// The rule as written.
        rule: String,
    },
    /// What follows the port is not `/tcp` or `/udp`.
    #[error("rule \"{}\" has a protocol other than tcp and udp", Tail(rule))]
    BadProtocol {
        /// The rule as written.
        rule: String,
    },
    /// A protocol without a port.
    #[error("rule \"{}\" has a protocol and no port", Tail(rule))]
    ProtocolWithoutPort {
        /// The rule as written.
        rule: String,
    },
    /// A group where only rules may stand: a resolved policy names hosts.
    #[error("rule \"{}\" is a group, and groups stand only in policy documents", Tail(rule))]
    Group {
        /// The rule as written.
        rule: String,
    },
    /// The name is none.
    #[error("rule \"{}\" does not name a host", Tail(rule))]
    Name {
        /// The rule as written.
        rule: String,
        /// What is wrong with the name.
        source: HostNameError,
    },
    /// The range is none.
    #[error("rule \"{}\" does not name an address range", Tail(rule))]
    Range {
        /// The rule as written.
        rule: String,
        /// What is wrong with the range.
        source: CidrError,
    },
}

impl NetRuleError {
    /// What to do instead.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Empty => "write host, host:port, *.domain, an address range or host:PORT".into(),
            Self::Option { .. } => "write host:port,sni=any".into(),
            Self::IdleServerName { .. } => "leave `sni` out".into(),
            Self::Url { rule } => {
                let host = rule.split_once("://").map_or(rule.as_str(), |(_, rest)| rest);
                let host = host.split(['/', '?', '#']).next().unwrap_or_default();
                format!("write {}", Tail(host))
            }
            Self::EveryHost { .. } => "write net.mode = \"open\", or name the hosts".into(),
            Self::WildcardInside { .. } => "name the hosts, or write *.example.com".into(),
            Self::PublicSuffix { .. } => "name the host, or *.example.com".into(),
            Self::HostWithoutPort { .. } => "write host:PORT, such as host:5432".into(),
            Self::Localhost { .. } => {
                "write host:PORT for a port of the host's loopback, such as host:5432".into()
            }
            Self::BadPort { .. } => "write a port such as :443".into(),
            Self::BadProtocol { .. } => "write host:port or host:port/udp".into(),
            Self::ProtocolWithoutPort { .. } => "write host:port/udp".into(),
            Self::Group { .. } => "define it in the policy document, or name the hosts".into(),
            Self::Name { source, .. } => source.hint().into(),
            Self::Range { source, .. } => source.hint(),
        }
    }
}
