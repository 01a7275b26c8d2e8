//! What a violation does beyond its record.

use std::time::{Duration, Instant};

use crate::going::{Going, records};
use crate::stand::Stand;

/// One refused call, then a word.
const VIOLATES: &str = "unshare --user true 2> /dev/null; echo after";

fn with_reaction(reaction: &str) -> Stand {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a", "--set", &format!("react.{reaction}")]);
    stand
}

fn session(stand: &Stand) -> serde_json::Value {
    stand.ok(&["box", "status", "a", "--json"]).json()["data"]["session"].clone()
}

/// Waits until every process of box `a` stands still: one that violated is stopped when it has its
/// answer, one whose child was stopped between vfork and exec waits for it (`D`), and one that has
/// just ended waits for its parent (`Z`).
fn await_stopped(stand: &Stand) {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let now = session(stand);
        let processes = now["processes"].as_array().unwrap();
        let still = |process: &serde_json::Value| {
            matches!(process["state"].as_str(), Some("T" | "D" | "Z"))
        };
        if !processes.is_empty() && processes.iter().all(still) {
            return;
        }
        assert!(Instant::now() < patience, "{now}");
    }
}

/// Ends the session of box `a` whatever becomes of the test.
struct Ends<'a>(&'a Stand);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.h5i(&["box", "kill", "a"]);
    }
}

#[test]
fn freezing_stops_everything_until_a_person_lets_it_go_on() {
    let stand = with_reaction("refused-call=\"freeze\"");
    let mut other = Going::waiting(&stand);
    let mut runs = Going::sh(&stand, VIOLATES);
    // Both are told: who holds the session, and whose run it was.
    for told in [other.err_line(), runs.err_line()] {
        assert!(told.contains("box `a` is frozen by react.refused-call: unshare by "), "{told}");
        assert!(told.contains("h5i box thaw a"), "{told}");
    }
    let now = session(&stand);
    assert_eq!(now["frozen"], true);
    assert!(now["frozen_by"].as_str().unwrap().contains("unshare"), "{now}");
    await_stopped(&stand);
    let text = stand.ok(&["box", "status", "a"]).text().to_owned();
    assert!(text.contains("frozen     by react.refused-call"), "{text}");
    assert!(text.contains("lately     "), "{text}");
    assert!(stand.ok(&["box", "ls"]).text().contains("h5i box thaw a"));
    let said = stand.h5i(&["box", "run", "a", "--json", "--", "true"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (125, "busy"));
    assert!(said.failure().message.contains("react.refused-call"));
    stand.ok(&["box", "thaw", "a"]);
    assert_eq!(runs.line(), "after");
    assert_eq!(runs.end().code, 0);
    // What was let go on is let go on.
    assert_eq!(stand.sh("a", VIOLATES), "after");
    other.type_line("still there");
    assert_eq!(other.line(), "still there");
    assert_eq!(other.end().code, 7);
    let kinds: Vec<String> = records(&stand).iter().map(|r| r["kind"].to_string()).collect();
    let place = |kind: &str| kinds.iter().position(|k| *k == format!("\"{kind}\"")).unwrap();
    assert!(place("refused-call") < place("reaction"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "\"reaction\"").count(), 1, "{kinds:?}");
}

#[test]
fn without_a_reaction_a_violation_is_recorded_and_nothing_else() {
    let stand = with_reaction("refused-call=\"continue\"");
    assert_eq!(stand.sh("a", VIOLATES), "after");
    let log = records(&stand);
    assert!(log.iter().any(|r| r["kind"] == "refused-call"));
    assert!(log.iter().all(|r| r["kind"] != "reaction"));
}

#[test]
fn export_that_is_held_back_stays_so_until_a_person_thaws() {
    let stand = with_reaction("refused-call=\"freeze-export\"");
    let mut runs = Going::sh(&stand, &format!("echo new > new; {VIOLATES}"));
    assert!(runs.err_line().contains("is frozen by"));
    // Whatever becomes of the session.
    stand.ok(&["box", "kill", "a"]);
    assert_eq!(runs.end().code, 125);
    let out = stand.path().join("out").display().to_string();
    let export = ["box", "export", "a", "--json", "-o", &out];
    let said = stand.h5i(&export);
    assert_eq!((said.code, said.failure().kind.as_str()), (4, "refused"));
    let failure = said.failure();
    assert!(failure.message.contains("held back by react.refused-call"), "{}", failure.message);
    assert!(failure.hint.unwrap().contains("h5i box thaw a"));
    let text = stand.ok(&["box", "status", "a"]).text().to_owned();
    assert!(text.contains("export     held back by react.refused-call"), "{text}");
    stand.ok(&["box", "thaw", "a"]);
    stand.ok(&export);
    let log = records(&stand);
    assert!(log.iter().any(|r| r["kind"] == "reaction" && r["reaction"] == "freeze-export"));
    assert!(log.iter().any(|r| r["text"] == "thawed: export may pass"), "{log:?}");
    // There is nothing to thaw any more.
    assert_eq!(stand.h5i(&["box", "thaw", "a", "--json"]).failure().kind, "not-found");
}

#[test]
fn killing_ends_the_session_with_every_run_in_it() {
    let stand = with_reaction("refused-call=\"kill\"");
    stand.ok(&["box", "start", "a"]);
    let _ends = Ends(&stand);
    let other = Going::waiting(&stand);
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", VIOLATES]);
    assert_eq!((said.code, said.text()), (123, ""), "{}", said.err);
    assert!(
        said.err.contains("box `a` was ended by react.refused-call: unshare by "),
        "{}",
        said.err
    );
    let other = other.end();
    assert_eq!(other.code, 123, "{}", other.err);
    let log = records(&stand);
    let ends: Vec<_> = log.iter().filter(|r| r["kind"] == "run-end").collect();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end["limit"] == "react.refused-call"), "{ends:?}");
    // The box is as good as before.
    assert_eq!(stand.sh("a", "echo usable"), "usable");
}

