//! By `reverse`: the program is told where the broker is, and shows it a token.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::shapes::BoxRun;
use crate::with_grants::{With, ask};

/// What the grant lets pass.
const LISTED: &str = "methods = [\"GET\", \"POST\"]\npaths = [\"/v1/*\", \"/echo\", \"/stream\"]\n";

#[test]
fn a_request_carries_the_hosts_key_and_is_on_record() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let script = format!("{}; {}", ask("/v1/a"), ask("/v1/b?q=1 -d body"));
    let said = with.ok(&["box", "run", "a", "--json", "--", "sh", "-c", &script]);
    let run: BoxRun = said.data();
    assert_eq!(run.stdout.text(), "/v1/a 200/v1/b?q=1 200");
    let [first, second] = &with.service.asked()[..] else { panic!("two requests") };
    assert_eq!(first.line, "GET /v1/a HTTP/1.1");
    assert_eq!(first.header("authorization"), Some("Bearer sk-canary-7hJ2kQ9xV4mB1nZ8"));
    assert_eq!((second.line.as_str(), &second.body[..]), ("POST /v1/b?q=1 HTTP/1.1", &b"body"[..]));
    let [used] = &run.grants[..] else { panic!("{:?}", run.grants) };
    assert_eq!((used.grant.as_str(), used.uses, used.sent), ("api", 2, 4));
    assert!(run.denied_grants.is_empty());
    let kinds = ["grant-issued", "grant-use", "grant-use-end", "grant-ended"];
    let records = with.records(&kinds);
    let told: Vec<_> = records.iter().map(|r| r["kind"].as_str().unwrap()).collect();
    assert_eq!(told, [kinds[0], kinds[1], kinds[2], kinds[1], kinds[2], kinds[3]]);
    let of_run = |record: &serde_json::Value| record["lane"] == "broker" && record["run"] == 1;
    assert!(records.iter().all(of_run), "{records:?}");
    assert_eq!(records[3]["path"], "/v1/b");
    let program = records[1]["program"].as_str().unwrap();
    assert!(program.ends_with("/curl"), "{program}");
    assert_eq!((&records[5]["end"], &records[2]["status"]), (&"run-ended".into(), &200.into()));
    // What a person reads.
    with.stand.ok(&["box", "export", "a", "-o", "out"]);
    let report = std::fs::read_to_string(with.stand.repo().join("out/report.md")).unwrap();
    assert!(report.contains("## Credentials used"), "{report}");
    assert!(report.contains("**`api`**: 2 requests, 4 B up"), "{report}");
}

#[test]
fn what_is_not_listed_is_refused_and_said() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let script = [
        ask("/v2/a"),
        ask("/v1/a -X DELETE"),
        ask("/v1/%2e%2e/a --path-as-is"),
        "curl -s -w ' %{http_code}' $API_URL/v1/a".to_owned(),
        "curl -s -w ' %{http_code}' -H 'authorization: Bearer x' $API_URL/v1/a".to_owned(),
    ]
    .map(|ask| format!("{ask} | tail -c 3"))
    .join("; ");
    let said = with.ok(&["box", "run", "a", "--json", "--", "sh", "-c", &script]);
    let run: BoxRun = said.data();
    assert_eq!(run.stdout.text(), "403403400401401");
    assert!(with.service.asked().is_empty());
    let refused = with.records(&["grant-refused"]);
    let told: Vec<_> = refused.iter().map(|r| r["reason"].as_str().unwrap()).collect();
    for reason in ["the path is not listed", "the method is not listed", "a malformed request"] {
        assert!(told.contains(&reason), "{told:?}");
    }
    assert!(told.contains(&"no token, or none that holds"), "{told:?}");
    assert!(run.denied_grants.iter().any(|one| one.request.as_deref() == Some("GET /v2/a")));
    let lines = with.h5i(&["box", "run", "a", "--", "sh", "-c", &ask("/v2/a")]);
    assert!(lines.err.contains("refused  grant api: GET /v2/a"), "{}", lines.err);
    // The twin, in the same box.
    assert_eq!(with.sh(&ask("/v1/a")), "/v1/a 200");
}

#[test]
fn a_token_is_of_its_run_and_of_no_other() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let script = "echo \"$API_TOKEN\" > token; echo \"$API_URL\" > url";
    with.sh(script);
    let old = "curl -s -o /dev/null -w '%{http_code}' -H \"authorization: Bearer $(cat token)\"";
    // The run is over: its token is worth nothing, wherever the broker is.
    assert_eq!(with.sh(&format!("{old} $API_URL/v1/a")), "401");
    assert_eq!(with.sh(&ask("/v1/a")), "/v1/a 200");
}

