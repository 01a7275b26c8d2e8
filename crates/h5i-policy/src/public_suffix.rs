//! Domains under which anybody can have a name.
//!
//! A wildcard over such a domain would allow the names of strangers. This is a small rule with a
//! small table, not the Public Suffix List: it knows top-level domains, the usual second level
//! under a country, and hosting domains that are often met. What it does not know, it lets pass;
//! each name that was really reached is on record either way.

use crate::host_name::HostName;

/// Second-level labels under which two-letter countries register names.
const SECOND_LEVEL: &[&str] = &[
    "ac", "asn", "co", "com", "edu", "firm", "gen", "go", "gob", "gouv", "gov", "govt", "gv", "id",
    "ind", "info", "ltd", "me", "mil", "ne", "net", "nhs", "nom", "or", "org", "plc", "police",
    "sch", "school", "web",
];

/// Domains whose owner gives names below them to anybody.
const HOSTING: &[&str] = &[
    "amplifyapp.com",
    "appspot.com",
    "azureedge.net",
    "azurewebsites.net",
    "blob.core.windows.net",
    "blogspot.com",
    "cloudapp.net",
    "cloudflarestorage.com",
    "cloudfront.net",
    "cloudfunctions.net",
    "deno.dev",
    "duckdns.org",
    "execute-api.amazonaws.com",
    "fastly.net",
    "firebaseapp.com",
    "firebaseio.com",
    "fly.dev",
    "github.io",
    "githubusercontent.com",
    "gitlab.io",
    "glitch.me",
    "herokuapp.com",
    "lambda-url.amazonaws.com",
    "loca.lt",
    "netlify.app",
    "ngrok-free.app",
    "ngrok.app",
    "ngrok.io",
    "nip.io",
    "onrender.com",
    "pages.dev",
    "r2.dev",
    "railway.app",
    "repl.co",
    "run.app",
    "s3.amazonaws.com",
    "sslip.io",
    "surge.sh",
    "trycloudflare.com",
    "vercel.app",
    "web.app",
    "windows.net",
    "workers.dev",
];

/// Whether names below `domain` belong to anybody: a single label, `co.uk` and its like, or a
/// hosting domain.
pub(crate) fn is_public_suffix(domain: &HostName) -> bool {
    let labels: Vec<&str> = domain.labels().collect();
    match labels.as_slice() {
        [_] => true,
        [second, country] if country.len() == 2 && SECOND_LEVEL.contains(second) => true,
        _ => HOSTING.contains(&domain.as_str()),
    }
}

impl HostName {
    /// Whether it is a domain below which anybody can have a name, as far as a small table knows: as a
    /// host of its own it is nobody's.
    #[must_use]
    pub fn is_public_suffix(&self) -> bool {
        is_public_suffix(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{HOSTING, SECOND_LEVEL, is_public_suffix};
    use crate::host_name::HostName;

    #[test]
    fn domains_of_everybody_are_known_and_domains_of_one_owner_are_not() {
        for (domain, public) in [
            ("com", true),
            ("co.uk", true),
            ("com.au", true),
            ("github.io", true),
            ("example.com", false),
            ("example.co.uk", false),
            ("acme.github.io", false),
            ("co.example", false),
        ] {
            let name = HostName::new(domain).expect(domain);
            assert_eq!(is_public_suffix(&name), public, "{domain}");
        }
    }

    #[test]
    fn tables_are_sorted_canonical_and_without_doubles() {
        assert!(HOSTING.is_sorted_by(|a, b| a < b));
        assert!(SECOND_LEVEL.is_sorted_by(|a, b| a < b));
        for name in HOSTING {
            assert_eq!(HostName::new(name).expect(name).as_str(), *name);
        }
    }
}
