//! A person takes a grant back, has it hold longer, freezes its box.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

use crate::with_grants::{With, ask};

const LISTED: &str =
    "methods = [\"GET\"]\npaths = [\"/v1/*\", \"/stream\"]\nlasts = \"10m\"\nrequests = 9\n";

/// A run with an open stream of the service.
struct Streaming {
    run: Child,
    out: BufReader<ChildStdout>,
}

impl Streaming {
    /// Begins one, and has its first event arrive. Then it asks once more, with the same token.
    fn begin(with: &With) -> Self {
        let script = format!(
            "curl -sN -H \"authorization: Bearer $API_TOKEN\" $API_URL/stream; echo ended $?; \
             {} | tail -c 3; echo; read word; {} | tail -c 3",
            ask("/v1/a"),
            ask("/v1/b"),
        );
        let mut command = with.command();
        command.args(["box", "run", "a", "--", "sh", "-c", &script]);
        let mut run = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(run.stdout.take().unwrap());
        let mut streaming = Self { run, out };
        with.service.next.send(()).unwrap();
        assert_eq!(streaming.line(), "data: one");
        streaming
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it says after its stream has ended.
    fn rest(mut self) -> String {
        drop(self.run.stdin.take());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        self.run.wait().unwrap();
        rest
    }
}

#[test]
fn a_grant_that_is_taken_back_ends_at_once_and_for_the_session() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let mut streaming = Streaming::begin(&with);
    with.stand.ok(&["grant", "revoke", "a", "api"]);
    let ended = streaming.line();
    assert!(ended.starts_with("ended ") && ended != "ended 0", "{ended}");
    assert_eq!(streaming.line(), "401");
    assert_eq!(streaming.rest(), "401");
    let told = with.records(&["grant-change", "grant-use-end", "grant-refused"]);
    assert_eq!((&told[0]["change"], &told[1]["end"]), (&"revoke".into(), &"revoked".into()));
    assert_eq!(with.service.asked().len(), 1);
    // The next session has it again.
    assert_eq!(with.sh(&ask("/v1/a")), "/v1/a 200");
}

#[test]
fn a_frozen_box_asks_nothing_and_its_tokens_are_worth_nothing_afterwards() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let mut streaming = Streaming::begin(&with);
    with.stand.ok(&["box", "freeze", "a"]);
    let refused = with.h5i(&["box", "run", "a", "--", "true"]);
    assert!(refused.err.contains("try       h5i box thaw a"), "{}", refused.err);
    with.stand.ok(&["box", "thaw", "a"]);
    let ended = streaming.line();
    assert!(ended.starts_with("ended ") && ended != "ended 0", "{ended}");
    assert_eq!(streaming.line(), "401");
    // A run that joins has a token of its own.
    assert_eq!(with.sh(&ask("/v1/c")), "/v1/c 200");
    assert_eq!(streaming.rest(), "401");
    let ended = with.records(&["grant-use-end"]);
    assert_eq!(ended[0]["end"], "suspended");
}

#[test]
fn a_cut_box_asks_nothing_any_more() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let mut streaming = Streaming::begin(&with);
    with.stand.ok(&["box", "cut", "a"]);
    let ended = streaming.line();
    assert!(ended.starts_with("ended ") && ended != "ended 0", "{ended}");
    assert_eq!(streaming.line(), "401");
    // What was taken back is no longer said to be in reach.
    let status = with.stand.ok(&["box", "status", "a"]);
    assert!(status.text().contains("\nnetwork    nothing\n"), "{}", status.text());
    assert!(!status.text().contains("only grants"), "{}", status.text());
    streaming.rest();
}

#[test]
fn a_grant_is_listed_with_what_is_left_and_can_be_extended() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let idle = with.stand.ok(&["grant", "ls", "a", "--json"]).json();
    assert_eq!(idle["data"]["grants"][0]["held"], serde_json::json!([]));
    let streaming = Streaming::begin(&with);
    let held = |said: &serde_json::Value| said["data"]["held"][0].clone();
    let before = held(&with.stand.ok(&["grant", "show", "a", "api", "--json"]).json());
    assert_eq!((&before["uses"], &before["requests_left"]), (&1.into(), &8.into()));
    with.stand.ok(&["grant", "extend", "a", "api", "--by", "1h"]);
    let after = held(&with.stand.ok(&["grant", "show", "a", "api", "--json"]).json());
    let left = |held: &serde_json::Value| held["left_ms"].as_u64().unwrap();
    assert!(left(&after) > left(&before) + 3_500_000, "{before} {after}");
    let text = with.stand.ok(&["grant", "ls", "a"]);
    assert!(text.text().contains("run 1: 1 uses"), "{}", text.text());
    let status = with.stand.ok(&["box", "status", "a"]);
    assert!(status.text().contains("granted    api, run 1"), "{}", status.text());
    let wrong = with.stand.h5i(&["grant", "revoke", "a", "apo"]);
    assert!(wrong.code == 3 && wrong.err.contains("did you mean api?"), "{}", wrong.err);
    with.stand.ok(&["box", "kill", "a"]);
    streaming.rest();
    let gone = with.stand.h5i(&["grant", "extend", "a", "api", "--by", "1h"]);
    assert_ne!(gone.code, 0);
}

#[test]
fn a_policy_can_freeze_a_box_whose_grant_is_misused() {
    let with = With::a_box("localhost", "reverse", LISTED);
    with.stand.ok(&["box", "rm", "a", "--force"]);
    let freeze = "react.refused-connect=\"freeze\"";
    with.ok(&["box", "create", "a", "--profile", "asks", "--set", freeze]);
    let mut streaming = Streaming::begin(&with);
    let mut other = with.command();
    let script = format!("{}; echo went on", ask("/v2/no"));
    other.args(["box", "run", "a", "--", "sh", "-c", &script]);
    let other = other.stdout(Stdio::piped()).spawn().unwrap();
    // Its stream is cut although its programs stand still.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while with.records(&["grant-use-end"]).is_empty() {
        assert!(std::time::Instant::now() < end);
    }
    with.stand.ok(&["box", "thaw", "a"]);
    assert_ne!(streaming.line(), "ended 0");
    assert_eq!(streaming.line(), "401");
    streaming.rest();
    let said = other.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("went on"));
    assert_eq!(with.records(&["reaction"])[0]["reaction"], "freeze");
}

#[test]
fn a_grant_that_is_taken_back_leaves_the_others_and_needs_no_run_that_holds_it() {
    let second = "[profile.asks.grant.other]\nhost = \"localhost\"\nport = 1\nvia = \"reverse\"\n\
                  base_url = \"OTHER_URL\"\ntoken = \"OTHER_TOKEN\"\nmethods = \"any\"\npaths = \"any\"\n";
    let with = With::a_box("localhost", "reverse", &format!("{LISTED}{second}"));
    with.ok(&["box", "start", "a"]);
    with.stand.ok(&["grant", "revoke", "a", "other"]);
    let both = format!("echo ${{OTHER_TOKEN:-none}}; {}", ask("/v1/a"));
    assert_eq!(with.sh(&both), "none\n/v1/a 200");
    // Everything is closed for runs to come as well.
    with.stand.ok(&["box", "cut", "a"]);
    assert_eq!(with.sh("echo ${API_TOKEN:-none}"), "none");
    with.stand.ok(&["box", "stop", "a"]);
    assert_eq!(with.sh(&ask("/v1/a")), "/v1/a 200");
}
