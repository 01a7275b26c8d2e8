//! Budgets of a box: what is stopped, what is told of it, and who goes on.

use std::time::{Duration, Instant};

use crate::going::{Going, records};
use crate::stand::Stand;

/// Takes memory until it is stopped, or has 3 GiB.
const EATER: &str = "head -c 3G /dev/zero | tail";

fn with_limits(settings: &[&str]) -> Stand {
    let stand = Stand::new();
    create(&stand, "a", settings);
    stand
}

fn create(stand: &Stand, name: &str, settings: &[&str]) {
    let mut words = vec!["box", "create", name];
    settings.iter().for_each(|setting| words.extend(["--set", setting]));
    stand.ok(&words);
}

#[test]
fn a_run_that_takes_too_much_memory_is_stopped_by_name_and_the_box_goes_on() {
    let stand = with_limits(&["limits.memory=\"64MiB\""]);
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", EATER]);
    assert_eq!(said.code, 123, "{}", said.err);
    assert!(said.err.contains("stopped by limits.memory"), "{}", said.err);
    assert!(said.err.contains("most of it by /usr/bin/tail (pid "), "{}", said.err);
    let log = records(&stand);
    let place = |kind: &str| log.iter().position(|r| r["kind"] == kind).unwrap();
    let (spent, end) = (place("budget-spent"), place("run-end"));
    assert!(spent < end, "told before it is done");
    assert_eq!((&log[spent]["limit"], &log[spent]["run"]), (&"memory".into(), &1.into()));
    assert_eq!(log[spent]["program"], "/usr/bin/tail");
    assert_eq!(log[end]["outcome"], "stopped");
    assert!(log[end]["used"].as_u64() >= log[end]["allowed"].as_u64());
    let told = stand.h5i(&["box", "run", "a", "--json", "--", "sh", "-c", EATER]);
    assert_eq!(told.code, 123);
    let stopped = &told.json()["data"]["stopped"];
    assert_eq!(
        (&stopped["limit"], &stopped["program"]),
        (&"memory".into(), &"/usr/bin/tail".into())
    );
    assert_eq!(stand.sh("a", "echo usable"), "usable");
    assert_eq!(
        stand.ok(&["box", "run", "a", "--json", "--", "true"]).json()["data"]["stopped"],
        serde_json::Value::Null
    );
}

#[test]
fn a_box_that_fills_its_disk_is_stopped_and_can_be_tidied() {
    let stand = with_limits(&["limits.disk=\"32MiB\""]);
    for path in ["/work/large", "/home/box/large"] {
        let fill = format!("dd if=/dev/zero of={path} bs=1M count=3000 status=none");
        let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", &fill]);
        assert_eq!(said.code, 123, "{}", said.err);
        assert!(said.err.contains("stopped by limits.disk"), "{}", said.err);
        assert_eq!(stand.sh("a", &format!("test -s {path} && rm {path} && echo tidy")), "tidy");
    }
    assert_eq!(stand.sh("a", "head -c 1000000 /dev/zero > f; sleep 0.5; echo room"), "room");
}

#[test]
fn records_are_a_part_of_what_a_box_takes_on_disk() {
    // An argument of control characters is six times as long on record.
    let start = |programs: u32| {
        format!(
            "long=$(head -c 16000 /dev/zero | tr '\\0' '\\1'); i=0; \
             while [ $i -lt {programs} ]; do /bin/true \"$long\"; i=$((i+1)); done; echo done"
        )
    };
    let stand = with_limits(&["limits.disk=\"16MiB\""]);
    assert_eq!(stand.sh("a", &start(20)), "done");
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", &start(20_000)]);
    assert_eq!(said.code, 123, "{}", said.err);
    assert!(said.err.contains("stopped by limits.disk"), "{}", said.err);
    let stopped = records(&stand).into_iter().rfind(|r| r["kind"] == "budget-spent").unwrap();
    assert!(stopped["used"].as_u64() < Some(64 << 20), "{stopped}");
    // What there is can be looked at and taken out.
    stand.ok(&["box", "status", "a"]);
    stand.ok(&["box", "export", "a", "-o", "out"]);
}

#[test]
fn a_session_ends_with_its_time_whatever_runs_in_it() {
    let stand = with_limits(&["limits.session=\"8s\""]);
    let started = Instant::now();
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", "trap '' TERM; sleep 1000"]);
    assert_eq!(said.code, 124, "{}", said.err);
    assert!(said.err.contains("stopped by limits.session"), "{}", said.err);
    assert!(started.elapsed() >= Duration::from_secs(8));
    // The next session has a time of its own.
    assert_eq!(stand.sh("a", "sleep 0.2; echo usable"), "usable");
    // One that is kept without a run ends as well, and says so.
    stand.ok(&["box", "start", "a"]);
    let live = |stand: &Stand| {
        !stand.ok(&["box", "status", "a", "--json"]).json()["data"]["session"].is_null()
    };
    let told = stand.ok(&["box", "status", "a", "--json"]).json();
    assert_eq!(told["data"]["session"]["budgets"]["session"]["allowed"], 8000);
    let patience = Instant::now() + Duration::from_secs(40);
    while live(&stand) {
        assert!(Instant::now() < patience, "it goes on");
    }
    let spent = records(&stand).into_iter().rfind(|r| r["kind"] == "budget-spent").unwrap();
    assert_eq!((&spent["limit"], &spent["allowed"]), (&"session".into(), &8000.into()));
    assert!(spent["run"].is_null() && spent["program"] == "", "{spent}");
    let log = stand.ok(&["box", "log", "a"]);
    // How much it was by then is the machine's affair; it was no less than the limit.
    let spent = log.text().rsplit_once("limits.session spent: ").map(|(_, rest)| rest);
    let (number, rest) = spent.unwrap().split_once(' ').unwrap();
    assert!(number.parse::<f64>().unwrap() >= 5.0, "{}", log.text());
    assert_eq!(rest.lines().next(), Some("s of 8 s"), "{}", log.text());
    assert_eq!(stand.sh("a", "echo usable"), "usable");
}

