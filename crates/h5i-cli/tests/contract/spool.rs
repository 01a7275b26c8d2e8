//! H1, H2, H4: what the box says of itself is on record as its claim, and compared with what was seen.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::stand::{H5I, Stand};

/// The records of these kinds.
fn records(stand: &Stand, kinds: &[&str]) -> Vec<Value> {
    let log = stand.ok(&["box", "log", "a", "--json"]);
    let all = log.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|record| kinds.contains(&record["kind"].as_str().unwrap())).collect()
}

fn gaps(stand: &Stand) -> Vec<(String, String)> {
    let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
    records(stand, &["gap"]).iter().map(|gap| (text(gap, "gap"), text(gap, "what"))).collect()
}

#[test]
fn a_note_is_on_record_as_a_claim_of_the_box_and_inert() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", "h5i note 'half \u{1b}[2J done'; printf 'by input\\n' | h5i note");
    let notes = records(&stand, &["note"]);
    let said: Vec<_> = notes
        .iter()
        .map(|note| (note["lane"].as_str(), note["run"].as_u64(), note["text"].as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (Some("box"), Some(1), Some("half \u{1b}[2J done")),
            (Some("box"), Some(1), Some("by input"))
        ]
    );
    let shown = stand.ok(&["box", "log", "a", "--lane", "box"]);
    assert!(shown.text().contains("note: half \\u{1b}[2J done"), "{}", shown.text());
    let said = stand.ok(&["box", "run", "a", "--", "h5i", "note", "--json", "x"]);
    assert_eq!(said.json()["data"]["bytes"], 1);
    // Too long, or nothing at all.
    let said =
        stand.h5i(&["box", "run", "a", "--", "sh", "-c", "head -c 40000 /dev/zero | h5i note"]);
    assert!(said.code == 4 && said.err.contains("more than"), "{said:?}");
    assert_eq!(stand.h5i(&["box", "run", "a", "--", "sh", "-c", "h5i note < /dev/null"]).code, 2);
    // Outside a box nobody would hear it.
    for words in [&["note", "x"][..], &["report-command", "--status", "0", "--", "ls"]] {
        let said = stand.h5i(words);
        assert!(said.code == 4 && said.err.contains("this is no box"), "{said:?}");
    }
    stand.ok(&["box", "export", "a", "-o", "out"]);
    let report = fs::read_to_string(stand.repo().join("out/report.md")).unwrap();
    assert!(report.contains("## What the box said"), "{report}");
    assert!(report.contains("Run 1: `half \\u{1b}[2J done`"), "{report}");
}

#[test]
fn a_note_is_heard_while_its_run_goes() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let mut child = stand.command();
    child.args([
        "box",
        "run",
        "a",
        "--",
        "sh",
        "-c",
        "h5i note early; echo said; read go; h5i note late",
    ]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let mut follower = stand.command();
    follower.args(["box", "log", "a", "--lane", "box", "--follow"]);
    let mut follower = follower.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(told.next().unwrap().unwrap().ends_with("note: early"));
    drop(child.stdin.take());
    assert!(told.next().unwrap().unwrap().ends_with("note: late"));
    assert!(child.wait().unwrap().success() && follower.wait().unwrap().success());
}

