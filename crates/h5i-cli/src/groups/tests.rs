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
fn uv_has_every_index_of_its_files_and_variables() {
    let user = "index-url = \"https://u:p@main.example/simple\"\nextra-index-url = [\"https://one.example\"]\n\
                [[index]]\nname = \"own\"\nurl = \"https://own.example/simple\"\n\
                [pip]\nindex-url = \"https://pip.example\"\n";
    let system = "index-url = \"https://weak.example\"\nfind-links = [\"/srv/wheels\", \"https://links.example\"]\n";
    let files = [("home/.config/uv/uv.toml", user), ("etc/uv/uv.toml", system)];
    let place = "home/.config/uv/uv.toml";
    assert_eq!(
        Host::new(&files, &[]).group("uv"),
        [
            "links.example:443 etc/uv/uv.toml, find-links".to_owned(),
            format!("main.example:443 {place}, index-url"),
            format!("one.example:443 {place}, extra-index-url"),
            format!("own.example:443 {place}, index"),
            format!("pip.example:443 {place}, pip.index-url"),
        ]
    );
    let variables = [
        ("UV_NO_CONFIG", "1"),
        ("UV_DEFAULT_INDEX", "https://v.example/simple"),
        ("UV_INDEX", "a=https://a.example/x https://b.example/?c=d"),
        ("UV_PYTHON_INSTALL_MIRROR", "https://python.example"),
    ];
    assert_eq!(
        Host::new(&files, &variables).group("uv"),
        [
            "a.example:443 UV_INDEX",
            "b.example:443 UV_INDEX",
            "python.example:443 UV_PYTHON_INSTALL_MIRROR",
            "v.example:443 UV_DEFAULT_INDEX",
        ]
    );
    let named = [("UV_CONFIG_FILE", "/nowhere")];
    assert_eq!(Host::new(&files, &named).group("uv"), [""; 0]);
}

#[test]
fn what_installs_packages_of_npm_has_its_own_files_beside_those_of_npm() {
    let npmrc =
        ("home/.npmrc", "registry=https://npm.example\n@acme:registry=https://acme.example\n");
    let host = |more: &[(&str, &str)], variables: &[(&str, &str)]| {
        Host::new(&[&[npmrc], more].concat(), variables)
    };
    let npm = ["acme.example:443 home/.npmrc:2", "npm.example:443 home/.npmrc:1"];
    for tool in ["bun", "deno", "pnpm", "yarn"] {
        assert_eq!(host(&[], &[]).group(tool), npm, "{tool}");
    }
    // pnpm's own file says what npm's does not.
    let rc = (
        "home/.config/pnpm/rc",
        "registry=https://weak.example\n@own:registry=https://rc.example\n",
    );
    let yaml =
        ("home/.config/pnpm/config.yaml", "registries:\n  \"@more\": https://u:p@more.example/\n");
    let pnpm = host(&[rc, yaml], &[]).group("pnpm");
    let own = [
        "more.example:443 home/.config/pnpm/config.yaml:2",
        npm[1],
        "rc.example:443 home/.config/pnpm/rc:2",
    ];
    assert_eq!(pnpm, [npm[0], own[0], own[1], own[2]]);
    let yml = "npmScopes:\n  own:\n    npmRegistryServer: \"https://${HOST}/npm\"\nnpmRegistryServer: https://yarn.example\n\
               npmAuthToken: canary\n";
    let classic = "# yarn lockfile v1\nregistry \"https://classic.example\"\n\"@old:registry\" \"https://old.example/\"\n";
    let files = [("home/.yarnrc.yml", yml), ("home/.yarnrc", classic)];
    assert_eq!(
        Host::new(&files, &[("HOST", "own.example")]).group("yarn"),
        [
            "classic.example:443 home/.yarnrc:2",
            "old.example:443 home/.yarnrc:3",
            "own.example:443 home/.yarnrc.yml:3",
            "yarn.example:443 home/.yarnrc.yml:4",
        ]
    );
    let variables = [("YARN_NPM_REGISTRY_SERVER", "https://v.example"), ("HOST", "own.example")];
    let yarn = Host::new(&files, &variables).group("yarn");
    assert_eq!(yarn[2], "v.example:443 YARN_NPM_REGISTRY_SERVER", "{yarn:?}");
    assert_eq!(yarn.len(), 3, "{yarn:?}");
    let bunfig = "[install]\nregistry = { url = \"https://bun.example\", token = \"canary\" }\n\
                  [install.scopes]\nown = \"https://u:p@own.example\"\n";
    let files = [("home/.bunfig.toml", bunfig)];
    let own = "own.example:443 home/.bunfig.toml, install.scopes.own";
    assert_eq!(
        Host::new(&files, &[]).group("bun"),
        ["bun.example:443 home/.bunfig.toml, install.registry", own]
    );
    let variables = [("BUN_CONFIG_REGISTRY", "https://v.example")];
    assert_eq!(
        Host::new(&files, &variables).group("bun"),
        [own, "v.example:443 BUN_CONFIG_REGISTRY"]
    );
    let variables = [("JSR_URL", "https://jsr.example")];
    assert_eq!(Host::new(&[], &variables).group("deno"), ["jsr.example:443 JSR_URL"]);
}

