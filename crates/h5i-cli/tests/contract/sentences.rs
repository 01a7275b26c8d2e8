//! What people read, as it was reviewed. What differs between two runs or two hosts is masked.

use std::fmt::Write as _;

use crate::stand::{Said, Stand, with_json};

/// Replaces every run of characters that `part` holds of and that is as `whole` wants it.
fn mask(text: &str, part: fn(char) -> bool, whole: fn(&str) -> bool, by: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(from) = rest.find(part) {
        let length = rest[from..].find(|c| !part(c)).unwrap_or(rest.len() - from);
        let (word, after) = rest[from..].split_at(length);
        masked.push_str(&rest[..from]);
        masked.push_str(if whole(word) { by } else { word });
        rest = after;
    }
    masked + rest
}

fn masked(stand: &Stand, text: &str) -> String {
    let text = text.replace(stand.path().to_str().unwrap(), "STAND");
    let text = mask(
        &text,
        |c| c.is_ascii_digit() || "-:TZ.".contains(c),
        |w| w.len() >= 20 && w.ends_with('Z'),
        "TIME",
    );
    let hex = |c: char| c.is_ascii_hexdigit();
    let text = mask(&text, hex, |w| w.len() == 64, "DIGEST");
    let text = mask(&text, hex, |w| w.len() == 40, "OBJECT");
    let text = mask(&text, hex, |w| w.len() == 16, "ID");
    mask(&text, hex, |w| w.len() == 7 && w.contains(|c: char| c.is_ascii_digit()), "SHORT")
}

fn told(stand: &Stand, words: &[&str], text: &mut String) -> Said {
    let said = stand.h5i(words);
    writeln!(text, "$ h5i {}", words.join(" ")).unwrap();
    text.push_str(&masked(stand, &said.err));
    text.push_str(&masked(stand, said.text()));
    writeln!(text, "exit {}\n", said.code).unwrap();
    said
}

#[test]
fn errors_read_as_they_were_reviewed() {
    let stand = Stand::new();
    let mut text = String::new();
    stand.ok(&["box", "create", "fix-auth"]);
    stand.user_policy("version = 1\n[profile.web.net]\nalow = [\"api.example.com\"]\n");
    told(&stand, &["box", "create", "b", "--profile", "web"], &mut text);
    stand.user_policy("version = 1\n");
    for words in [
        &["box", "create", "fix-auth"][..],
        &["box", "create", "b", "--base", "mian"],
        &["box", "create", "b", "--profile", "reviwe"],
        &["box", "create", "b", "--allow", "api.example.com"],
        &["box", "create", "b", "--allow", "*.com"],
        &["box", "create", "b", "--set", "react.canary-read=\"freeze\""],
        &["box", "create", "b", "--set", "limits.wal=\"8m\""],
        &["box", "create", "b", "--tier", "container"],
        &["box", "status", "fix-auht"],
        &["box", "run", "fix-auth", "--", "nonesuch"],
        &["box", "run", "fix-auth", "--", "/work"],
        &["box", "run", "fix-auth", "--timeout", "5", "--", "true"],
        &["box", "probe", "--tier", "microvm"],
        &["-C", "/", "box", "create", "b"],
    ] {
        told(&stand, words, &mut text);
        if words[1] != "run" {
            let json = with_json(words);
            told(&stand, &json, &mut text);
        }
    }
    insta::assert_snapshot!("errors", text);
}

#[test]
fn status_reads_as_it_was_reviewed() {
    let stand = Stand::new();
    let mut text = String::new();
    stand.ok(&["box", "create", "a", "--purpose", "mend the login"]);
    stand.sh("a", "echo new > new; unshare --user true; true");
    let said = told(&stand, &["box", "status", "a"], &mut text);
    assert!(said.text().contains("mounts granted"));
    // Age, number of system paths and Landlock's version are the host's.
    let lines = text.lines().map(|line| {
        let line = mask(line, |c| c.is_ascii_digit(), |_| true, "N");
        line.trim_end().to_owned()
    });
    insta::assert_snapshot!("status", lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn explain_reads_as_it_was_reviewed() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let said = stand.ok(&["box", "explain", "a"]);
    let (answers, steps) = said.text().split_once("\n\n").unwrap();
    let text = mask(answers, |c| c.is_ascii_digit(), |_| true, "N");
    insta::assert_snapshot!("explain", text);
    // The steps differ by host and caller; their order does not.
    let order = [
        "enter new namespaces",
        "map id",
        "detach the mount tree",
        "pivot to",
        "enter the network namespace",
        "drop all capabilities",
        "restrict by Landlock",
        "install the system-call filter",
    ];
    let places: Vec<_> = order.iter().map(|step| steps.find(step)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{steps}");
}

#[test]
fn probe_reads_as_it_was_reviewed() {
    let stand = Stand::new();
    let data = stand.ok(&["box", "probe", "--json"]).json()["data"].clone();
    let mut text = String::new();
    for row in data["mechanisms"].as_array().unwrap() {
        writeln!(text, "{row}").unwrap();
    }
    insta::assert_snapshot!("probe", text);
}
