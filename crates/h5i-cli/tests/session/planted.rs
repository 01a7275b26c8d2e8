//! Planted credentials: who opens one is on record, and what the policy says is done.

use serde_json::Value;

use crate::going::{Going, records};
use crate::stand::Stand;

const AWS: &str = "fs.canaries=[\"~/.aws/credentials\"]";
const TWO: &str = "fs.canaries=[\"~/.aws/credentials\", \"~/.netrc\"]";

fn planted(what: &str, reaction: &str) -> Stand {
    let stand = Stand::new();
    let reaction = format!("react.canary-read=\"{reaction}\"");
    stand.ok(&["box", "create", "a", "--set", what, "--set", &reaction]);
    stand
}

/// The records of a kind.
fn of_kind(stand: &Stand, kind: &str) -> Vec<Value> {
    records(stand).into_iter().filter(|record| record["kind"] == kind).collect()
}

/// Path and why of everything that was lost.
fn lost(stand: &Stand) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let told = |record: Value| (text(&record["path"]), text(&record["why"]));
    of_kind(stand, "canary-lost").into_iter().map(told).collect()
}

fn told(path: &str, why: &str) -> (String, String) {
    (path.to_owned(), why.to_owned())
}

/// Looks at names, and at a file beside it.
const LOOKS: &str = "ls -la ~/.aws; stat ~/.aws/credentials; test -r ~/.aws/credentials; \
                     echo mine > ~/.aws/config; cat ~/.aws/config; find ~ > /dev/null";

#[test]
fn who_only_looks_at_names_is_not_touched() {
    let stand = planted(AWS, "kill");
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", LOOKS]);
    assert!(said.text().ends_with("mine\n"), "{}", said.text());
    assert_eq!(said.err, "");
    assert_eq!(of_kind(&stand, "canary-read"), [Value::Null; 0]);
    let text = stand.ok(&["box", "status", "a"]).text().to_owned();
    assert!(text.contains("planted    ~/.aws/credentials: not opened\n"), "{text}");
}

#[test]
fn what_is_planted_is_the_boxs_alone_and_has_secrets_of_its_own() {
    let stand = planted(TWO, "continue");
    stand.ok(&["box", "create", "b", "--set", TWO]);
    let script = "stat -c '%a %U' ~/.aws ~/.aws/credentials ~/.netrc";
    assert_eq!(stand.sh("a", script), "700 box\n600 box\n600 box");
    let content = |name: &str| {
        let home = stand.box_dir(name).join("box/home");
        std::fs::read_to_string(home.join(".aws/credentials")).unwrap()
    };
    assert!(content("a").starts_with("[default]\naws_access_key_id = AKIA"), "{}", content("a"));
    assert_ne!(content("a"), content("b"));
    let explained = stand.ok(&["box", "explain", "a"]).text().to_owned();
    assert!(explained.contains("~/.netrc is planted: no credential"), "{explained}");
}

#[test]
fn an_open_is_on_record_in_its_run_and_the_person_is_told() {
    let stand = planted(TWO, "continue");
    stand.sh("a", "true");
    let said = stand.ok(&["box", "run", "a", "--", "cat", "/home/box/.aws/credentials"]);
    assert!(said.text().starts_with("[default]\n"), "{}", said.text());
    assert_eq!(said.err, "opened   the planted credential ~/.aws/credentials, once\n");
    let read = of_kind(&stand, "canary-read");
    assert_eq!(read.len(), 1, "{read:?}");
    let field = |name: &str| read[0][name].clone();
    assert_eq!(field("path"), "~/.aws/credentials");
    assert_eq!((field("run"), field("count"), field("lane")), (2.into(), 1.into(), "host".into()));
    // Before the end of its run, and nothing is done about it.
    let log = records(&stand);
    let place = |of: &dyn Fn(&Value) -> bool| log.iter().position(of).unwrap();
    let end = place(&|record| record["kind"] == "run-end" && record["run"] == 2);
    assert!(place(&|record| record["kind"] == "canary-read") < end, "{log:?}");
    assert!(log.iter().all(|record| record["kind"] != "reaction"), "{log:?}");
    let words = "the planted credential ~/.aws/credentials was opened ×1";
    for log in [&["box", "log", "a"][..], &["box", "log", "a", "--denied"]] {
        assert!(stand.ok(log).text().contains(words));
    }
    let data = stand.ok(&["box", "status", "a", "--json"]).json()["data"]["canaries"].clone();
    assert_eq!(data[0]["path"], "~/.aws/credentials");
    assert_eq!((&data[0]["opened"], &data[1]["opened"]), (&1.into(), &0.into()));
    let text = stand.ok(&["box", "status", "a"]).text().to_owned();
    assert!(text.contains("planted    ~/.aws/credentials: opened once\n"), "{text}");
    let out = stand.path().join("out");
    stand.ok(&["box", "export", "a", "-o", out.to_str().unwrap()]);
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    let first = "1. A planted credential was opened: **`~/.aws/credentials`**, 1 time, in run 2.\n";
    assert!(report.contains(first), "{report}");
    let json = stand.ok(&["box", "run", "a", "--json", "--", "cat", "/home/box/.netrc"]).json();
    let opened = &json["data"]["canaries"];
    assert_eq!(*opened, serde_json::json!([{ "path": "~/.netrc", "count": 1 }]));
}

