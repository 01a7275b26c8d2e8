//! The key is nowhere in the box, nor in what is kept of it.

use std::fs;
use std::path::Path;

use crate::service::CANARY;
use crate::with_grants::{With, ask};

const LISTED: &str = "paths = [\"/v1/*\", \"/echo\"]\nmethods = [\"GET\"]\n";

/// Files below a directory that hold the text, in any of the forms that are searched for.
pub(crate) fn holding(directory: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            holding(&path, found);
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            if text.contains(&CANARY[3..]) || text.contains("Y2FuYXJ5LTdoSjJrUTl4") {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn no_file_of_the_box_its_log_or_its_bundle_has_the_key() {
    let with = With::a_box("localhost", "reverse", LISTED);
    // Everything that a program of the box can read of itself and of others.
    let hunt = format!(
        "{}; {}; env > env; for p in /proc/[0-9]*; do cat $p/environ $p/cmdline; done > procs 2>/dev/null; \
         a={}; b={}; grep -rlaF \"$a$b\" /run /etc /home /tmp /dev/shm /work /proc/self/environ 2>/dev/null | head; echo done",
        ask("/v1/a"),
        ask("/echo"),
        &CANARY[3..12],
        &CANARY[12..]
    );
    let said = with.sh(&hunt);
    assert!(said.ends_with("done") && !said.contains(&CANARY[3..]), "{said}");
    with.stand.ok(&["box", "export", "a", "-o", "out"]);
    let mut found = Vec::new();
    holding(&with.stand.box_dir("a").join("box"), &mut found);
    assert_eq!(found, Vec::<String>::new());
    // The service saw it, or the search would prove nothing.
    assert!(with.service.asked()[0].header("authorization").unwrap().contains(CANARY));
}

#[test]
fn the_record_of_a_box_names_the_source_and_not_the_key() {
    let with = With::a_box("localhost", "reverse", LISTED);
    with.sh(&ask("/v1/a"));
    with.stand.ok(&["box", "export", "a", "-o", "out"]);
    let mut found = Vec::new();
    holding(&with.stand.state(), &mut found);
    holding(&with.stand.repo(), &mut found);
    assert_eq!(found, Vec::<String>::new());
    let shown = with.stand.ok(&["grant", "show", "a", "api"]);
    assert!(shown.text().contains("env:API_KEY"), "{}", shown.text());
}

#[test]
fn what_a_program_says_of_the_key_is_covered_in_the_record() {
    let with = With::a_box("localhost", "reverse", LISTED);
    // A key that came into the box by another way, once the host has looked it up.
    let script =
        format!("{} > /dev/null; /bin/echo {CANARY}; h5i note \"it is {CANARY}\"", ask("/v1/a"));
    let parts = script.replace(CANARY, "${a}${b}");
    let (head, tail) = CANARY.split_at(12);
    with.sh(&format!("a={head}; b={tail}; {parts}"));
    let log = with.stand.ok(&["box", "log", "a", "--json"]);
    assert!(!log.text().contains(CANARY), "{}", log.text());
    let notes = with.records(&["note"]);
    assert!(notes[0]["text"].as_str().unwrap().starts_with("it is ****"), "{notes:?}");
    let echoed = with.records(&["exec-attempt"]);
    let echoed = echoed.iter().filter(|record| record["argv"][0] == "/bin/echo");
    let said: Vec<_> = echoed.map(|record| record["argv"][1].as_str().unwrap()).collect();
    assert_eq!(said, ["*".repeat(CANARY.len())]);
    with.stand.ok(&["box", "export", "a", "-o", "out"]);
    with.stand.ok(&["receipt", "verify", "out"]);
}

#[test]
fn what_is_kept_of_an_output_does_not_have_the_key() {
    let with = With::a_box("localhost", "reverse", LISTED);
    with.stand.ok(&["box", "rm", "a", "--force"]);
    let keep = ["--set", "record_output=\"on\""];
    with.ok(&[&["box", "create", "a", "--profile", "asks"][..], &keep].concat());
    let (head, tail) = CANARY.split_at(12);
    with.sh(&format!("{} > /dev/null; printf {head}; sleep 0; echo {tail} after", ask("/v1/a")));
    let payloads = with.stand.box_dir("a").join("host/payloads");
    let kept = fs::read_dir(payloads).unwrap().map(|entry| entry.unwrap().path());
    let text: Vec<_> = kept.map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(text, [format!("{} after\n", "*".repeat(CANARY.len()))]);
    with.stand.ok(&["box", "export", "a", "-o", "out"]);
    with.stand.ok(&["receipt", "verify", "out"]);
}
