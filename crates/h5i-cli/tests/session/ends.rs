//! The process that holds a session dies, stands still, or is told to end it.

use std::time::{Duration, Instant};

use h5i_testkit::Moment;
use rustix::process::Signal;

use crate::going::{Going, records, with_box};

#[test]
fn when_the_holder_is_killed_everything_ends_and_the_next_command_works() {
    let stand = with_box();
    let mut holder = Going::sh(&stand, "echo here; (setsid sleep 1000 &); sleep 1000");
    assert_eq!(holder.line(), "here");
    let mut second = Going::sh(&stand, "(setsid sleep 1000 &); echo here; sleep 1000");
    assert_eq!(second.line(), "here");
    let begun = Moment::now();
    holder.signal(Signal::KILL);
    assert_eq!(holder.end().code, 137);
    // What it started holds its output: the end of that is theirs.
    let second = second.end();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(second.code, 125);
    // It may have been told of its start or not.
    let told = ["cut off", "the session has ended"].iter().any(|words| second.err.contains(words));
    assert!(told, "{}", second.err);
    assert_eq!(stand.sh("a", "echo next"), "next");
    let log = records(&stand);
    let of_host = log.iter().filter(|r| r["lane"] == "host");
    let kinds: Vec<&str> = of_host.filter_map(|r| r["kind"].as_str()).collect();
    assert_eq!(
        kinds,
        ["create", "run-start", "run-start", "cut-off", "run-start", "run-end"],
        "{log:?}"
    );
    // In order, nothing is cut off.
    assert_eq!(stand.sh("a", "echo next"), "next");
    assert_eq!(records(&stand).iter().filter(|r| r["kind"] == "cut-off").count(), 1);
}

#[test]
fn a_holder_that_is_killed_at_any_moment_leaves_a_box_that_goes_on() {
    let stand = with_box();
    for delay in [0, 1, 2, 4, 8, 16] {
        let holder = Going::sh(&stand, "sleep 1000");
        let joins = Going::sh(&stand, "sleep 1000");
        std::thread::sleep(Duration::from_millis(delay));
        holder.signal(Signal::KILL);
        joins.signal(Signal::KILL);
        assert_eq!(holder.end().code, 137);
        // Killed, unless it found at once that its holder is gone.
        let joined = joins.end().code;
        assert!(matches!(joined, 137 | 125), "{joined}");
        let begun = Moment::now();
        assert_eq!(stand.sh("a", "echo next"), "next");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}

#[test]
fn a_holder_that_stands_still_makes_the_box_busy() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    holder.signal(Signal::STOP);
    let begun = Moment::now();
    let said = stand.h5i(&["box", "run", "a", "--json", "--", "true"]);
    let failure = said.failure();
    assert_eq!((said.code, failure.kind.as_str()), (125, "busy"));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(failure.message.contains("does not answer"), "{failure:?}");
    assert_eq!(failure.details["pid"], holder.pid());
    // What only looks says what it can.
    assert!(stand.ok(&["box", "ls"]).text().contains("in use"));
    holder.signal(Signal::CONT);
    stand.sh("a", "true");
    assert_eq!(holder.end().code, 7);
}

#[test]
fn an_interrupt_while_it_waits_for_others_ends_the_session() {
    let stand = with_box();
    let mut first = Going::sh(&stand, "exec 2>&1; echo here; cat > /dev/null");
    assert_eq!(first.line(), "here");
    let second = Going::waiting(&stand);
    first.type_line("x");
    let pid = rustix::process::Pid::from_raw(i32::try_from(first.pid()).unwrap()).unwrap();
    let ends = std::thread::spawn(move || first.end());
    let over = |r: &serde_json::Value| r["kind"] == "run-end" && r["run"] == 1;
    let patience = Instant::now() + Duration::from_secs(60);
    while !records(&stand).iter().any(over) {
        assert!(Instant::now() < patience, "{:?}", records(&stand));
    }
    // Until it waits, the signal is for the command, which has ended.
    while !ends.is_finished() {
        assert!(Instant::now() < patience, "it waits on");
        rustix::process::kill_process(pid, Signal::INT).ok();
        std::thread::yield_now();
    }
    assert_eq!(ends.join().unwrap().code, 0);
    assert_eq!(second.end().code, 125);
}