#[test]
fn the_first_run_that_violates_ends_with_123_too() {
    let stand = with_reaction("refused-call=\"kill\"");
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", VIOLATES]);
    assert_eq!((said.code, said.text()), (123, ""), "{}", said.err);
    assert!(said.err.contains("react.refused-call = \"kill\""), "{}", said.err);
}

#[test]
fn a_spent_budget_can_end_the_whole_session() {
    let stand = Stand::new();
    let settings = ["--set", "limits.memory=\"64MiB\"", "--set", "react.budget=\"kill\""];
    stand.ok(&[&["box", "create", "a"][..], &settings].concat());
    let other = Going::waiting(&stand);
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", "head -c 3G /dev/zero | tail"]);
    assert_eq!(said.code, 123, "{}", said.err);
    assert!(said.err.contains("stopped by limits.memory"), "{}", said.err);
    let other = other.end();
    assert_eq!(other.code, 123, "{}", other.err);
    assert!(other.err.contains("react.budget"), "{}", other.err);
}

#[test]
fn a_refused_connection_freezes_where_the_host_watches_the_network() {
    let stand = Stand::new();
    let freezes = ["--set", "react.refused-connect=\"freeze\""];
    // At the process tier nobody would see one.
    let said = stand.h5i(&[&["box", "create", "a", "--json"][..], &freezes].concat());
    assert_eq!((said.code, said.failure().kind.as_str()), (4, "refused"));
    assert!(said.failure().hint.unwrap().contains("--tier supervised"));
    stand.ok(&[&["box", "create", "a", "--tier", "supervised"][..], &freezes].concat());
    let line = "bash -c 'exec 3<> /dev/tcp/192.0.2.77/80' 2> /dev/null; cat; echo after";
    let mut runs = Going::sh(&stand, line);
    let told = runs.err_line();
    assert!(told.contains("react.refused-connect: tcp to 192.0.2.77 port 80"), "{told}");
    await_stopped(&stand);
    stand.ok(&["box", "thaw", "a"]);
    assert_eq!(runs.rest(), "after\n");
    assert_eq!(runs.end().code, 0);
}
