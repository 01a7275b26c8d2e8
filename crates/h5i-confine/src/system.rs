//! The operating system's programs, libraries and public configuration, as read grants.

use std::collections::BTreeMap;
use std::fs;

use h5i_policy::{GrantOrigin, HostPath, ReadGrant};

/// What programs of a usual distribution need to run at all, and nothing that tells of the host's
/// users, services or secrets. `/etc/passwd` and its kin are made anew for each box.
const PATHS: [&str; 41] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/bash_completion.d",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/inputrc",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/lsb-release",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/manpath.config",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/python3",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];

/// Read grants for those of the system's paths that are there, for
/// [`FsPolicy::read`](h5i_policy::FsPolicy).
#[must_use]
pub fn system_grants() -> BTreeMap<HostPath, ReadGrant> {
    PATHS
        .iter()
        .filter(|path| fs::symlink_metadata(path).is_ok())
        .filter_map(|path| HostPath::new(path).ok())
        .map(|path| (path, ReadGrant::whole(GrantOrigin::System)))
        .collect()
}
