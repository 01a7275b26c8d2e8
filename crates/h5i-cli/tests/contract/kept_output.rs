//! Output of runs is kept where the policy says so: bounded, redacted, on record and in the bundle.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::stand::Stand;

const KEPT: [&str; 2] = ["--set", "record_output=on"];

/// Names and contents of what is kept of a box.
fn kept(stand: &Stand) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(stand.box_dir("a").join("host/payloads")) else {
        return Vec::new();
    };
    let mut kept: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    kept.sort();
    kept
}

#[test]
fn output_is_kept_where_the_policy_says_so_and_nowhere_else() {
    let stand = Stand::new();
    stand.ok(&[&["box", "create", "a"][..], &KEPT].concat());
    let secret = format!("ghp_{}", "A1b2".repeat(9));
    let script =
        format!("printf 'token ghp_'; sleep 0.01; printf '{}\\n'; echo err >&2", &secret[4..]);
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", &script]);
    assert_eq!(said.text(), format!("token {secret}\n"), "the receiver gets what was written");
    let redacted = "token [redacted: code host token]\n".to_owned();
    let expected = [
        ("output-1-stderr.txt".to_owned(), "err\n".to_owned()),
        ("output-1-stdout.txt".to_owned(), redacted),
    ];
    assert_eq!(kept(&stand), expected);
    // Collected, thrown away, and stopped.
    stand.ok(&["box", "run", "a", "--json", "--", "echo", "collected"]);
    let mut quiet = stand.command();
    quiet.args(["box", "run", "a", "--", "echo", "to nobody"]).stdout(Stdio::null());
    assert!(quiet.status().unwrap().success());
    stand.h5i(&["box", "run", "a", "--timeout", "4s", "--", "sh", "-c", "echo half; sleep 100"]);
    let all = kept(&stand);
    let of =
        |name: &str| all.iter().find(|(found, _)| found == name).map(|(_, text)| text.as_str());
    assert_eq!(of("output-2-stdout.txt"), Some("collected\n"));
    assert_eq!(of("output-3-stdout.txt"), Some("to nobody\n"));
    assert_eq!(of("output-4-stdout.txt"), Some("half\n"));
    let log = stand.ok(&["box", "log", "a"]);
    assert!(log.text().contains("run 1  stdout kept: 47 B, sha256:"), "{}", log.text());
    stand.ok(&["box", "export", "a", "-o", "out"]);
    stand.ok(&["receipt", "verify", "out"]);
    let report = fs::read_to_string(stand.repo().join("out/report.md")).unwrap();
    assert!(report.contains("› stdout kept: 47 B"), "{report}");
    let place = stand.repo().join("out/output-1-stdout.txt");
    fs::write(&place, "token xxxxxxxxxx code host token]\n").unwrap();
    let said = stand.h5i(&["receipt", "verify", "out"]);
    assert!(said.code == 1 && said.err.contains("`output-1-stdout.txt` was changed"), "{said:?}");
    // The twin: without the word nothing is kept.
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.ok(&["box", "run", "a", "--", "echo", "x"]);
    assert_eq!(kept(&stand), []);
    assert!(!stand.ok(&["box", "log", "a"]).text().contains("kept"));
}

#[test]
fn the_output_of_a_run_that_joins_is_kept_as_well() {
    let stand = Stand::new();
    stand.ok(&[&["box", "create", "a"][..], &KEPT].concat());
    let mut first = stand.command();
    first.args(["box", "run", "a", "--", "sh", "-c", "echo first; read go"]);
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    stand.ok(&["box", "run", "a", "--", "echo", "joined"]);
    drop(first.stdin.take());
    first.wait().unwrap();
    let text = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let expected =
        [text("output-1-stdout.txt", "first\n"), text("output-2-stdout.txt", "joined\n")];
    assert_eq!(kept(&stand), expected);
    let log = stand.ok(&["box", "log", "a"]);
    assert!(log.text().contains("run 2  stdout kept: 7 B"), "{}", log.text());
}