#[test]
fn an_open_freezes_until_a_person_lets_it_go_on() {
    let stand = planted(AWS, "freeze");
    let script = "read -r l; cat ~/.aws/credentials > /dev/null; sleep 0.1; echo after; \
                  cat ~/.aws/credentials > /dev/null; echo again";
    let mut runs = Going::sh(&stand, script);
    runs.type_line("go");
    let why = runs.err_line();
    assert!(
        why.contains("box `a` is frozen by react.canary-read: ~/.aws/credentials was opened"),
        "{why}"
    );
    let now = stand.ok(&["box", "status", "a", "--json"]).json();
    assert_eq!(now["data"]["session"]["frozen"], true);
    stand.ok(&["box", "thaw", "a"]);
    // What was let go on is let go on.
    assert_eq!((runs.line(), runs.line()), ("after".to_owned(), "again".to_owned()));
    assert_eq!(runs.end().code, 0);
    assert_eq!(of_kind(&stand, "reaction").len(), 1);
}

#[test]
fn an_open_holds_export_back_until_a_person_thaws() {
    let stand = planted(AWS, "freeze-export");
    let mut runs = Going::sh(&stand, "cat ~/.aws/credentials; sleep 1000");
    assert!(runs.err_line().contains("is frozen by react.canary-read"));
    stand.ok(&["box", "kill", "a"]);
    assert_eq!(runs.end().code, 125);
    let out = stand.path().join("out").display().to_string();
    let export = ["box", "export", "a", "--json", "-o", &out];
    let failure = stand.h5i(&export).failure();
    assert!(failure.message.contains("held back by react.canary-read"), "{}", failure.message);
    stand.ok(&["box", "thaw", "a"]);
    stand.ok(&export);
}

#[test]
fn an_open_ends_the_session_with_every_run_in_it() {
    let stand = planted(AWS, "kill");
    let other = Going::waiting(&stand);
    let said =
        stand.h5i(&["box", "run", "a", "--", "sh", "-c", "cat ~/.aws/credentials; sleep 1000"]);
    assert_eq!(said.code, 123, "{}", said.err);
    assert!(said.err.contains("box `a` was ended by react.canary-read"), "{}", said.err);
    assert_eq!(other.end().code, 123);
    assert_eq!(stand.sh("a", "echo usable"), "usable");
}

#[test]
fn another_name_for_it_is_no_way_around() {
    for script in [
        "ln ~/.aws/credentials ~/other; cat ~/other",
        "mv ~/.aws/credentials ~/other; cat ~/other",
        "mv ~/.aws ~/elsewhere; cat ~/elsewhere/credentials",
        "ln -s ~/.aws/credentials ~/other; cat ~/other",
        "cp ~/.aws/credentials ~/other",
        "cd ~/.aws && exec 3< credentials && cat /dev/fd/3",
    ] {
        let stand = planted(AWS, "continue");
        let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", script]);
        assert!(said.err.contains("opened   the planted credential"), "{script}: {}", said.err);
    }
}

