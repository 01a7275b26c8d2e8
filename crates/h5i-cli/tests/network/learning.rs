//! What a box asked for becomes rules, by a person's word.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use serde_json::Value;

use crate::at_terminal::{read_all, terminal};
use crate::doors::connect;
use crate::server::Server;
use crate::stand::{Said, Stand};

const MINE: &str =
    "# mine\nversion = 1\n\n[profile.default.limits] # short\nwall = \"1h\" # enough\n";

/// Learns from a script; the box's name and what was said.
fn learn(stand: &Stand, words: &[&str], script: &str) -> (String, Said, Value) {
    let all = [&["run", "--learn"][..], words, &["--json", "--", "sh", "-c", script]].concat();
    let said = stand.ok(&all);
    let data = said.json()["data"].clone();
    (data["box"].as_str().unwrap().to_owned(), said, data)
}

fn document(stand: &Stand) -> String {
    fs::read_to_string(stand.path().join("config/h5i/policy.toml")).unwrap()
}

#[test]
fn what_a_box_asked_for_is_told_as_rules_and_works_once_it_is_accepted() {
    let (stand, server) = (Stand::new(), Server::new());
    stand.user_policy(MINE);
    let reach = connect(&format!("192.0.0.1:{}", server.port()));
    let script = format!("getent hosts telemetry.example; {reach}; true");
    let (name, _, data) = learn(&stand, &[], &script);
    let rules = ["telemetry.example:443".to_owned(), server.rule()];
    assert_eq!(data["learned"]["rules"], serde_json::json!(rules));
    assert_eq!(data["kept"], true);
    // As a person is told it: both forms.
    let said = stand.ok(&["run", "--learn", "--", "sh", "-c", &script]);
    let options = format!("--allow telemetry.example:443 --allow {}", server.rule());
    assert!(said.err.contains(&options), "{}", said.err);
    let toml = data["learned"]["toml"].as_str().unwrap();
    assert!(said.err.contains(toml) && toml.starts_with("[profile.default.net]\n"), "{}", said.err);
    assert!(said.err.contains("accept   h5i policy accept sh-"), "{}", said.err);

    let before = stand.ok(&["run", "--json", "--", "sh", "-c", &reach]).json();
    assert_ne!(before["data"]["stdout"], "word");
    let accepted = stand.ok(&["policy", "accept", &name, "--yes", "--json"]).json();
    let changes: Vec<&str> = accepted["data"]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change.as_str().unwrap())
        .collect();
    assert!(changes.contains(&"tier: process → supervised"), "{changes:?}");
    assert!(changes.contains(&"net.mode: none → allow"), "{changes:?}");
    assert!(changes.contains(&"net.allow: + telemetry.example:443"), "{changes:?}");
    let text = document(&stand);
    assert!(text.starts_with("# mine\nversion = 1\n"), "{text}");
    assert!(text.contains("[profile.default.limits] # short\nwall = \"1h\" # enough\n"), "{text}");
    let after = stand.ok(&["run", "--json", "--", "sh", "-c", &reach]).json();
    assert_eq!(after["data"]["stdout"], "word");
    // What holds already is not learned again.
    let again = stand.ok(&["run", "--learn", "--json", "--", "sh", "-c", &reach]).json();
    assert_eq!(again["data"]["learned"]["rules"], serde_json::json!([]));
    assert_eq!(again["data"]["kept"], false);
}

#[test]
fn a_person_sees_the_change_and_decides() {
    let stand = Stand::new();
    stand.user_policy(MINE);
    let (name, _, _) = learn(&stand, &[], "getent hosts a.example; true");
    let answered = |answer: &str| {
        let (mut person, program) = terminal();
        let mut command = stand.command();
        command.args(["policy", "accept", &name]).stdin(Stdio::from(program.try_clone().unwrap()));
        command.stderr(Stdio::from(program)).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        person.write_all(answer.as_bytes()).unwrap();
        (read_all(&mut person), child.wait().unwrap().code().unwrap())
    };
    let (shown, code) = answered("n\n");
    assert_eq!(code, 4, "{shown}");
    assert!(shown.contains("net.allow: + a.example:443"), "{shown}");
    assert_eq!(document(&stand), MINE);
    let said = stand.h5i(&["policy", "accept", &name]);
    assert!(said.code == 4 && said.err.contains("no terminal to ask on"), "{said:?}");
    assert_eq!(document(&stand), MINE);
    let (shown, code) = answered("y\n");
    assert_eq!(code, 0, "{shown}");
    assert_ne!(document(&stand), MINE);
}

