//! What a person is told of a box that has grants.

use crate::with_grants::{With, ask};

const LISTED: &str = "methods = [\"GET\"]\npaths = [\"/v1/*\"]\n";

#[test]
fn a_box_with_grants_and_no_rule_reaches_only_its_grants() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let made = with.ok(&["box", "create", "b", "--profile", "asks"]);
    assert!(made.err.contains(" · network: only grants api · "), "{}", made.err);
    let status = with.ok(&["box", "status", "b"]);
    assert!(status.text().contains(" · network: only grants api · "), "{}", status.text());
    assert!(status.text().contains("\nnetwork    only grants api\n"), "{}", status.text());
    let explained = with.ok(&["box", "explain", "b"]);
    assert!(explained.text().contains("It may reach only grants api."), "{}", explained.text());
    with.sh_in("b", "echo new > new");
    with.ok(&["box", "export", "b", "-o", "out"]);
    let report = std::fs::read_to_string(with.stand.repo().join("out/report.md")).unwrap();
    let reach = "The box could reach the services of its grants, and nothing else.";
    assert!(report.contains(reach), "{report}");
    // With a rule there is more.
    with.ok(&["box", "create", "c", "--profile", "asks", "--allow", "a.example"]);
    let status = with.ok(&["box", "status", "c"]);
    let line = "\nnetwork    a.example:443 and by grants api\n";
    assert!(status.text().contains(line), "{}", status.text());
    // And without grants there is none.
    let made = with.ok(&["box", "create", "d", "--tier", "supervised"]);
    assert!(made.err.contains(" · network none · "), "{}", made.err);
    let status = with.ok(&["box", "status", "d"]);
    assert!(status.text().contains("\nnetwork    nothing\n"), "{}", status.text());
}

#[test]
fn variables_that_are_passed_on_are_named_where_credentials_are_denied() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let answer = |name: &str| {
        let explained = with.ok(&["box", "explain", name]);
        let text = explained.text().to_owned();
        text.lines().find(|line| line.contains("No credential of the host")).unwrap().to_owned()
    };
    assert!(answer("a").contains("No credential of the host; what grants need stays there. Of"));
    let pass = "env.pass=[\"NPM_TOKEN\", \"LANG\"]";
    with.ok(&["box", "create", "b", "--profile", "asks", "--set", pass]);
    let told = "stays there, unless env.pass gives it one: NPM_TOKEN. Of";
    assert!(answer("b").contains(told), "{}", answer("b"));
}

#[test]
fn what_is_to_be_done_names_the_box() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let refused = with.h5i(&["grant", "show", "a", "something-else"]);
    assert!(refused.err.contains("try       h5i grant ls a\n"), "{}", refused.err);
    with.ok(&["box", "start", "a"]);
    let refused = with.h5i(&["grant", "extend", "a", "api", "--by", "1h"]);
    assert!(refused.err.contains("try       h5i grant ls a\n"), "{}", refused.err);
    with.ok(&["box", "stop", "a"]);
}

#[test]
fn status_counts_what_grants_refused_as_the_log_does() {
    let with = With::a_box("localhost", "reverse", LISTED);
    let text = |words: &[&str]| String::from_utf8(with.ok(words).out).unwrap();
    let refused = |status: &str| {
        let line = status.lines().find(|line| line.starts_with("refused ")).unwrap();
        line.to_owned()
    };
    with.sh(&ask("/v1/a"));
    assert_eq!(refused(&text(&["box", "status", "a"])), "refused    nothing");
    with.sh(&format!("{}; {}; {}", ask("/v2/a"), ask("/v2/a"), ask("/v1/a -X DELETE")));
    let line = refused(&text(&["box", "status", "a"]));
    assert!(line.contains("grant api to GET /v2/a ×2: the path is not listed"), "{line}");
    assert!(line.contains("grant api to DELETE /v1/a ×1: the method is not listed"), "{line}");
    let data = with.ok(&["box", "status", "a", "--json"]).json()["data"].clone();
    let told = data["refused_grants"].as_array().unwrap();
    let count: u64 = told.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    let logged: u64 =
        with.records(&["grant-refused"]).iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!((count, told.len()), (logged, 2), "{data}");
}