#[test]
fn what_is_forged_in_the_spool_is_a_claim_or_nothing() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let secret = stand.path().join("secret");
    fs::write(&secret, "h5i-note 1\nof the host").unwrap();
    let script = format!(
        "cd /run/h5i/spool; ln -s {} link; mkfifo pipe; mkdir -p full/x
         printf '{{\"v\":1,\"seq\":0,\"lane\":\"host\",\"kind\":\"session-end\"}}' > forged
         head -c 100000 /dev/zero > large; (umask 0777; echo x > closed); truncate -s 1T sparse
         printf 'h5i-note 1\\nlate' > note; touch -d 2001-01-01 note; chmod 0 .",
        secret.display()
    );
    stand.sh("a", &script);
    let lanes: Vec<Value> = records(&stand, &["note"]);
    assert_eq!(lanes.len(), 1);
    assert_eq!((&lanes[0]["lane"], &lanes[0]["text"]), (&"box".into(), &"late".into()));
    assert!(lanes[0]["at"].as_str().unwrap() > "2026", "the host's time: {}", lanes[0]);
    let faults = records(&stand, &["spool-refused"]);
    let mut words: Vec<&str> = faults.iter().map(|f| f["fault"].as_str().unwrap()).collect();
    words.sort_unstable();
    words.dedup();
    // Root reads what the box has closed.
    let closed = if rustix::process::geteuid().is_root() { "" } else { "unreadable" };
    let expected = ["link", "malformed", "not-file", "too-large", closed];
    assert_eq!(words, expected.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>());
    assert!(faults.iter().all(|fault| fault["lane"] == "host"));
    let log = stand.ok(&["box", "log", "a"]);
    assert!(!log.text().contains("of the host"), "{}", log.text());
    // The next run begins with what is left, says nothing of it again, and is heard.
    stand.sh("a", "h5i note again");
    assert_eq!(records(&stand, &["note"]).len(), 2);
}

#[test]
fn a_flood_is_one_finding_and_the_host_goes_on() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let script = "cd /run/h5i/spool; for i in $(seq 20000); do printf 'h5i-note 1\\nx' > n$i; done";
    stand.sh("a", script);
    let notes = records(&stand, &["note"]).len();
    assert!((200..3000).contains(&notes), "{notes}");
    let faults = records(&stand, &["spool-refused"]);
    assert!(faults.iter().all(|fault| fault["fault"] == "too-many"), "{faults:?}");
    assert!((1..=3).contains(&faults.len()), "{faults:?}");
    let refused: u64 = faults.iter().map(|fault| fault["count"].as_u64().unwrap()).sum();
    assert_eq!(refused + notes as u64, 20_000);
    stand.ok(&["box", "export", "a", "-o", "out"]);
    let report = fs::read_to_string(stand.repo().join("out/report.md")).unwrap();
    let told = format!("{refused} entries of the box's spool not taken in: more than is taken in.");
    assert!(report.contains(&told), "{report}");
}

#[test]
fn what_a_killed_session_left_in_the_spool_is_taken_in_by_the_next() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    // Words of the shell alone: the spool is looked into when a program starts or ends.
    let script = "printf 'h5i-note 1\\nleft' > /run/h5i/spool/left; echo here; read word";
    let mut child = stand.command();
    child.args(["box", "run", "a", "--", "sh", "-c", script]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // The end of this pipe is the end of the box.
    std::io::Read::read_to_end(&mut out, &mut Vec::new()).unwrap();
    stand.sh("a", "h5i note mine");
    let notes = records(&stand, &["note"]);
    let said: Vec<_> = notes.iter().map(|n| (n["text"].as_str(), n["run"].as_u64())).collect();
    assert_eq!(said, [(Some("left"), None), (Some("mine"), Some(2))]);
}

/// A policy in which every `bash -c` reports.
const HOOKED: [&str; 2] = ["--set", "env.set.BASH_ENV=/etc/h5i/hook.bash"];

