//! Which program opened a flow, and in which run.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::doors::connect;
use crate::server::Server;
use crate::shapes::BoxRun;
use crate::stand::Stand;

#[test]
fn of_several_runs_at_once_each_has_its_own_flows_with_their_programs() {
    let (stand, server) = (Stand::new(), Server::new());
    stand.ok(&["box", "create", "a", "--tier", "supervised", "--allow", &server.rule()]);
    stand.ok(&["box", "start", "a"]);
    // The first run holds its flow until its input ends.
    let hold = format!(
        r#"alarm 120; $| = 1; my $s = IO::Socket::INET->new(PeerAddr => "host:{}") or die;
           print "here\n"; <STDIN>; print $s "word"; $s->shutdown(1); print <$s>"#,
        server.port()
    );
    let mut command = stand.command();
    command.args(["box", "run", "a", "--", "perl", "-MIO::Socket::INET", "-e", &hold]);
    let mut first = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(first.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    let reach = connect(&format!("host:{}", server.port()));
    let script = format!("true; {reach}; true");
    let second: BoxRun = stand.ok(&["box", "run", "a", "--json", "--", "sh", "-c", &script]).data();
    let [flow] = &second.flows[..] else { panic!("{second:?}") };
    assert!(flow.program.as_deref().unwrap().ends_with("/perl"), "{flow:?}");
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    stand.ok(&["box", "stop", "a"]);

    let log = stand.ok(&["box", "log", "a", "--json"]);
    let records: Vec<Value> =
        log.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| -> Vec<&Value> {
        records.iter().filter(|record| record["kind"] == kind).collect()
    };
    let flows = of("flow-start");
    assert_eq!(flows.len(), 2);
    assert_eq!((&flows[0]["run"], &flows[1]["run"]), (&1.into(), &2.into()));
    // The id is the one that the exec record has.
    for flow in flows {
        let same = |record: &&Value| {
            record["pid"] == flow["pid"]
                && record["run"] == flow["run"]
                && record["exe"] == flow["program"]
        };
        assert!(of("exec").iter().any(same), "{flow}: {records:#?}");
    }
    let ends: Vec<&Value> = of("flow-end").into_iter().map(|record| &record["run"]).collect();
    assert_eq!(ends, [2, 1]);
}

#[test]
fn a_connection_that_was_handed_to_a_child_is_its_openers() {
    let (stand, server) = (Stand::new(), Server::new());
    // The child does not look at it, and is of another program.
    let script = format!(
        r#"perl -MIO::Socket::INET -e '$^F = 99; my $s = IO::Socket::INET->new(PeerAddr => "host:{}") or die;
           system("sleep", "0.1"); print $s "word"; $s->shutdown(1); print <$s>'"#,
        server.port()
    );
    let run = crate::doors::run(&stand, &["--allow", &server.rule()], &script);
    assert!(run.flows[0].program.as_deref().unwrap().ends_with("/perl"), "{run:?}");
}
