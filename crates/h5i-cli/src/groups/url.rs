//! The host of a URL, and nothing else of it.

use h5i_policy::{NetRule, NetTarget};

/// The rule that leads to a URL's host at its port. User, password, path and query are dropped here.
///
/// None for what names no host outside: a path, another scheme, loopback (which in a box is the
/// box's own).
pub(super) fn rule_of(url: &str) -> Option<NetRule> {
    let url = url.trim();
    let (scheme, rest) = url.split_once("://")?;
    // Cargo writes `sparse+https`, pip and npm `git+ssh`.
    let scheme = scheme.rsplit('+').next().unwrap_or(scheme).to_ascii_lowercase();
    let port = match scheme.as_str() {
        "https" => 443,
        "http" => 80,
        "ssh" => 22,
        "git" => 9418,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let (name, given) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, after)) => (format!("[{address}]"), after.strip_prefix(':')),
        None => match host.split_once(':') {
            Some((name, port)) => (name.to_owned(), Some(port)),
            None => (host.to_owned(), None),
        },
    };
    let port = given.filter(|port| !port.is_empty()).map_or(port.to_string(), str::to_owned);
    let rule = NetRule::new(&format!("{name}:{port}")).ok()?;
    // A host that is called `host` is not the host's loopback, and no range is a host.
    match rule.target() {
        NetTarget::Name(_) => Some(rule),
        NetTarget::Addresses(_) if !name.contains('/') => Some(rule),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::rule_of;

    #[test]
    fn only_host_and_port_come_out_of_a_url() {
        for (url, rule) in [
            ("https://packages.example/npm/", Some("packages.example:443")),
            ("http://packages.example", Some("packages.example:80")),
            ("https://user:s3cret@packages.example:8443/a?b#c", Some("packages.example:8443")),
            ("https://user:p@ss@Packages.Example.:443", Some("packages.example:443")),
            ("sparse+https://crates.example/index/", Some("crates.example:443")),
            ("ssh://git@code.example/index", Some("code.example:22")),
            ("https://192.0.2.7:81/", Some("192.0.2.7:81")),
            ("https://[2001:db8::1]/x", Some("[2001:db8::1]:443")),
            ("https://packages.example\\@other.example/", Some("packages.example:443")),
            ("https://localhost:4873/", None),
            ("https://host:4873/", None),
            ("https://*.example.com/", None),
            ("https://192.0.2.0/24", Some("192.0.2.0:443")),
            ("file:///srv/mirror", None),
            ("/srv/wheels", None),
            ("https://", None),
            ("git@code.example:index", None),
        ] {
            let found = rule_of(url).map(|rule| rule.to_string());
            assert_eq!(found.as_deref(), rule, "{url}");
        }
    }
}
