//! Sessions that are kept without a terminal.

use std::time::{Duration, Instant};

use h5i_testkit::Moment;

use crate::going::{Going, Started, records, with_box};
use crate::stand::Stand;

fn session(stand: &Stand) -> serde_json::Value {
    stand.ok(&["box", "status", "a", "--json"]).json()["data"]["session"].clone()
}

#[test]
fn a_started_session_lives_until_it_is_stopped() {
    let stand = Started::new();
    let tree = stand.ok(&["box", "status", "a", "--tree"]);
    assert_eq!(tree.text(), "no process: the box is alive, and nothing runs in it\n");
    let again = stand.ok(&["box", "start", "a", "--json"]);
    assert_eq!(again.json()["data"]["started"], false);
    stand.sh("a", "(setsid sleep 1000 &) ; sleep 1001 & echo $! > /tmp/pid; echo word > /tmp/kept");
    assert_eq!(
        stand.sh("a", "cat /tmp/kept; kill -0 $(cat /tmp/pid) && echo alive"),
        "word\nalive"
    );
    let alive = session(&stand);
    assert_eq!(alive["processes"].as_array().unwrap().len(), 2, "{alive}");
    assert_eq!(alive["started"], true);
    let begun = Moment::now();
    let stopped = stand.ok(&["box", "stop", "a", "--json"]);
    assert_eq!(stopped.json()["data"]["stopped"], true);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    // Nothing holds the box when it returns, and what was its session's is gone.
    assert_eq!(session(&stand), serde_json::Value::Null);
    assert_eq!(stand.sh("a", "cat /tmp/kept 2> /dev/null || echo gone"), "gone");
    assert_eq!(stand.ok(&["box", "stop", "a", "--json"]).json()["data"]["stopped"], false);
    let kinds: Vec<String> = records(&stand).iter().map(|r| r["kind"].to_string()).collect();
    assert!(kinds.contains(&"\"session-start\"".to_owned()), "{kinds:?}");
    assert!(kinds.contains(&"\"session-end\"".to_owned()), "{kinds:?}");
}

#[test]
fn a_live_box_is_removed_by_force_only() {
    let stand = Started::new();
    let said = stand.h5i(&["box", "rm", "a", "--json"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (5, "busy"));
    assert!(said.failure().hint.unwrap().contains("h5i box stop a"));
    stand.ok(&["box", "rm", "--force", "a"]);
    assert_eq!(stand.box_directories(), [""; 0]);
    stand.ok(&["box", "create", "a"]);
    assert_eq!(stand.sh("a", "echo clean"), "clean");
}

#[test]
fn what_was_asked_to_end_has_time_and_what_was_killed_has_none() {
    let stand = Started::new();
    let script = "trap 'echo bye; exit 3' TERM; echo here; while :; do sleep 1000 & wait; done";
    let mut asked = Going::sh(&stand, script);
    assert_eq!(asked.line(), "here");
    stand.ok(&["box", "stop", "a"]);
    let asked = asked.end();
    assert_eq!((asked.code, asked.out.as_str()), (3, "bye\n"), "{}", asked.err);
    stand.ok(&["box", "start", "a"]);
    let mut killed = Going::sh(&stand, script);
    assert_eq!(killed.line(), "here");
    stand.ok(&["box", "kill", "a"]);
    let killed = killed.end();
    assert_eq!((killed.code, killed.out.as_str()), (125, ""), "{}", killed.err);
}

#[test]
fn a_frozen_box_stands_still_and_takes_nobody_in() {
    let stand = Started::new();
    let mut runs = Going::sh(&stand, "echo here; while read l; do echo $l; done");
    assert_eq!(runs.line(), "here");
    let frozen = stand.ok(&["box", "freeze", "a", "--json"]);
    assert_eq!(frozen.json()["data"]["processes"], 1);
    assert_eq!(session(&stand)["frozen"], true);
    // It is stopped when it comes to its turn.
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let now = session(&stand);
        if now["processes"][0]["state"] == "T" {
            break;
        }
        assert!(Instant::now() < patience, "{now}");
    }
    let said = stand.h5i(&["box", "run", "a", "--json", "--", "true"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (125, "busy"));
    runs.type_line("held");
    stand.ok(&["box", "thaw", "a"]);
    assert_eq!(runs.line(), "held");
    stand.sh("a", "true");
    assert_eq!(runs.end().code, 0);
    stand.ok(&["box", "stop", "a"]);
    let said = stand.h5i(&["box", "freeze", "a", "--json"]);
    assert_eq!(said.failure().kind, "not-found");
}

#[test]
fn a_live_box_tells_its_runs_and_its_processes() {
    let stand = with_box();
    let mut runs = Going::sh(&stand, "sleep 1000 & echo here; cat; kill $!");
    assert_eq!(runs.line(), "here");
    let mut joined = Going::sh(&stand, "setsid sleep 1002 & echo here; cat; kill $!");
    assert_eq!(joined.line(), "here");
    let status = stand.ok(&["box", "status", "a"]);
    let alive =
        status.text().split_once("alive ").and_then(|(_, rest)| rest.split_once(" s · 2 runs"));
    let seconds = alive.and_then(|(seconds, _)| seconds.parse::<u32>().ok());
    assert!(seconds.is_some_and(|seconds| seconds < 60), "{}", status.text());
    assert!(stand.ok(&["box", "ls"]).text().contains("alive"));
    let tree = stand.ok(&["box", "status", "--tree", "a"]);
    let line = tree.text().lines().find(|l| l.contains("sleep 1002")).unwrap();
    assert!(line.contains("run 2"), "{line}");
    let told = session(&stand);
    assert_eq!(told["runs"][1]["run"], 2);
    assert_eq!(told["runs"][1]["command"][0], "sh");
    assert_eq!(joined.end().code, 0);
    assert_eq!(runs.end().code, 0);
    assert!(stand.ok(&["box", "ls"]).text().contains("idle"));
}

#[test]
fn whoever_starts_at_once_starts_one_session() {
    let stand = Started::new();
    stand.ok(&["box", "stop", "a"]);
    let started: usize = std::thread::scope(|scope| {
        let start = || {
            let said = stand.ok(&["box", "start", "a", "--json"]);
            usize::from(said.json()["data"]["started"] == true)
        };
        let all: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(started, 1);
}

#[test]
fn a_kept_session_whose_holder_is_killed_can_be_started_again() {
    let stand = Started::new();
    let mut runs = Going::sh(&stand, "(setsid sleep 1000 &); echo here; sleep 1000");
    assert_eq!(runs.line(), "here");
    let socket = stand.box_dir("a").join("host/control.sock");
    let reached = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let holder = rustix::net::sockopt::socket_peercred(&reached).unwrap().pid;
    let begun = Moment::now();
    rustix::process::kill_process(holder, rustix::process::Signal::KILL).unwrap();
    // Every process of the run holds its output.
    assert_eq!(runs.end().code, 125);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    stand.ok(&["box", "start", "a"]);
    assert_eq!(stand.sh("a", "echo again"), "again");
    let log = records(&stand);
    assert_eq!(log.iter().filter(|r| r["kind"] == "cut-off").count(), 1, "{log:?}");
}
