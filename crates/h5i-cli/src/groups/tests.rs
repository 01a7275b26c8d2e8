use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::{Configured, groups_of};
use crate::surroundings::Surroundings;

/// A home and a system with these files, and these variables.
struct Host {
    dir: tempfile::TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl Host {
    fn new(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let home = dir.path().join("home");
        let own = [("HOME".into(), home.into())];
        let given = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Self { variables: own.into_iter().chain(given).collect(), dir }
    }

    /// The rules of a group with their places, the directory left out.
    fn group(&self, name: &str) -> Vec<String> {
        let surroundings =
            Surroundings::of(self.variables.clone(), "/w".into(), (1000, 1000)).unwrap();
        let system = self.dir.path();
        let all = groups_of(&Configured { surroundings: &surroundings, system });
        let told = |path: &Path| format!("{}/", path.display());
        let lines = all.get(name).into_iter().flatten();
        lines.map(|(rule, place)| format!("{rule} {}", place.replace(&told(system), ""))).collect()
    }
}

#[test]
fn tools_that_are_left_to_their_defaults_have_no_group() {
    let host = Host::new(&[("home/.npmrc", "fund=false\n"), ("etc/pip.conf", "[global]\n")], &[]);
    for tool in super::TOOLS {
        assert_eq!(host.group(tool), [""; 0], "{tool}");
    }
}

#[test]
fn npm_has_the_strongest_registry_and_those_of_scopes() {
    let user = "; mine\nregistry = \"https://me:s3cret@npm.example/\"\n\
                @acme:registry=https://${ACME}/npm\n//npm.example/:_authToken=canary\n";
    let files = [("home/.npmrc", user), ("etc/npmrc", "registry=https://other.example\n")];
    let host = Host::new(&files, &[("ACME", "acme.example:8443")]);
    assert_eq!(
        host.group("npm"),
        ["acme.example:8443 home/.npmrc:3", "npm.example:443 home/.npmrc:2"]
    );
    let host = Host::new(&files, &[("NPM_CONFIG_REGISTRY", "http://v.example/x")]);
    assert_eq!(host.group("npm"), ["v.example:80 NPM_CONFIG_REGISTRY"]);
    let host = Host::new(&files[1..], &[]);
    assert_eq!(host.group("npm"), ["other.example:443 etc/npmrc:1"]);
    // The registry of the person's own loopback is not the other one either.
    let host = Host::new(&files, &[("npm_config_registry", "http://localhost:4873")]);
    assert_eq!(host.group("npm"), [""; 0]);
}

#[test]
fn pip_has_indexes_and_links_of_its_strongest_file_and_variables() {
    let conf = "[global]\nindex_url = https://u:p@pip.example/simple\nextra-index-url =\n    \
                https://one.example/simple\n    https://two.example\n\
                [install]\nfind-links = /srv/wheels https://links.example/x\n";
    let weak = ("etc/pip.conf", "[global]\nindex-url = https://weak.example\n");
    let files = [("home/.config/pip/pip.conf", conf), weak];
    let host = Host::new(&files, &[]);
    let place = "home/.config/pip/pip.conf";
    assert_eq!(
        host.group("pip"),
        [
            format!("links.example:443 {place}:7"),
            format!("one.example:443 {place}:3"),
            format!("pip.example:443 {place}:2"),
            format!("two.example:443 {place}:3"),
        ]
    );
    let variables = [("PIP_INDEX_URL", "https://v.example"), ("PIP_CONFIG_FILE", "/dev/null")];
    assert_eq!(Host::new(&files, &variables).group("pip"), ["v.example:443 PIP_INDEX_URL"]);
    assert_eq!(Host::new(&[weak], &[]).group("pip"), ["weak.example:443 etc/pip.conf:2"]);
}

#[test]
fn cargo_follows_replaced_sources_to_where_the_crates_are() {
    let config = "[source.crates-io]\nreplace-with = \"a\"\n[source.a]\nreplace-with = \"b\"\n\
                  [source.b]\nregistry = \"sparse+https://t:s3cret@crates.example/index/\"\n\
                  [source.unused]\nregistry = \"https://unused.example\"\n\
                  [registries.own]\nindex = \"ssh://git@code.example/index\"\n";
    let index = "home/.cargo/registry/index/crates.example-0123456789abcdef/config.json";
    let files = [
        ("home/.cargo/config.toml", config),
        (index, r#"{"dl":"https://files.example/crates","api":null}"#),
        (
            "home/.cargo/registry/index/unused.example-0123456789abcdef/config.json",
            r#"{"dl":"https://never.example"}"#,
        ),
    ];
    let host = Host::new(&files, &[("CARGO_REGISTRIES_MORE_INDEX", "https://more.example/i")]);
    assert_eq!(
        host.group("cargo"),
        [
            "code.example:22 home/.cargo/config.toml, registries.own.index".to_owned(),
            "crates.example:443 home/.cargo/config.toml, source.b.registry".to_owned(),
            format!("files.example:443 {index}"),
            "more.example:443 CARGO_REGISTRIES_MORE_INDEX".to_owned(),
        ]
    );
    // A circle, a directory, and what is no TOML, lead nowhere.
    for text in [
        "[source.crates-io]\nreplace-with = \"crates-io\"\n",
        "[source.crates-io]\nreplace-with = \"v\"\n[source.v]\ndirectory = \"vendor\"\n",
        "[source",
    ] {
        assert_eq!(Host::new(&[("home/.cargo/config.toml", text)], &[]).group("cargo"), [""; 0]);
    }
}

#[test]
fn go_has_its_proxies_and_its_checksum_database() {
    let written = "GOPROXY=https://u:p@proxy.example/go|https://b.example,direct\n\
                   GOSUMDB=sum.example+abc https://proxy.example/sumdb\n";
    let files = [("home/.config/go/env", written)];
    let place = "home/.config/go/env";
    assert_eq!(
        Host::new(&files, &[]).group("go"),
        [format!("b.example:443 {place}:1"), format!("proxy.example:443 {place}:1")]
    );
    let host = Host::new(&files, &[("GOPROXY", "off"), ("GOSUMDB", "sum.example+abc")]);
    assert_eq!(host.group("go"), ["sum.example:443 GOSUMDB"]);
    let host = Host::new(&files, &[("GOPROXY", "direct"), ("GOSUMDB", "off")]);
    assert_eq!(host.group("go"), [""; 0]);
}

#[test]
fn what_is_no_plain_text_is_passed_over() {
    let host = Host::new(&[("home/.config/go/env", "GOPROXY=https://a.example\n")], &[]);
    fs::create_dir_all(host.dir.path().join("home/.npmrc")).unwrap();
    fs::create_dir_all(host.dir.path().join("home/.cargo")).unwrap();
    fs::write(host.dir.path().join("home/.cargo/config.toml"), vec![b' '; 2 << 20]).unwrap();
    fs::create_dir_all(host.dir.path().join("home/.pip")).unwrap();
    fs::write(host.dir.path().join("home/.pip/pip.conf"), b"[global]\nindex-url = \xff").unwrap();
    assert_eq!(host.group("go").len(), 1);
    for tool in ["npm", "cargo", "pip"] {
        assert_eq!(host.group(tool), [""; 0], "{tool}");
    }
}
