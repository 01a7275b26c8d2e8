//! A box that is alive is exported as it stands at one moment, and what it made is applied.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::going::{Going, Started, records};
use crate::support::git;

/// Two files that a program keeps equal, as far as anybody can see who looks when it stands still.
const RESTLESS: &str = "n=0; while :; do n=$((n+1)); echo $n >> /work/one; echo $n >> /work/two; \
                        [ $n != 20 ] || echo here; done";

#[test]
fn a_live_box_stands_still_while_it_is_exported_and_goes_on() {
    let stand = Started::new();
    let mut going = Going::sh(&stand, RESTLESS);
    assert_eq!(going.line(), "here");
    let number = |name: &str| -> u64 {
        let patch = std::fs::read_to_string(stand.repo().join("out/patch.diff")).unwrap();
        let file = patch.split("diff --git ").find(|part| part.starts_with(&format!("a/{name}")));
        let mut lines = file.unwrap().lines().rev();
        lines.find_map(|line| line.strip_prefix('+')).unwrap().parse().unwrap()
    };
    let mut before = 0;
    for _ in 0..5 {
        stand.ok(&["box", "export", "a", "-o", "out", "--force"]);
        let (one, two) = (number("one"), number("two"));
        // The first is written first, and nothing moved between the two reads.
        assert!(one == two || one == two + 1, "{one} {two}");
        assert!(one > before, "it went on: {one} after {before}");
        before = one;
        stand.ok(&["receipt", "verify", "out"]);
        // On a busy machine it may not have come to its turn since.
        let grown = format!(
            "i=0; while [ $(wc -l < one) -le {one} ] && [ $i -lt 1000 ]; \
             do i=$((i + 1)); sleep 0.02; done"
        );
        stand.sh("a", &grown);
    }
    let alive = stand.ok(&["box", "status", "a", "--json"]).json();
    assert_eq!(alive["data"]["session"]["frozen"], false);
    let exports: Vec<Value> =
        records(&stand).into_iter().filter(|record| record["kind"] == "export").collect();
    assert_eq!(exports.len(), 5);
    // A run goes on: what it made may be half done.
    let words = ["box", "apply", "a", "--bundle", "out", "--yes"];
    let said = stand.h5i(&words);
    assert!(said.code == 4 && said.err.contains("--incomplete"), "{said:?}");
    stand.ground.git(&["config", "user.name", "Ann"]);
    stand.ground.git(&["config", "user.email", "ann@example.com"]);
    stand.ok(&[&words[..], &["--incomplete"]].concat());
    let one = git(&stand.repo(), &["show", "h5i/a:one"]);
    assert_eq!(one.lines().last(), Some(before.to_string().as_str()));
    let kinds: Vec<String> = records(&stand).iter().map(|r| r["kind"].to_string()).collect();
    assert!(kinds.contains(&"\"apply\"".to_owned()), "{kinds:?}");
    stand.ok(&["box", "kill", "a"]);
    drop(going);
}

#[test]
fn what_a_person_froze_stays_frozen_after_an_export() {
    let stand = Started::new();
    let mut going = Going::sh(&stand, "echo x > made; echo here; exec sleep 1000");
    assert_eq!(going.line(), "here");
    stand.ok(&["box", "freeze", "a"]);
    stand.ok(&["box", "export", "a", "-o", "out"]);
    let alive = stand.ok(&["box", "status", "a", "--json"]).json();
    assert_eq!(alive["data"]["session"]["frozen"], true);
    stand.ok(&["box", "thaw", "a"]);
    stand.ok(&["box", "kill", "a"]);
    drop(going);
}

#[test]
fn an_export_that_fails_or_dies_lets_the_box_go_on() {
    let stand = Started::new();
    stand.sh("a", "ln -s /etc/passwd out-of-here");
    assert_eq!(stand.h5i(&["box", "export", "a", "-o", "out"]).code, 4);
    // That there is nothing to put on record the holder hears by the end of the conversation.
    let patience = Instant::now() + Duration::from_secs(20);
    let frozen = |stand: &Started| {
        stand.ok(&["box", "status", "a", "--json"]).json()["data"]["session"]["frozen"] == true
    };
    while frozen(&stand) {
        assert!(Instant::now() < patience, "it stands still");
    }
    assert_eq!(stand.sh("a", "rm out-of-here; echo goes on"), "goes on");
}