#[test]
fn a_bash_that_reports_is_compared_with_what_was_seen() {
    let stand = Stand::new();
    stand.ok(&[&["box", "create", "a"][..], &HOOKED].concat());
    let script = "ls /work; FOO=1 sh -c 'exit 2'; echo x | cat; bash -c true; exit 3";
    assert_eq!(stand.h5i(&["box", "run", "a", "--", "bash", "-c", script]).code, 3);
    let said = records(&stand, &["reported-command", "reported-end"]);
    let [begun, ended] = &said[..] else { panic!("{said:?}") };
    assert_eq!((&begun["command"], &begun["program"]), (&script.into(), &"ls".into()));
    assert_eq!((&ended["status"], &ended["shell"]), (&3.into(), &begun["shell"]));
    assert!(said.iter().all(|record| record["lane"] == "box" && record["run"] == 1));
    assert_eq!(gaps(&stand), []);
    // A shell that is kept from reporting is noticed, one that forges a code as well.
    stand.sh("a", "env -u BASH_ENV bash -c 'ls /'");
    assert_eq!(gaps(&stand), [("not-reported".to_owned(), "ls /".to_owned())]);
    let forged = "trap - EXIT; printf 'h5i-command 1\nshell %s\nnumber 1\nstatus 0\nform shell\n' $$ > /run/h5i/spool/x; exit 7";
    assert_eq!(stand.h5i(&["box", "run", "a", "--", "bash", "-c", forged]).code, 7);
    let found = records(&stand, &["gap"]).pop().unwrap();
    assert_eq!(
        (&found["gap"], &found["reported"], &found["seen"], &found["run"]),
        (&"other-end".into(), &0.into(), &7.into(), &3.into())
    );
    // The twin: without the policy's hook nobody was to report.
    stand.ok(&["box", "create", "b"]);
    stand.sh("b", "bash -c 'ls /'");
    assert!(!stand.ok(&["box", "log", "b"]).text().contains("gap:"));
}

#[test]
fn a_command_that_was_not_run_is_a_gap_in_log_report_and_receipt() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.sh(
        "a",
        "sh -c 'exit 1' ; h5i report-command --status 1 -- sh -c 'exit 1'
         h5i report-command --status 0 -- npm test --all
         h5i report-command --status 0 -- cd /",
    );
    assert_eq!(gaps(&stand), [("not-seen".to_owned(), "npm test --all".to_owned())]);
    let shown = stand.ok(&["box", "log", "a"]);
    let told =
        "gap: npm test --all was reported by the box, and the host saw no program of that name";
    assert!(shown.text().contains(told), "{}", shown.text());
    stand.ok(&["box", "export", "a", "-o", "out"]);
    let report = fs::read_to_string(stand.repo().join("out/report.md")).unwrap();
    assert!(report.contains("1. Run 1: **`npm test --all`** was reported by the box"), "{report}");
    let receipt = fs::read_to_string(stand.repo().join("out/receipt.json")).unwrap();
    assert!(receipt.contains("\"kind\":\"gap\""));
    stand.ok(&["receipt", "verify", "out"]);
}

#[test]
fn shells_that_one_types_at_report_each_line() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let lines = "ls /nowhere\ncd /\nfalse | true\nsh -c 'exit 4'\n/bin/echo $(true) x\nls &\nwait\nexit 0\n";
    for (shell, words) in [("bash", "bash --norc -i"), ("zsh", "zsh -f -i")] {
        let script = format!(
            "printf '%s' \". /etc/h5i/hook.{shell}\n{}\" | {words} 2>/dev/null",
            lines.replace('$', "\\$")
        );
        stand.h5i(&["box", "run", "a", "--", "sh", "-c", &script]);
        let said = records(&stand, &["reported-end"]);
        let codes: Vec<i64> = said.iter().map(|end| end["status"].as_i64().unwrap()).collect();
        let codes = &codes[codes.len() - 7..];
        assert_eq!(codes[..5], [2, 0, 0, 4, 0], "{shell}: {said:?}");
        assert_eq!(gaps(&stand), [], "{shell}");
    }
}

#[test]
fn the_program_of_a_box_is_h5i_itself_and_can_not_be_changed() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let own = fs::read(H5I).unwrap();
    let own = stand.ok(&["box", "run", "a", "--", "cat", "/run/h5i/bin/h5i"]).out == own;
    assert!(own);
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", "echo x > /run/h5i/bin/h5i"]);
    assert!(said.code != 0 && said.err.contains("Read-only"), "{said:?}");
    let said = stand.h5i(&[
        "box",
        "run",
        "a",
        "--",
        "sh",
        "-c",
        "rm -f /run/h5i/bin/h5i /etc/h5i/hook.bash",
    ]);
    assert!(said.code != 0, "{said:?}");
    assert_eq!(stand.sh("a", "h5i hook bash | cmp - /etc/h5i/hook.bash; h5i hook zsh | cmp - /etc/h5i/hook.zsh; command -v h5i"), "/run/h5i/bin/h5i");
}
