//! Many at once.

use std::thread;
use std::time::{Duration, Instant};

use crate::going::{Going, records, with_box};
use crate::holder_figures::settled;
use crate::stand::Stand;

/// Runs `count` commands at once, each with an exit code and an output of its own.
fn at_once(stand: &Stand, count: usize, name: impl Fn(usize) -> String + Sync) {
    thread::scope(|scope| {
        for number in 0..count {
            let name = &name;
            scope.spawn(move || {
                let script = format!(
                    "i=0; while [ $i -lt 200 ]; do echo {number}; i=$((i+1)); done; exit {number}"
                );
                let said = stand.h5i(&["box", "run", &name(number), "--", "sh", "-c", &script]);
                let own = format!("{number}\n").repeat(200);
                assert_eq!(said.code, i32::try_from(number).unwrap(), "{}", said.err);
                assert!(said.text() == own, "mixed with another's: {}", said.text());
            });
        }
    });
}

#[test]
fn twenty_runs_in_one_session_keep_their_codes_and_outputs() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    at_once(&stand, 20, |_| "a".to_owned());
    assert_eq!(holder.end().code, 7);
    let ends = records(&stand).iter().filter(|r| r["kind"] == "run-end").count();
    assert_eq!(ends, 21);
}

#[test]
fn whoever_comes_first_to_an_idle_box_the_others_join() {
    let stand = with_box();
    for _ in 0..5 {
        at_once(&stand, 8, |_| "a".to_owned());
    }
    let log = records(&stand);
    let mut numbers: Vec<u64> =
        log.iter().filter(|r| r["kind"] == "run-end").map(|r| r["run"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=40).collect::<Vec<u64>>());
}

#[test]
fn twenty_boxes_at_once() {
    let stand = Stand::new();
    for number in 0..20 {
        stand.ok(&["box", "create", &format!("b{number}")]);
    }
    at_once(&stand, 20, |number| format!("b{number}"));
}

#[test]
fn a_hundred_runs_leave_nothing_in_the_process_that_holds_the_session() {
    let stand = with_box();
    // An arena for each thread that allocates beside another would look like something left.
    let holder = Going::waiting_with(&stand, ("MALLOC_ARENA_MAX", "1"));
    let run = || stand.ok(&["box", "run", "a", "--", "true"]);
    for _ in 0..20 {
        run();
    }
    let before = settled(holder.pid(), u64::MAX);
    for _ in 0..100 {
        run();
    }
    let after = settled(holder.pid(), before[0]);
    assert!(after[2] <= before[2] + 512, "{before:?} {after:?}");
    assert_eq!(holder.end().code, 7);
}

#[test]
fn a_session_that_lasts_gives_back_the_code_of_its_beginning() {
    let stand = with_box();
    let resident = |holder: &Going| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", holder.pid())).unwrap();
        let files = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
        files.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    // After a second it may have begun: only one that was seen before that tells of a beginning.
    let early = |_| -> Option<(Going, u64)> {
        let begun = Instant::now();
        let holder = Going::waiting(&stand);
        let before = resident(&holder);
        if begun.elapsed() < Duration::from_millis(800) {
            return Some((holder, before));
        }
        holder.end();
        None
    };
    let (mut holder, before) = (0..50).find_map(early).unwrap();
    let patience = Instant::now() + Duration::from_secs(40);
    while resident(&holder) > before / 3 * 2 {
        assert!(Instant::now() < patience, "{before} kB at first, {} kB now", resident(&holder));
    }
    // It goes on, for its own run and for others.
    assert_eq!(stand.sh("a", "echo joined"), "joined");
    holder.type_line("still there");
    assert_eq!(holder.line(), "still there");
    assert_eq!(holder.end().code, 7);
}

#[test]
fn a_session_has_the_descriptors_that_the_hard_limit_allows() {
    let stand = with_box();
    let mut command = stand.program("sh");
    // Of a quarter of these, forty-two processes could be watched at once.
    let script = "for n in $(seq 60); do sleep 1000 & all=\"$all $!\"; done; \
                  until [ $(grep -l '^sleep$' /proc/[0-9]*/comm 2> /dev/null | wc -l) -ge 60 ]; \
                  do :; done; kill $all; wait; echo ended";
    command.args(["-c", "ulimit -S -n 168; exec \"$H5I\" box run a -- sh -c \"$0\"", script]);
    let said = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "ended\n", "{said:?}");
    let log = records(&stand);
    let sleeps = |kind: &str| {
        let proc: Vec<u64> = log
            .iter()
            .filter(|r| r["kind"] == "exec-attempt" && r["argv"][0] == "sleep")
            .map(|r| r["proc"].as_u64().unwrap())
            .collect();
        log.iter()
            .filter(|r| r["kind"] == kind && r["proc"].as_u64().is_some_and(|p| proc.contains(&p)))
            .collect::<Vec<_>>()
    };
    let watched = sleeps("exec-attempt").iter().filter(|r| r["unwatched"].is_null()).count();
    assert_eq!(watched, 60);
    let ends = sleeps("process-end");
    assert!(ends.iter().all(|r| r["signal"] == 15), "{ends:?}");
    assert_eq!(ends.len(), 60);
}
