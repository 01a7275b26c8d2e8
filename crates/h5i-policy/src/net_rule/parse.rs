//! The grammar of a rule.

use super::{NetRule, NetRuleError, NetTarget, Protocol, ServerName};
use crate::cidr::{Cidr, CidrError};
use crate::host_name::HostName;
use crate::public_suffix::is_public_suffix;

/// What a rule ends with whose TLS may carry any name.
pub(super) const ANY_SERVER_NAME: &str = ",sni=any";

pub(super) fn rule(text: &str) -> Result<NetRule, NetRuleError> {
    if let Some(plain) = text.strip_suffix(ANY_SERVER_NAME) {
        return plain_rule(plain)?.with_server_name(ServerName::Any);
    }
    plain_rule(text)
}

/// A rule without a word about TLS.
fn plain_rule(text: &str) -> Result<NetRule, NetRuleError> {
    let rule = || text.to_owned();
    if text.contains(',') {
        return Err(NetRuleError::Option { rule: rule() });
    }
    if text.is_empty() {
        return Err(NetRuleError::Empty);
    }
    if text.starts_with('@') {
        return Err(NetRuleError::Group { rule: rule() });
    }
    if text.contains("://") {
        return Err(NetRuleError::Url { rule: rule() });
    }
    let Parts { target, port, protocol } = split(text)?;
    let (port_given, protocol) = match (port, protocol) {
        (None, Some(_)) => return Err(NetRuleError::ProtocolWithoutPort { rule: rule() }),
        (port, None | Some("tcp")) => (port, Protocol::Tcp),
        (port, Some("udp")) => (port, Protocol::Udp),
        (_, Some(_)) => return Err(NetRuleError::BadProtocol { rule: rule() }),
    };
    let port = match port_given {
        None => NetRule::DEFAULT_PORT,
        Some(digits) => parse_port(digits).ok_or_else(|| NetRuleError::BadPort { rule: rule() })?,
    };
    let target = match target {
        Written::Range(range) => NetTarget::Addresses(
            Cidr::new(range).map_err(|source| NetRuleError::Range { rule: rule(), source })?,
        ),
        Written::Name(name) => named(text, name, port_given.is_some())?,
    };
    Ok(NetRule { target, port, protocol, server_name: ServerName::Listed })
}

/// A rule cut into its parts, none of them checked.
struct Parts<'a> {
    target: Written<'a>,
    port: Option<&'a str>,
    protocol: Option<&'a str>,
}

enum Written<'a> {
    Name(&'a str),
    Range(&'a str),
}

fn split(text: &str) -> Result<Parts<'_>, NetRuleError> {
    let rule = || text.to_owned();
    // IPv6 with brackets: only there can a port follow.
    if let Some(rest) = text.strip_prefix('[') {
        let Some((range, after)) = rest.split_once(']') else {
            return Err(NetRuleError::Range { rule: rule(), source: CidrError::NotAnAddress });
        };
        let (port, protocol) = match after.strip_prefix(':') {
            Some(after) => port_and_protocol(after),
            None if after.is_empty() => (None, None),
            None => return Err(NetRuleError::BadPort { rule: rule() }),
        };
        return Ok(Parts { target: Written::Range(range), port, protocol });
    }
    // IPv6 without: everything is the address.
    if text.matches(':').count() > 1 {
        return Ok(Parts { target: Written::Range(text), port: None, protocol: None });
    }
    let (target, port, protocol) = match text.split_once(':') {
        Some((target, after)) => {
            let (port, protocol) = port_and_protocol(after);
            (target, port, protocol)
        }
        None => (text, None, None),
    };
    let first = target.split('/').next().unwrap_or_default();
    if is_dotted_digits(first) {
        return Ok(Parts { target: Written::Range(target), port, protocol });
    }
    match target.split_once('/') {
        None => Ok(Parts { target: Written::Name(target), port, protocol }),
        Some((name, "udp" | "tcp")) if port.is_none() => {
            Ok(Parts { target: Written::Name(name), port: None, protocol: Some("udp") })
        }
        Some(_) => Err(NetRuleError::Url { rule: rule() }),
    }
}

fn port_and_protocol(text: &str) -> (Option<&str>, Option<&str>) {
    match text.split_once('/') {
        Some((port, protocol)) => (Some(port), Some(protocol)),
        None => (Some(text), None),
    }
}

/// Whether `text` is of the form of an IPv4 address, right or wrong.
fn is_dotted_digits(text: &str) -> bool {
    text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// A port in its one spelling: no sign, no leading zero.
fn parse_port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

fn named(text: &str, name: &str, has_port: bool) -> Result<NetTarget, NetRuleError> {
    let rule = || text.to_owned();
    let host = |name: &str| {
        HostName::new(name).map_err(|source| NetRuleError::Name { rule: rule(), source })
    };
    if name == "*" {
        return Err(NetRuleError::EveryHost { rule: rule() });
    }
    if let Some(domain) = name.strip_prefix("*.") {
        if domain.contains('*') {
            return Err(NetRuleError::WildcardInside { rule: rule() });
        }
        let domain = host(domain)?;
        if is_public_suffix(&domain) {
            return Err(NetRuleError::PublicSuffix { rule: rule() });
        }
        return Ok(NetTarget::Below(domain));
    }
    if name.contains('*') {
        return Err(NetRuleError::WildcardInside { rule: rule() });
    }
    let name = host(name)?;
    match name.as_str() {
        "host" if has_port => Ok(NetTarget::HostLoopback),
        "host" => Err(NetRuleError::HostWithoutPort { rule: rule() }),
        _ if name.is_localhost() => Err(NetRuleError::Localhost { rule: rule() }),
        _ => Ok(NetTarget::Name(name)),
    }
}
