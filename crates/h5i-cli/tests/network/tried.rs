//! Which program was refused, and in which run.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::doors::{connect, run};
use crate::server::Server;
use crate::shapes::{BoxRun, BoxStatus};
use crate::stand::Stand;

/// Sends a datagram, and waits until the supervisor has had its turn: it answers a question.
const DATAGRAM: &str = r#"perl -MIO::Socket::INET -e '
    my $s = IO::Socket::INET->new(Proto => "udp", PeerAddr => "192.0.2.9:53"); $s->send("x");
    my $q = IO::Socket::INET->new(Proto => "udp", PeerAddr => "127.0.0.53:53");
    $q->send(pack("n6", 7, 256, 1, 0, 0, 0) . "\x01b\x07example\x00" . pack("n2", 1, 1));
    $q->recv(my $answer, 512)'"#;

fn records(stand: &Stand, name: &str) -> Vec<Value> {
    let log = stand.ok(&["box", "log", name, "--json"]);
    log.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_refused_name_address_and_datagram_have_their_program_on_record() {
    let stand = Stand::new();
    let tries =
        format!("getent ahostsv4 a.example; {}; {DATAGRAM}; true", connect("192.0.2.9:443"));
    let refused = run(&stand, &["--keep"], &tries);
    let told: Vec<(&str, &str)> = refused
        .denied_network
        .iter()
        .map(|one| {
            let [program] = &one.programs[..] else { panic!("{one:?}") };
            (&one.what[..], program.rsplit('/').next().unwrap())
        })
        .collect();
    let all = [
        ("a.example", "getent"),
        ("192.0.2.9:443", "perl"),
        ("192.0.2.9:53/udp", "perl"),
        ("b.example", "perl"),
    ];
    assert_eq!(told, all);
    // The id is the one that the exec record has. What is asked again is counted, and names nobody.
    let records = records(&stand, &refused.name);
    let denied = |record: &&Value| {
        let kind = record["kind"].as_str().unwrap();
        kind.starts_with("refused-") && record["pid"].is_number()
    };
    let mut seen = 0;
    for denied in records.iter().filter(denied) {
        seen += 1;
        let same = |record: &Value| {
            record["kind"] == "exec"
                && record["pid"] == denied["pid"]
                && record["exe"] == denied["program"]
        };
        assert!(records.iter().any(same), "{denied}: {records:#?}");
    }
    assert_eq!(seen, 4, "{records:#?}");
    let log = stand.ok(&["box", "log", &refused.name, "--denied"]);
    let named = log.text().lines().filter(|line| line.contains(", by /usr/bin/")).count();
    assert_eq!(named, 4, "{}", log.text());
    let status: BoxStatus = stand.ok(&["box", "status", &refused.name, "--json"]).data();
    assert!(status.refused_network.iter().all(|one| one.programs.len() == 1), "{status:?}");
    let words = stand.ok(&["box", "status", &refused.name]).text().to_owned();
    assert!(words.contains("192.0.2.9:443 ×1 by /usr/bin/perl"), "{words}");
    let bundle = stand.path().join("bundle");
    stand.ok(&["box", "export", &refused.name, "-o", bundle.to_str().unwrap()]);
    let report = std::fs::read_to_string(bundle.join("report.md")).unwrap();
    assert!(report.contains("Refused: `192.0.2.9:443`, 1 time, by `/usr/bin/perl`."), "{report}");
    stand.ok(&["receipt", "verify", bundle.to_str().unwrap()]);

    // The twin: what is listed is refused to nobody.
    let server = Server::new();
    let reach = connect(&format!("host:{}", server.port()));
    let reached = run(&stand, &["--allow", &server.rule()], &reach);
    assert_eq!((reached.flows.len(), reached.denied_network.len()), (1, 0));
}

#[test]
fn a_person_is_told_who_was_refused_and_a_rule_who_asked() {
    let stand = Stand::new();
    let script = format!("getent hosts a.example; {}", connect("192.0.2.9:443"));
    let said = stand.ok(&["run", "--learn", "--", "sh", "-c", &script]);
    let line = |start: &str| said.err.lines().find(|line| line.contains(start)).unwrap().to_owned();
    assert!(line("name a.example ×").contains("by /usr/bin/getent: no rule"), "{}", said.err);
    assert!(line("connection 192.").contains("×1 by /usr/bin/perl: no rule"), "{}", said.err);
    assert!(line("\"a.example:443\",").ends_with(" # asked by getent"), "{}", said.err);
    assert!(line("\"192.0.2.9:443\",").ends_with(" # asked by perl"), "{}", said.err);
}

#[test]
fn of_several_runs_at_once_each_has_what_it_was_refused() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a", "--tier", "supervised"]);
    stand.ok(&["box", "start", "a"]);
    let mut waits = stand.command();
    waits.args(["box", "run", "a", "--", "sh", "-c", "echo here; read word"]);
    let mut first = waits.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    for number in [2, 3] {
        // Both ask for the same name: each is told with its own run.
        let script =
            format!("getent ahostsv4 a.example; {}", connect(&format!("192.0.2.{number}:7")));
        let run: BoxRun =
            stand.ok(&["box", "run", "a", "--json", "--", "sh", "-c", &script]).data();
        let told: Vec<&str> = run.denied_network.iter().map(|one| &one.what[..]).collect();
        assert_eq!(told, ["a.example", &format!("192.0.2.{number}:7")], "{run:?}");
    }
    drop(first.stdin.take());
    first.wait().unwrap();
    stand.ok(&["box", "stop", "a"]);
    let records = records(&stand, "a");
    let runs = |kind: &str| -> Vec<&Value> {
        // What is only counted names nobody.
        let of = |record: &&Value| record["kind"] == kind && record["pid"].is_number();
        records.iter().filter(of).map(|record| &record["run"]).collect()
    };
    assert_eq!(runs("refused-name"), [&Value::from(2), &Value::from(3)], "{records:#?}");
    assert_eq!(runs("refused-address"), [&Value::from(2), &Value::from(3)], "{records:#?}");
}
