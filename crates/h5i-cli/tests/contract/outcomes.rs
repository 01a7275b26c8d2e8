//! Exit codes of runs, and what stands behind them.

use crate::shapes::BoxRun;
use crate::stand::Stand;

fn made() -> Stand {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand
}

#[test]
fn a_programs_exit_code_is_the_programs_own() {
    let stand = made();
    for code in [0, 1, 2, 42, 123, 124, 125, 255] {
        let script = format!("exit {code}");
        let words = ["box", "run", "a", "--", "sh", "-c", script.as_str()];
        let said = stand.h5i(&words);
        assert_eq!((said.code, said.err.as_str()), (code, ""));
        let one_shot = stand.h5i(&["run", "--rm", "--", "sh", "-c", script.as_str()]);
        assert_eq!(one_shot.code, code, "{}", one_shot.err);
    }
}

#[test]
fn a_signal_is_128_and_its_number() {
    let stand = made();
    for signal in [1, 6, 9, 15] {
        let script = format!("kill -{signal} $$");
        let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", &script]);
        assert_eq!(said.code, 128 + signal, "{}", said.err);
        let run: BoxRun =
            stand.h5i(&["box", "run", "a", "--json", "--", "sh", "-c", &script]).data();
        assert_eq!(i32::from(run.exit_code), 128 + signal);
        assert!(run.outcome.contains(&signal.to_string()), "{run:?}");
    }
}

#[test]
fn a_deadline_is_124_and_said() {
    let stand = made();
    let said = stand.h5i(&["box", "run", "a", "--timeout", "200ms", "--", "sleep", "1000"]);
    assert_eq!(said.code, 124);
    assert!(said.err.contains("stopped by limits.wall"), "{}", said.err);
    let words = ["run", "--rm", "--json", "--timeout", "200ms", "--", "sleep", "1000"];
    let said = stand.h5i(&words);
    assert_eq!((said.code, said.json()["ok"].as_bool()), (124, Some(true)));
    assert!((200..60_000).contains(&said.json()["data"]["wall_ms"].as_u64().unwrap()));
    // The twin: the same program within its time.
    stand.ok(&["box", "run", "a", "--timeout", "1h", "--", "sleep", "0"]);
}

#[test]
fn a_policys_deadline_holds_where_the_command_line_asks_for_more() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a", "--set", "limits.wall=\"200ms\""]);
    let said = stand.h5i(&["box", "run", "a", "--timeout", "1h", "--", "sleep", "1000"]);
    assert_eq!(said.code, 124, "{}", said.err);
}

#[test]
fn another_limit_is_123_and_named() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a", "--set", "limits.output=\"1MiB\""]);
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", "yes | head -c 9000000"]);
    assert_eq!(said.code, 123, "{}", said.err);
    assert!(said.err.contains("stopped by limits.output"), "{}", said.err);
    assert!(said.out.len() <= 1 << 20, "{}", said.out.len());
    let words = ["box", "run", "a", "--json", "--", "sh", "-c", "yes | head -c 9000000"];
    let said = stand.h5i(&words);
    let run: BoxRun = said.data();
    assert_eq!((said.code, run.exit_code, run.truncated), (123, 123, true));
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", "yes | head -c 1000000"]);
    assert_eq!(said.out.len(), 1_000_000);
}

#[test]
fn a_program_that_is_not_there_is_127_and_one_that_is_none_is_126() {
    let stand = made();
    for (words, code, kind, says) in [
        (&["nonesuch"][..], 127, "not-found", "nonesuch was not found in the box"),
        (&["./nonesuch"], 127, "not-found", "./nonesuch was not found"),
        (&["/work"], 126, "refused", "/work can't be executed in the box"),
        (&["./a.txt"], 126, "refused", "./a.txt can't be executed in the box"),
        (&["./a.txt/x"], 127, "not-found", "./a.txt/x"),
    ] {
        let all = [&["box", "run", "a", "--"], words].concat();
        let said = stand.h5i(&all);
        assert_eq!(said.code, code, "{}", said.err);
        assert!(said.err.contains(says), "{}", said.err);
        let all = [&["box", "run", "a", "--json", "--"], words].concat();
        let said = stand.h5i(&all);
        assert_eq!((said.code, said.failure().kind.as_str()), (code, kind));
        let all = [&["run", "--"], words].concat();
        let said = stand.h5i(&all);
        assert_eq!(said.code, code, "{}", said.err);
        assert_eq!(stand.box_directories(), ["a"], "the one-shot's box stayed");
    }
}

#[test]
fn a_busy_box_is_125_for_a_run_and_5_for_other_verbs() {
    let stand = made();
    // Held by something that is no session, as by an export.
    let lock = std::fs::File::open(stand.box_dir("a").join("host/lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    for (words, code) in [
        (&["box", "run", "a", "--json", "--", "true"][..], 125),
        (&["box", "rm", "a", "--json"], 5),
        (&["box", "rm", "--force", "a", "--json"], 5),
        (&["box", "stop", "a", "--json"], 5),
    ] {
        let said = stand.h5i(words);
        assert_eq!((said.code, said.failure().kind.as_str()), (code, "busy"), "{words:?}");
        assert!(said.failure().hint.unwrap().contains("wait"), "{words:?}");
    }
    // What only looks is not held up.
    assert!(stand.ok(&["box", "ls"]).text().contains("in use"));
    assert!(stand.ok(&["box", "status", "a"]).text().contains("in use"));
    stand.ok(&["box", "log", "a"]);
    stand.ok(&["box", "gc"]);
    drop(lock);
    stand.ok(&["box", "run", "a", "--", "true"]);
}

#[test]
fn a_one_shot_that_changed_nothing_is_removed_and_says_so() {
    let stand = Stand::new();
    let said = stand.ok(&["run", "--", "true"]);
    assert!(said.err.contains("its receipt is in the archive"), "{}", said.err);
    assert_eq!(stand.box_directories(), [""; 0]);
    let said = stand.h5i(&["run", "--", "false"]);
    assert!(said.err.contains("kept     h5i box export false-"), "{}", said.err);
    assert_eq!(stand.box_directories().len(), 1);
    stand.ok(&["run", "--keep", "--", "true"]);
    assert_eq!(stand.box_directories().len(), 2);
    let said = stand.h5i(&["run", "--rm", "--", "false"]);
    assert_eq!(said.code, 1);
    assert_eq!(stand.box_directories().len(), 2);
}

#[test]
fn a_flood_of_refused_kinds_is_told_in_one_screen() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    // Each copy of the program is a program of its own.
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do cp $(command -v unshare) /tmp/u$n; \
                  /tmp/u$n -U true; done 2> /dev/null; true";
    stand.ok(&["box", "run", "a", "--", "sh", "-c", script]);
    let status = stand.ok(&["box", "status", "a"]);
    let line = status.text().lines().find(|line| line.starts_with("refused")).unwrap().to_owned();
    assert_eq!(line.matches("unshare ×1 by /tmp/u").count(), 10, "{line}");
    assert!(line.ends_with("and 3 kinds more: h5i box log --denied"), "{line}");
    // The twin: the log and the program's answer have them all.
    let log = stand.ok(&["box", "log", "a", "--denied"]);
    assert_eq!(log.text().matches("/tmp/u").count(), 13, "{}", log.text());
}
