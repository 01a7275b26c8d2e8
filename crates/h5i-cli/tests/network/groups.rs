//! Groups of registries from the configuration of the host's tools, and budgets.

use std::fs;

use serde_json::Value;

use crate::doors::{connect, run};
use crate::server::Server;
use crate::shapes::Explained;
use crate::stand::Stand;

const CREATE: [&str; 5] = ["box", "create", "a", "--tier", "supervised"];

#[test]
fn a_group_is_the_registry_that_the_tool_is_configured_for_and_its_credentials_stay_outside() {
    let stand = Stand::new();
    let registry = "registry=https://me:s3cret-canary@npm.example/\n";
    fs::write(stand.home().join(".npmrc"), registry).unwrap();
    // What the repository says of a registry is not the person's word.
    stand.ground.write(".npmrc", b"registry=https://evil.example/\n");
    stand.ground.commit("npmrc");
    let mut command = stand.with(&[&CREATE[..], &["--allow", "@npm", "--allow", "@pip"]].concat());
    command.env("PIP_INDEX_URL", "https://u:s3cret-canary@pip.example:8443/simple");
    assert!(command.status().unwrap().success());
    let told: Explained = stand.ok(&["box", "explain", "a", "--json"]).data();
    let reach: Vec<_> =
        told.reach.iter().map(|one| (&one.rule[..], one.from.as_deref().unwrap())).collect();
    let npmrc = stand.home().join(".npmrc");
    let npm = format!("command line, group @npm of {}:1", npmrc.display());
    let pip = "command line, group @pip of PIP_INDEX_URL";
    assert_eq!(reach, [("npm.example:443", npm.as_str()), ("pip.example:8443", pip)]);
    let shown = stand.ok(&["box", "explain", "a"]).text().to_owned();
    assert!(shown.contains(&npm) && !shown.contains("@npm:"), "{shown}");
    // The frozen policy names hosts; nothing that h5i wrote has the credential.
    let host = stand.box_dir("a").join("host");
    let policy = fs::read_to_string(host.join("policy.json")).unwrap();
    assert!(policy.contains("\"npm.example:443\"") && !policy.contains('@'), "{policy}");
    for entry in fs::read_dir(&host).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("s3cret"), "{}", path.display());
        }
    }
    // The twin of that search: what was looked for is where it was put.
    assert!(fs::read_to_string(&npmrc).unwrap().contains("s3cret-canary"));
}

#[test]
fn the_users_own_group_is_stronger_and_a_tool_without_configuration_is_told_how() {
    let stand = Stand::new();
    let said = stand.h5i(&[&CREATE[..], &["--allow", "@npm"]].concat());
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("unknown group `@npm`"), "{}", said.err);
    assert!(said.err.contains("[group.npm] allow = [\"HOST\"]"), "{}", said.err);
    stand.user_policy("version = 1\n[group.npm]\nallow = [\"mine.example\"]\n");
    fs::write(stand.home().join(".npmrc"), "registry=https://npm.example\n").unwrap();
    stand.ok(&[&CREATE[..], &["--allow", "@npm"]].concat());
    let told: Explained = stand.ok(&["box", "explain", "a", "--json"]).data();
    let [reach] = &told.reach[..] else { panic!("{told:?}") };
    assert_eq!(reach.rule, "mine.example:443");
    assert_eq!(reach.from.as_deref(), Some("command line, group @npm"));
}

#[test]
fn a_box_that_may_fetch_crates_has_a_registry_of_its_own_to_write() {
    let stand = Stand::new();
    let cargo = stand.home().join(".cargo");
    fs::create_dir_all(cargo.join("bin")).unwrap();
    fs::create_dir_all(cargo.join("registry/index")).unwrap();
    let own = "[registries.own]\nindex = \"sparse+https://crates.example/\"\n";
    fs::write(cargo.join("config.toml"), own).unwrap();
    let path = format!("{}:/usr/bin:/bin", cargo.join("bin").display());
    for (name, rule, linked) in [("a", "@cargo", false), ("b", "other.example", true)] {
        let words = ["box", "create", name, "--tier", "supervised", "--allow", rule];
        assert!(stand.with(&words).env("PATH", &path).status().unwrap().success());
        let registry = stand.box_dir(name).join("box/home/.cargo/registry");
        assert_eq!(registry.is_symlink(), linked, "{rule}");
    }
}

#[test]
fn a_spent_budget_refuses_and_the_record_says_how_much_was_used() {
    let (stand, server) = (Stand::new(), Server::new());
    let reach = connect(&format!("192.0.0.1:{}", server.port()));
    let allow = server.rule();
    let two = format!("{reach}; echo; {reach}");
    let words = ["--allow", &allow, "--set", "net.budget.connections=1", "--keep"];
    let stopped = run(&stand, &words, &two);
    assert_eq!(stopped.flows.len(), 1, "{stopped:?}");
    let [denied] = &stopped.denied_network[..] else { panic!("{stopped:?}") };
    assert_eq!(denied.reason, "the budget of connections is spent");
    assert!(denied.programs[0].ends_with("/perl"), "{denied:?}");
    let log = stand.ok(&["box", "log", &stopped.name, "--lane", "net", "--json"]);
    let refused: Vec<Value> = log
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["kind"] == "refused-flow")
        .collect();
    assert_eq!((&refused[0]["used"], &refused[0]["allowed"]), (&1.into(), &1.into()));
    let told = stand.ok(&["box", "log", &stopped.name, "--denied"]);
    assert!(told.text().contains("connections is spent (1 of 1 connections)"), "{}", told.text());

    let words = ["--allow", &allow, "--set", "net.budget.bytes=6B", "--keep"];
    let stopped = run(&stand, &words, &reach);
    assert_eq!(stopped.flows[0].reason.as_deref(), Some("the budget of bytes is spent"));
    // The twin.
    let words = ["--allow", &allow, "--set", "net.budget.connections=2"];
    assert_eq!(run(&stand, &words, &two).flows.len(), 2);
}

#[test]
fn a_budget_where_nothing_counts_is_refused() {
    let stand = Stand::new();
    let host = ["box", "create", "a", "--set", "net.mode=host"];
    let said = stand.h5i(&[&host[..], &["--set", "net.budget.bytes=1GiB"]].concat());
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("net.budget") && said.err.contains("nothing counts"), "{}", said.err);
    // The twin: the profile's own budget is no reason.
    stand.ok(&host);
}
