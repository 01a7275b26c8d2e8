//! Whether a box fetches crates by itself: then cargo needs a registry there that it can write, and
//! the host's, which can only be read, is not put in its place.

use std::collections::BTreeMap;
use std::fs;

use h5i_policy::{GroupUse, HostName, HostPath, NetMode, Protocol, Resolved, Source};

/// Where cargo of a box looks for what it has fetched.
const REGISTRY: &str = ".cargo/registry";
const CARGO_HOME: &str = ".cargo/";

/// Takes the links to the host's own crates away where the policy lets a box reach a registry.
pub(crate) fn keep_apart(links: &mut BTreeMap<&'static str, HostPath>, resolved: &Resolved) {
    if links.get(REGISTRY).is_some_and(|registry| fetches(resolved, registry)) {
        links.retain(|link, _| !link.starts_with(CARGO_HOME));
    }
}

fn fetches(resolved: &Resolved, registry: &HostPath) -> bool {
    let net = &resolved.policy.net;
    match net.mode {
        NetMode::None => false,
        NetMode::Allow => {
            by_group(resolved)
                || indexes(registry).iter().any(|host| {
                    net.allow.iter().any(|rule| rule.allows_name(host, 443, Protocol::Tcp))
                })
        }
        _ => true,
    }
}

/// Whether a rule is there because of `@cargo`, whoever says what that is.
fn by_group(resolved: &Resolved) -> bool {
    let is_cargo = |group: &Option<GroupUse>| group.as_ref().is_some_and(|g| g.name == "cargo");
    resolved.provenance.iter().any(|(_, source)| match source {
        Source::Profile { group, .. } | Source::CommandLine { group } => is_cargo(group),
        _ => false,
    })
}

/// The hosts of the indexes that the host's cargo has seen: their directories are `HOST-HASH`.
fn indexes(registry: &HostPath) -> Vec<HostName> {
    let Ok(entries) = fs::read_dir(registry.as_path().join("index")) else { return Vec::new() };
    let host = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.ok()?.file_name();
        HostName::new(name.to_str()?.rsplit_once('-')?.0).ok()
    };
    entries.filter_map(host).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use h5i_policy::{HostFacts, Layer, Overrides, ResolveRequest, WorkspaceContent, resolve};

    use super::*;

    /// The links that are left when the command line asks for these rules.
    fn left(home: &Path, settings: &[&str], rules: &[&str]) -> Vec<&'static str> {
        let mut facts = HostFacts::new();
        let own = h5i_policy::NetRule::new("crates.example").unwrap();
        facts.groups.insert("cargo".into(), [(own.clone(), "x".into())].into());
        facts.groups.insert("npm".into(), [(own, "y".into())].into());
        let mut overrides = Overrides::new().tier(h5i_policy::Tier::Supervised);
        for setting in settings {
            overrides = overrides.set(setting).unwrap();
        }
        for rule in rules {
            overrides = overrides.allow(rule).unwrap();
        }
        let request = ResolveRequest::new("default")
            .overrides(overrides)
            .workspace(WorkspaceContent::Private);
        let resolved = resolve(&[Layer::built_in()], &request, &facts).unwrap();
        let place = |name: &str| HostPath::new(home.join(name).to_str().unwrap()).unwrap();
        let mut links = BTreeMap::from([
            (REGISTRY, place("registry")),
            (".cargo/git", place("git")),
            (".other", place("other")),
        ]);
        keep_apart(&mut links, &resolved);
        links.into_keys().collect()
    }

    #[test]
    fn the_hosts_crates_are_read_only_where_none_can_be_fetched() {
        let home = tempfile::tempdir().unwrap();
        let index = home.path().join("registry/index");
        fs::create_dir_all(index.join("a.seen.example-0123456789abcdef")).unwrap();
        fs::create_dir_all(index.join("nothing")).unwrap();
        let linked = [".cargo/git", REGISTRY, ".other"];
        let left = |settings: &[&str], rules: &[&str]| left(home.path(), settings, rules);
        assert_eq!(left(&[], &[]), linked);
        assert_eq!(left(&[], &["other.example", "a.seen.example:8443"]), linked);
        // The same host by another tool's group is not for cargo.
        assert_eq!(left(&[], &["@npm"]), linked);
        for rules in [&["@cargo"][..], &["a.seen.example"], &["*.seen.example"]] {
            assert_eq!(left(&[], rules), [".other"], "{rules:?}");
        }
        assert_eq!(left(&["net.mode=open"], &[]), [".other"]);
        assert_eq!(left(&["tier=process", "net.mode=host"], &[]), [".other"]);
    }
}
