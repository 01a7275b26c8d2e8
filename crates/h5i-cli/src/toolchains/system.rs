//! The operating system's programs, libraries and public configuration, as data.

use std::collections::BTreeMap;
use std::path::Path;

use h5i_policy::{GrantOrigin, HostPath, ReadGrant};

use super::host_facts::HostFacts;

/// Directories of programs and libraries.
const PROGRAMS: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libexec"];

/// Names in `/etc` that programs read and that hold nothing private: certificates, the dynamic
/// linker's, alternatives, time and language, public tables, language runtimes. Never accounts,
/// keys, mounts or network configuration; those that a program must see are synthesised.
const ETC: [&str; 23] = [
    "alternatives",
    // Where the distribution's Bazel finds the rest of itself.
    "bazel",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "mime.types",
    "os-release",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "protocols",
    "services",
    "ssl",
    "terminfo",
    "timezone",
];

/// Beginnings of names in `/etc` that carry a version or have a directory beside them: language
/// runtimes, the browser that a box may start.
const ETC_VERSIONED: [&str; 5] = ["chromium", "java", "python", "perl", "ruby"];

/// Parts of those that are private all the same.
const MASKS: [(&str, &str); 2] = [("/etc/ssl", "private"), ("/usr", "local/etc/npmrc")];

/// What a box may read of the operating system: the names above that this host has.
#[must_use]
pub fn system_grants(facts: &dyn HostFacts) -> BTreeMap<HostPath, ReadGrant> {
    let mut names: Vec<String> = PROGRAMS.iter().map(|&dir| dir.to_owned()).collect();
    names.extend(ETC.iter().map(|name| format!("/etc/{name}")));
    for name in facts.names(Path::new("/etc")) {
        if ETC_VERSIONED.iter().any(|start| name.starts_with(start)) {
            names.push(format!("/etc/{name}"));
        }
    }
    let mut grants = BTreeMap::new();
    for name in names {
        if facts.real(Path::new(&name)).is_none() {
            continue;
        }
        let Ok(path) = HostPath::new(&name) else { continue };
        let mut grant = ReadGrant::whole(GrantOrigin::System);
        for (root, private) in MASKS {
            if root == name && facts.real(&Path::new(root).join(private)).is_some() {
                grant.mask.insert(private.to_owned());
            }
        }
        grants.insert(path, grant);
    }
    grants
}
