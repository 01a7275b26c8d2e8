//! What is told of a box's network: log, lines after a run, report.

use crate::doors::connect;
use crate::server::Server;
use crate::stand::Stand;

#[test]
fn what_was_refused_is_told_after_the_run_with_the_rule_that_allows_it() {
    let stand = Stand::new();
    let script = format!("getent hosts telemetry.example; {}", connect("192.0.2.9:443"));
    let said = stand.ok(&["run", "--tier", "supervised", "--", "sh", "-c", &script]);
    let lines: Vec<&str> = said.err.lines().filter(|line| line.contains("--allow")).collect();
    assert_eq!(lines.len(), 2, "{}", said.err);
    assert!(lines[0].starts_with("refused  name telemetry.example ×"), "{}", lines[0]);
    assert!(
        lines[0].ends_with("allow at create: --allow telemetry.example:443, or another port"),
        "{}",
        lines[0]
    );
    assert!(lines[1].starts_with("         connection 192.0.2.9:443 ×1"), "{}", lines[1]);
}

#[test]
fn log_status_and_report_tell_flows_and_refusals() {
    let (stand, server) = (Stand::new(), Server::new());
    stand.ok(&["box", "create", "a", "--tier", "supervised", "--allow", &server.rule()]);
    let reach = connect(&format!("host:{}", server.port()));
    stand.sh("a", &format!("{reach}; {}", connect("192.0.2.9:443")));
    let words = |words: &[&str]| String::from_utf8(stand.ok(words).out).unwrap();

    let log = words(&["box", "log", "a", "--lane", "net"]);
    let told: Vec<&str> =
        log.lines().map(|line| line.split_once("run 1").unwrap().1.trim()).collect();
    let flow = format!("flow 1 to host at 192.0.0.1:{0} (by host:{0})", server.port());
    assert!(told[0].starts_with(&flow), "{log}");
    assert!(told[0].contains("perl, pid "), "{log}");
    assert!(told[1].starts_with("flow 1 ended: done; 4 B out, 4 B in, "), "{log}");
    assert!(told[2].starts_with("refused 192.0.2.9:443 ×1, by /usr/bin/perl, pid "), "{log}");
    let denied = words(&["box", "log", "a", "--denied"]);
    assert_eq!(denied.lines().count(), 1, "{denied}");

    let status = words(&["box", "status", "a"]);
    assert!(status.contains("192.0.2.9:443 ×1"), "{status}");
    assert!(status.contains("network gate"), "{status}");

    let bundle = stand.path().join("bundle");
    stand.ok(&["box", "export", "a", "-o", bundle.to_str().unwrap()]);
    let report = std::fs::read_to_string(bundle.join("report.md")).unwrap();
    let network = report.split("## Network").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(network.contains("Refused: `192.0.2.9:443`, 1 time, by `"), "{network}");
    let carried = format!("Connected to `host` at `192.0.0.1:{}`, 1 time", server.port());
    assert!(network.contains(&carried), "{network}");
    stand.ok(&["receipt", "verify", bundle.to_str().unwrap()]);
}

#[test]
fn the_probe_tries_the_real_thing() {
    let stand = Stand::new();
    let said = stand.ok(&["box", "probe", "--tier", "supervised"]);
    let text = String::from_utf8(said.out).unwrap();
    for mechanism in ["network gate", "network relay", "network resolver"] {
        let line = text.lines().find(|line| line.contains(mechanism));
        assert!(line.is_some_and(|line| line.starts_with("holds")), "{text}");
    }
    assert!(said.err.contains("can run the supervised tier"), "{}", said.err);
}