#[test]
fn a_request_with_the_token_of_another_run_is_on_record_as_its_own_runs() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let script = format!("echo \"$API_TOKEN\" > token; echo ready; read word; {}", ask("/v1/a"));
    let mut command = with.command();
    command.args(["box", "run", "a", "--", "sh", "-c", &script]);
    let mut first = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(first.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let others = "curl -s -o /dev/null -w '%{http_code}' -H \"authorization: Bearer $(cat token)\" \
                  $API_URL/v1/b";
    let said = with.ok(&["box", "run", "a", "--json", "--", "sh", "-c", others]);
    let run: BoxRun = said.data();
    assert_eq!((run.run, run.stdout.text()), (2, "401"));
    let reason = "no token, or none that holds; the token is that of run 1";
    let [refused] = &run.denied_grants[..] else { panic!("{:?}", run.denied_grants) };
    assert_eq!((refused.reason.as_str(), refused.request.as_deref()), (reason, Some("GET /v1/b")));
    // The twins: the run whose token it is, and the other one with its own.
    assert_eq!(with.sh(&ask("/v1/c")), "/v1/c 200");
    drop(first.stdin.take());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), first.wait().unwrap().success()), ("/v1/a 200", true));
    let records = with.records(&["grant-refused"]);
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!((&record["run"], &record["reason"]), (&2.into(), &reason.into()));
    let used = with.records(&["grant-use"]);
    let of: Vec<&serde_json::Value> = used.iter().map(|one| &one["run"]).collect();
    assert_eq!(of, [3, 1]);
}

#[test]
fn the_answer_does_not_hand_the_key_back() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let said = with.sh(&ask("/echo"));
    assert!(!said.contains("canary") && said.ends_with(" 200"), "{said}");
    assert!(said.starts_with("authorization: Bearer *"), "{said}");
    assert_eq!(with.records(&["grant-use-end"])[0]["scrubbed"], 1);
}

#[test]
fn only_listed_programs_use_a_grant_that_lists_them() {
    let more = format!("{LISTED}programs = [\"/usr/bin/curl\"]\n");
    let with = With::a_box("localhost", "reverse", &more);
    assert_eq!(with.sh(&ask("/v1/a")), "/v1/a 200");
    let other = "cp /usr/bin/curl other; ";
    let script = format!("{other}./other{} | tail -c 3", ask("/v1/a").trim_start_matches("curl"));
    assert_eq!(with.sh(&script), "403");
    let refused = with.records(&["grant-refused"]);
    assert_eq!(refused[0]["program"], "/work/other");
    assert_eq!(with.service.asked().len(), 1);
}

#[test]
fn a_program_may_be_listed_by_a_link_of_the_hosts() {
    // `/bin` is a link; the kernel tells of `/usr/bin/curl`.
    let with =
        With::a_box("localhost", "reverse", &format!("{LISTED}programs = [\"/bin/curl\"]\n"));
    assert_eq!(with.sh(&ask("/v1/a")), "/v1/a 200");
    // The twin: the box's own link leads nowhere, here as on the host.
    let own = "programs = [\"/work/curl\"]\n";
    let with = With::a_box("localhost", "reverse", &format!("{LISTED}{own}"));
    let script = format!("ln -s /usr/bin/curl curl; ./{} | tail -c 3", ask("/v1/a"));
    assert_eq!(with.sh(&script), "403");
}

#[test]
fn a_budget_stops_what_is_beyond_it() {
    let with = With::a_box("localhost", "reverse", &format!("{LISTED}requests = 2\n"));
    let script = format!("for i in 1 2 3; do {} | tail -c 3; done", ask("/v1/a"));
    assert_eq!(with.sh(&script), "200200429");
    assert_eq!(with.service.asked().len(), 2);
    // Each run has its own.
    assert_eq!(with.sh(&ask("/v1/a")), "/v1/a 200");
}

#[test]
fn a_host_without_the_key_lets_nothing_pass_and_says_so() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let mut command = with.command();
    command.env_remove("API_KEY");
    let script = format!("{} | tail -c 3", ask("/v1/a"));
    let said = command.args(["box", "run", "a", "--", "sh", "-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "502");
    assert!(with.service.asked().is_empty());
    let refused = with.records(&["grant-refused"]);
    assert_eq!(refused[0]["reason"], "the host has no credential to add");
}

#[test]
fn a_base_url_has_what_the_programs_expect_behind_it() {
    let with = With::a_box("localhost", "reverse", &format!("{LISTED}base_path = \"/v1\"\n"));
    assert_eq!(with.sh(&ask("/a")), "/v1/a 200");
    assert!(with.sh("echo $API_URL").ends_with("/v1"));
}