#[test]
fn a_profile_that_is_new_extends_the_boxs_and_a_linked_document_stays_linked() {
    let stand = Stand::new();
    let dir = stand.path().join("config/h5i");
    fs::create_dir_all(&dir).unwrap();
    let real = stand.path().join("dotfiles.toml");
    fs::write(&real, "version = 1\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).unwrap();
    symlink(&real, dir.join("policy.toml")).unwrap();
    let words = ["--profile", "review"];
    let (name, _, _) = learn(&stand, &words, "getent hosts a.example; true");
    stand.ok(&["policy", "accept", &name, "--profile", "web", "--yes"]);
    assert!(fs::symlink_metadata(dir.join("policy.toml")).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o644);
    let text = document(&stand);
    assert!(text.contains("[profile.web]\nextends = \"review\"\n"), "{text}");
    stand.ok(&["box", "create", "web", "--profile", "web"]);
    stand.ok(&["policy", "check"]);
    // A second lesson is added to the first.
    let words = ["--profile", "web"];
    let (name, _, _) =
        learn(&stand, &words, "getent hosts b.example; getent hosts a.example; true");
    stand.ok(&["policy", "accept", &name, "--yes"]);
    let shown = stand.ok(&["policy", "show", "--profile", "web", "--json"]).json();
    let allow = serde_json::json!(["a.example:443", "b.example:443"]);
    assert_eq!(shown["data"]["policy"]["net"]["allow"], allow);
}

#[test]
fn without_a_network_of_its_own_there_is_nothing_to_learn_from() {
    let stand = Stand::new();
    let said = stand.h5i(&["run", "--learn", "--tier", "process", "--", "true"]);
    assert_eq!(said.code, 125, "{said:?}");
    assert!(said.err.contains("--learn needs a network that the host sees"), "{}", said.err);
    let (name, _, data) = learn(&stand, &["--keep"], "true");
    assert_eq!(data["learned"]["rules"], serde_json::json!([]));
    let said = stand.ok(&["policy", "accept", &name]);
    assert!(said.err.contains("asked for nothing"), "{}", said.err);
    // A box that is made for it says where it goes on.
    let said = stand.ok(&["box", "create", "l", "--learn"]);
    assert!(said.err.contains("h5i policy accept l"), "{}", said.err);
    stand.h5i(&["box", "run", "l", "--", "getent", "hosts", "c.example"]);
    let accepted = stand.ok(&["policy", "accept", "l", "--yes", "--json"]).json();
    assert_eq!(accepted["data"]["rules"], serde_json::json!(["c.example:443"]));
}

/// What is shown and written of what box `name` asked for.
fn accepted_at_a_terminal(stand: &Stand, name: &str) -> String {
    let (mut person, program) = terminal();
    let mut command = stand.command();
    command.args(["policy", "accept", name]).stdin(Stdio::from(program.try_clone().unwrap()));
    command.stderr(Stdio::from(program)).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    person.write_all(b"y\n").unwrap();
    let shown = read_all(&mut person);
    assert!(child.wait().unwrap().success(), "{shown}");
    shown
}

#[test]
fn what_is_accepted_is_shown_whole_and_remarked_where_it_leads_nearby() {
    let stand = Stand::new();
    let label = "x".repeat(60);
    let long = format!("api.github.com.{label}.{label}.{label}.{}.evil.example", "x".repeat(20));
    let script = format!(
        "getent hosts {long}; getent hosts com; getent hosts b.example; {}; true",
        connect("169.254.169.254:80")
    );
    let (name, _, data) = learn(&stand, &[], &script);
    let remarks = data["learned"]["remarks"].as_array().unwrap();
    assert_eq!(remarks.len(), 2, "{data}");
    let shown = accepted_at_a_terminal(&stand, &name);
    let line = |begin: &str| {
        let mut lines = shown.lines().filter(|line| line.starts_with(begin));
        let line = lines.next().unwrap_or_else(|| panic!("no {begin:?} in {shown}"));
        assert_eq!(lines.next(), None, "{shown}");
        line.to_owned()
    };
    let rule = format!("{long}:443");
    assert!(line(&format!("  net.allow: + {}", &long[..30])).ends_with(&rule), "{shown}");
    assert!(line("look     169.254.169.254:80: ").contains("metadata"), "{shown}");
    assert!(line("look     com:443: ").contains("public suffix"), "{shown}");
    assert!(line("look     every box of profile default").contains("another tier"), "{shown}");
    assert!(!shown.contains("look     b.example"), "{shown}");
    assert!(document(&stand).contains(&rule), "{}", document(&stand));
    // A second time there is nothing to ask.
    let again = stand.ok(&["policy", "accept", &name]);
    assert!(again.err.contains("allows all of it already"), "{}", again.err);
}

#[test]
fn the_name_of_the_host_is_allowed_by_its_ports() {
    let stand = Stand::new();
    let script = "getent hosts host; getent hosts a.example; true";
    let said = stand.ok(&["run", "--learn", "--", "sh", "-c", script]);
    let told = |part: &str| said.err.lines().any(|line| line.ends_with(part));
    assert!(told("allow at create: --allow host:PORT"), "{}", said.err);
    assert!(told("left out host: it is allowed by its ports, as host:PORT"), "{}", said.err);
    // The twin, whose rule can be had as it is told.
    assert!(told("allow at create: --allow a.example:443, or another port"), "{}", said.err);
    stand.ok(&["box", "create", "a", "--tier", "supervised", "--allow", "a.example:443"]);
}
