//! Rules that change while a box is alive.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::Duration;

use h5i_testkit::Moment;
use serde_json::Value;

use crate::doors::connect;
use crate::server::Server;
use crate::stand::Stand;

fn records(stand: &Stand, name: &str) -> Vec<Value> {
    let log = stand.ok(&["box", "log", name, "--json"]);
    log.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A box of the supervised tier that is alive.
fn started(words: &[&str]) -> Stand {
    let stand = Stand::new();
    stand.ok(&[&["box", "create", "a", "--tier", "supervised"][..], words].concat());
    stand.ok(&["box", "start", "a"]);
    stand
}

#[test]
fn a_rule_that_is_taken_back_closes_its_open_flow_and_one_that_is_given_opens() {
    let server = Server::new();
    let (rule, reach) = (server.rule(), connect(&format!("192.0.0.1:{}", server.port())));
    let stand = started(&["--allow", &rule]);
    assert_eq!(stand.sh("a", &reach), "word");
    let hold = format!(
        r#"alarm 120; $| = 1; my $s = IO::Socket::INET->new(PeerAddr => "host:{}") or die; print "here\n";
           print sysread($s, my $b, 1) ? "bytes" : "closed""#,
        server.port()
    );
    let mut command = stand.command();
    command.args(["box", "run", "a", "--", "perl", "-MIO::Socket::INET", "-e", &hold]);
    let mut holding = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(holding.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");

    let begun = Moment::now();
    let answer: Value = stand.ok(&["box", "revoke", "a", &rule, "--json"]).data();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("closed"), "{rest}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(holding.wait().unwrap().success());
    assert_eq!(stand.sh("a", &reach), "Connection refused");
    let status: Value = stand.ok(&["box", "status", "a", "--json"]).data();
    assert_eq!((&status["network"], &status["allow"]), (&"allow".into(), &serde_json::json!([])));

    stand.ok(&["box", "allow", "a", &rule]);
    assert_eq!(stand.sh("a", &reach), "word");

    let records = records(&stand, "a");
    let changes: Vec<&Value> =
        records.iter().filter(|record| record["kind"] == "network-change").collect();
    assert_eq!((&changes[0]["change"], &changes[0]["rule"]), (&"revoke".into(), &rule.into()));
    assert_eq!(changes[0]["policy"], answer["policy"]);
    assert_eq!(changes[1]["change"], "allow");
    // Each run names the policy that held for it.
    let policies: Vec<&Value> = records
        .iter()
        .filter(|record| record["kind"] == "run-start")
        .map(|record| &record["policy"])
        .collect();
    let (first, revoked) = (policies[0], &answer["policy"]);
    assert_ne!(first, revoked);
    assert_eq!(policies, [first, first, revoked, first]);
    stand.ok(&["box", "stop", "a"]);
    // The next session is under the policy that the box was made with.
    assert_eq!(stand.sh("a", &reach), "word");
}

#[test]
fn a_cut_closes_everything_and_a_box_without_rules_can_be_given_one() {
    let server = Server::new();
    let (rule, reach) = (server.rule(), connect(&format!("192.0.0.1:{}", server.port())));
    let stand = started(&[]);
    stand.ok(&["box", "allow", "a", &rule]);
    assert_eq!(stand.sh("a", &reach), "word");
    stand.ok(&["box", "cut", "a"]);
    assert_eq!(stand.sh("a", &reach), "Connection refused");
    stand.ok(&["box", "stop", "a"]);
    let bundle = stand.path().join("bundle");
    stand.ok(&["box", "export", "a", "-o", bundle.to_str().unwrap()]);
    stand.ok(&["receipt", "verify", bundle.to_str().unwrap()]);
    let report = std::fs::read_to_string(bundle.join("report.md")).unwrap();
    assert!(report.contains(&format!("Changed while it ran: allow `{rule}`.")), "{report}");
    assert!(report.contains("Changed while it ran: cut (everything)."), "{report}");
}

#[test]
fn changes_that_mean_nothing_are_refused_and_not_on_record() {
    let stand = started(&[]);
    let refused = |words: &[&str]| {
        let said = stand.h5i(&[&["box"][..], words, &["--json"]].concat());
        (said.code, said.failure().kind)
    };
    assert_eq!(refused(&["revoke", "a", "host:80"]), (3, "not-found".to_owned()));
    assert_eq!(refused(&["allow", "a", "*.com"]), (4, "refused".to_owned()));
    stand.ok(&["box", "stop", "a"]);
    assert_eq!(refused(&["allow", "a", "host:80"]), (3, "not-found".to_owned()));
    stand.ok(&["box", "create", "p"]);
    stand.ok(&["box", "start", "p"]);
    assert_eq!(refused(&["allow", "p", "host:80"]), (4, "refused".to_owned()));
    stand.ok(&["box", "stop", "p"]);
    let open = ["box", "create", "o", "--tier", "supervised", "--set", "net.mode=\"open\""];
    stand.ok(&open);
    stand.ok(&["box", "start", "o"]);
    assert_eq!(refused(&["allow", "o", "host:80"]), (4, "refused".to_owned()));
    stand.ok(&["box", "stop", "o"]);
    for name in ["a", "p", "o"] {
        let records = records(&stand, name);
        assert!(records.iter().all(|record| record["kind"] != "network-change"), "{records:?}");
    }
}

#[test]
fn an_open_network_takes_no_rule_until_it_is_cut() {
    let server = Server::new();
    let reach = connect(&format!("192.0.0.1:{}", server.port()));
    let stand = started(&["--set", "net.mode=\"open\""]);
    let told = stand.h5i(&["box", "allow", "a", &server.rule()]);
    assert_eq!(told.code, 4, "{}", told.err);
    assert!(told.err.contains("rules have no meaning") && told.err.contains("h5i box cut"));
    assert!(records(&stand, "a").iter().all(|record| record["kind"] != "network-change"));
    assert_ne!(stand.sh("a", &reach), "word");
    // The twin: the same rule, once the network is cut.
    stand.ok(&["box", "cut", "a"]);
    stand.ok(&["box", "allow", "a", &server.rule()]);
    assert_eq!(stand.sh("a", &reach), "word");
    stand.ok(&["box", "stop", "a"]);
}