#[test]
fn of_two_runs_the_one_that_takes_too_much_is_stopped() {
    let stand = with_limits(&["limits.memory=\"64MiB\""]);
    let mut first = Going::waiting(&stand);
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", EATER]);
    assert_eq!(said.code, 123, "{}", said.err);
    assert!(said.err.contains("most of it by /usr/bin/tail"), "{}", said.err);
    first.type_line("still there");
    assert_eq!(first.line(), "still there");
    assert_eq!(first.end().code, 7);
}

#[test]
fn what_is_used_is_told_beside_what_is_allowed() {
    let stand = with_limits(&["limits.memory=\"256MiB\"", "limits.disk=\"256MiB\""]);
    let script = "head -c 20000000 /dev/zero > /work/f; \
        dd if=/dev/zero of=/dev/shm/f bs=1M count=30 status=none; echo here; cat";
    let mut going = Going::sh(&stand, script);
    assert_eq!(going.line(), "here");
    // It is measured within half a second; the disk as soon as there is reason to.
    let patience = Instant::now() + Duration::from_secs(20);
    let told = loop {
        let told = stand.ok(&["box", "status", "a", "--json"]).json();
        let budgets = told["data"]["session"]["budgets"].clone();
        let of = |name: &str| budgets[name]["used"].as_u64().unwrap_or(0);
        if of("memory") >= 30 << 20 && of("disk") >= 50_000_000 && of("processes") == 2 {
            break budgets;
        }
        assert!(Instant::now() < patience, "{budgets}");
    };
    assert_eq!(told["memory"]["allowed"], 256 << 20);
    assert_eq!(told["processes"]["allowed"], 1024);
    let text = stand.ok(&["box", "status", "a"]).text().to_owned();
    let used = text.lines().find(|line| line.starts_with("used ")).unwrap();
    assert!(used.contains("of 256 MiB · processes 2 of 1024 · disk "), "{used}");
    let row = stand.ok(&["box", "ls", "--json"]).json()["data"]["boxes"][0].clone();
    assert!(row["session"]["disk_bytes"].as_u64() > Some(50_000_000), "{row}");
    assert!(stand.ok(&["box", "ls"]).text().contains(" on disk"));
    assert_eq!(going.end().code, 0);
}

#[test]
fn beside_boxes_that_attack_another_answers() {
    let stand = Stand::new();
    let tight = ["limits.memory=\"128MiB\"", "limits.disk=\"128MiB\"", "limits.processes=100"];
    let attacks = [
        ("bomb", "b() { b | b & }; (b); while :; do :; done", 124),
        ("eater", EATER, 123),
        (
            "filler",
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); cp /usr/bin/dd /work/$i; done",
            123,
        ),
        ("flood", "yes", 123),
    ];
    for (name, ..) in attacks {
        create(&stand, name, &[&tight[..], &["limits.output=\"32MiB\""]].concat());
    }
    create(&stand, "quiet", &[]);
    let ask = || {
        let begun = Instant::now();
        assert_eq!(stand.sh("quiet", "echo answer"), "answer");
        begun.elapsed()
    };
    let before = (0..5).map(|_| ask()).max().unwrap();
    let during = std::thread::scope(|scope| {
        let stand = &stand;
        let attack = |(name, line, code): (&'static str, &'static str, i32)| {
            scope.spawn(move || {
                let words = ["box", "run", name, "--timeout", "4s", "--", "sh", "-c", line];
                let said = stand.h5i(&words);
                // What an attack is stopped by first is its own affair where it does several things.
                assert!(
                    said.code == code || said.code == 124,
                    "{name}: {} {}",
                    said.code,
                    said.err
                );
            })
        };
        let all: Vec<_> = attacks.into_iter().map(attack).collect();
        let mut slowest = Duration::ZERO;
        while all.iter().any(|attack| !attack.is_finished()) {
            slowest = slowest.max(ask());
        }
        all.into_iter().for_each(|attack| attack.join().unwrap());
        slowest
    });
    println!("slowest answer of a second box: {before:?} before, {during:?} beside four attacks");
    assert!(during < Duration::from_secs(30), "{during:?}");
    for (name, ..) in attacks {
        assert_eq!(stand.sh(name, "echo usable"), "usable");
    }
}