#[test]
fn gem_has_the_sources_of_its_last_file_and_the_mirrors_of_bundler() {
    let gemrc =
        "---\n:backtrace: false\n:sources:\n- https://u:p@gems.example/\n- https://more.example\n";
    let bundle = "---\nBUNDLE_MIRROR__HTTPS://A__EXAMPLE/: \"https://mirror.example\"\n\
                  BUNDLE_MIRROR__HTTPS://A__EXAMPLE/__FALLBACK_TIMEOUT/: \"3\"\nBUNDLE_PATH: /x\n";
    let files = [
        ("home/.gemrc", gemrc),
        ("etc/gemrc", ":sources: [https://weak.example]\n"),
        ("home/.bundle/config", bundle),
    ];
    let sources = ["gems.example:443 home/.gemrc:4", "more.example:443 home/.gemrc:5"];
    let mirror = "mirror.example:443 home/.bundle/config:2";
    assert_eq!(Host::new(&files, &[]).group("gem"), [sources[0], mirror, sources[1]]);
    let variables = [("BUNDLE_MIRROR__HTTPS://A__EXAMPLE/", "https://v.example")];
    let of_variable = "v.example:443 BUNDLE_MIRROR__HTTPS://A__EXAMPLE/";
    let found = Host::new(&files, &variables).group("gem");
    assert_eq!(found, [sources[0], sources[1], of_variable]);
    assert_eq!(Host::new(&files[1..2], &[]).group("gem"), ["weak.example:443 etc/gemrc:1"]);
}

#[test]
fn maven_has_mirrors_and_repositories_that_are_not_blocked() {
    let settings = "<settings xmlns=\"http://maven.apache.org/SETTINGS/1.2.0\">\n\
                    <servers><server><id>a</id><password>canary</password></server></servers>\n\
                    <!-- <mirror><url>https://never.example</url></mirror> -->\n\
                    <mirrors><mirror><id>a</id><url> https://u:p@mirror.example/maven </url></mirror>\n\
                    <mirror><url>http://blocked.example/</url><blocked>true</blocked></mirror></mirrors>\n\
                    <profiles><profile><repositories><repository>\n\
                    <url>https://${env.HOST}/repo</url></repository></repositories>\n\
                    <pluginRepositories><pluginRepository><url>https://plugins.example</url>\
                    </pluginRepository></pluginRepositories></profile></profiles></settings>";
    let host = Host::new(&[("home/.m2/settings.xml", settings)], &[("HOST", "own.example:8443")]);
    assert_eq!(
        host.group("maven"),
        [
            "mirror.example:443 home/.m2/settings.xml:4",
            "own.example:8443 home/.m2/settings.xml:7",
            "plugins.example:443 home/.m2/settings.xml:8",
        ]
    );
    let bare =
        "<settings><mirrors><mirror><url>https://m.example</url></mirror></mirrors></settings>";
    let host = Host::new(&[("etc/maven/settings.xml", bare)], &[]);
    assert_eq!(host.group("maven"), ["m.example:443 etc/maven/settings.xml:1"]);
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
