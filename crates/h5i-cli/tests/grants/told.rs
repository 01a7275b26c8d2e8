//! What a person is told of a box that has grants.

use crate::with_grants::With;

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