#[test]
fn five_thousand_opens_are_a_few_records() {
    let stand = planted(AWS, "continue");
    // The kernel keeps 16,384 events for a listener, and an open is two: none is lost whenever it reads.
    let script = "i=0; while [ $i -lt 5000 ]; do : < ~/.aws/credentials; i=$((i+1)); done";
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", script]);
    assert_eq!(said.err, "opened   the planted credential ~/.aws/credentials, 5000 times\n");
    let read = of_kind(&stand, "canary-read");
    let counts: Vec<u64> = read.iter().map(|record| record["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, [1, 4999]);
}

#[test]
fn what_the_box_undoes_is_told_once_and_what_is_missing_is_planted_again() {
    let stand = planted(TWO, "continue");
    let netrc = || std::fs::read(stand.box_dir("a").join("box/home/.netrc")).unwrap();
    let before = netrc();
    stand.sh("a", "echo mine > ~/.aws/credentials; rm ~/.netrc; cat ~/.aws/credentials");
    let both = vec![told("~/.aws/credentials", "changed"), told("~/.netrc", "removed")];
    assert_eq!(lost(&stand), both);
    // Opened to be written to; after that it is the box's own.
    let read = of_kind(&stand, "canary-read");
    assert_eq!(read.iter().map(|r| r["count"].as_u64().unwrap()).sum::<u64>(), 1, "{read:?}");
    let text = stand.ok(&["box", "status", "a"]).text().to_owned();
    assert!(
        text.contains("~/.aws/credentials: opened once; it was written to by the box"),
        "{text}"
    );
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", "cat ~/.aws/credentials ~/.netrc"]);
    assert!(said.text().starts_with("mine\ndefault\n"), "{}", said.text());
    assert_eq!(said.err, "opened   the planted credential ~/.netrc, once\n");
    assert_ne!(netrc(), before, "a secret of its own");
    assert_eq!(lost(&stand), both, "told once");
    // Without opening it, and by a link, a directory, a pipe.
    for (script, why) in [
        ("rm ~/.netrc; ln -s /etc/passwd ~/.netrc", "replaced"),
        ("rm ~/.netrc; mkdir ~/.netrc", "replaced"),
        ("rmdir ~/.netrc; mkfifo ~/.netrc", "replaced"),
    ] {
        stand.sh("a", script);
        stand.sh("a", "true");
        assert_eq!(lost(&stand).last(), Some(&told("~/.netrc", why)), "{script}");
    }
    let out = stand.path().join("out");
    stand.ok(&["box", "export", "a", "-o", out.to_str().unwrap()]);
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(
        report.contains(
            "The planted credential **`~/.netrc`** has something of the box in its place"
        ),
        "{report}"
    );
}

#[test]
fn a_link_in_the_way_is_not_followed_out_of_the_home() {
    let stand = planted(AWS, "continue");
    let outside = stand.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    stand.sh("a", &format!("rm -r ~/.aws; ln -s {} ~/.aws", outside.display()));
    stand.sh("a", "true");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(lost(&stand).last(), Some(&told("~/.aws/credentials", "replaced")));
    // Out of the way again.
    stand.sh("a", "rm ~/.aws");
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", "cat ~/.aws/credentials"]);
    assert!(said.err.contains("opened   the planted credential"), "{}", said.err);
}

#[test]
fn in_a_session_that_is_kept_each_run_is_told_of_its_own() {
    let stand = planted(TWO, "continue");
    stand.ok(&["box", "start", "a"]);
    let run = |script: &str| stand.ok(&["box", "run", "a", "--", "sh", "-c", script]).err;
    assert_eq!(run("true"), "");
    assert_eq!(
        run("cat ~/.netrc ~/.netrc > /dev/null"),
        "opened   the planted credential ~/.netrc, 2 times\n"
    );
    assert_eq!(run("ls ~/.netrc"), "");
    assert_eq!(run("cat ~/.netrc > /dev/null"), "opened   the planted credential ~/.netrc, once\n");
    // The host reads the box while it lives, and trips nothing.
    let out = stand.path().join("out").display().to_string();
    stand.ok(&["box", "export", "a", "-o", &out]);
    stand.ok(&["box", "status", "a"]);
    stand.ok(&["box", "stop", "a"]);
    let read = of_kind(&stand, "canary-read");
    let told = |record: &Value| (record["run"].as_u64(), record["count"].as_u64());
    let all: Vec<_> = read.iter().map(told).collect();
    assert_eq!(all, [(Some(2), Some(1)), (Some(2), Some(1)), (Some(4), Some(1))]);
}

#[test]
fn among_several_runs_an_open_is_of_none() {
    let stand = planted(AWS, "continue");
    let other = Going::waiting(&stand);
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", "cat ~/.aws/credentials"]);
    assert_eq!(said.err, "");
    assert_eq!(other.end().code, 7);
    let read = of_kind(&stand, "canary-read");
    assert_eq!((read.len(), &read[0]["run"]), (1, &Value::Null));
}

#[test]
fn what_is_planted_does_not_leave_by_a_patch() {
    let stand = planted(TWO, "continue");
    stand.sh("a", "sed -n 's/.*password //p' ~/.netrc > key; echo fine > other");
    let out = stand.path().join("out").display().to_string();
    let export = ["box", "export", "a", "--json", "-o", &out];
    let failure = stand.h5i(&export).failure();
    let (hint, refused) = (failure.hint.unwrap(), failure.details["refused"].to_string());
    assert!(hint.contains("--allow-secrets"), "{hint}");
    assert!(refused.contains("line 1 holds what looks like a planted credential"), "{refused}");
    let secret = stand.sh("a", "cat key");
    assert!(secret.len() >= 40 && !refused.contains(&secret), "{refused}");
    // Also when another one stands there by now.
    stand.sh("a", "rm ~/.netrc");
    stand.sh("a", "true");
    assert_eq!(stand.h5i(&export).failure().kind, "refused");
    stand.ok(&["box", "export", "a", "-o", &out, "--allow-secrets"]);
    let report = std::fs::read_to_string(stand.path().join("out/report.md")).unwrap();
    assert!(
        report.contains("**`key`**, line 1, holds what looks like a planted credential"),
        "{report}"
    );
    assert!(!report.contains(&secret));
    stand.sh("a", "echo fine > key");
    stand.ok(&["box", "export", "a", "-o", &out, "--force"]);
}

#[test]
fn what_can_not_be_planted_is_refused_by_name() {
    let stand = Stand::new();
    std::fs::write(stand.home().join(".gitconfig"), "[user]\n\tname = Ann\n").unwrap();
    let refused = |sets: &[&str], message: &str, hint: &str| {
        let words = sets.iter().flat_map(|set| ["--set", set]);
        let all: Vec<&str> = ["box", "create", "a", "--json"].into_iter().chain(words).collect();
        let said = stand.h5i(&all);
        let failure = said.failure();
        assert_eq!((said.code, failure.kind.as_str()), (4, "refused"), "{sets:?}: {}", said.err);
        assert!(failure.message.contains(message), "{}", failure.message);
        assert!(failure.hint.as_deref().unwrap().contains(hint), "{:?}", failure.hint);
        assert_eq!(stand.box_directories(), [""; 0]);
    };
    refused(&["react.canary-read=\"kill\""], "has nothing to wait for", "name one in fs.canaries");
    for path in ["~/.gitconfig", "~/.gitconfig/x", "~/.config"] {
        let canaries = format!("fs.canaries=[\"{path}\"]");
        let message = format!("fs.canaries: {path} can't be planted, because seed = \"git\" may");
        refused(&["seed=[\"git\"]", &canaries], &message, "out of fs.canaries");
    }
    let workspace = ["box", "create", "a", "--json", "--tier", "workspace", "--set", AWS];
    let failure = stand.h5i(&workspace).failure();
    assert!(failure.message.contains("can't be had at tier workspace"), "{}", failure.message);
    // Beside it there is room.
    let sets = ["--set", "seed=[\"git\"]", "--set", "fs.canaries=[\"~/.git-credentials\"]"];
    stand.ok(&[&["box", "create", "a"][..], &sets].concat());
}
