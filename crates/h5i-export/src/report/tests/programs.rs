//! The tree of programs in a report.

use super::*;

/// A process of run 1 that became a program and ended.
fn program(proc: u64, parent: u64, argv: &[&[u8]], code: i32) -> [Event; 3] {
    let pid = u32::try_from(proc).expect("small") + 10;
    let kept = Argv::bounded(argv.iter().copied());
    let path = ByteText::new([b"/usr/bin/", argv[0]].concat());
    [
        Event::ExecAttempt {
            proc,
            pid,
            parent,
            ppid: 0,
            path: path.clone(),
            argv: kept.argv,
            argv_cut: kept.cut,
            cwd: ByteText::new("/work"),
            unread: Vec::new(),
            unwatched: false,
        },
        Event::Exec { proc, pid, exe: path, failed: 0 },
        Event::ProcessEnd {
            proc,
            pid,
            exit_code: Some(code),
            signal: None,
            wall_ms: 12,
            cpu_ms: None,
            max_rss_bytes: None,
            unseen: false,
        },
    ]
}

fn ran(events: impl IntoIterator<Item = Event>) -> Vec<String> {
    let fixture = Fixture::new(|_| {});
    let mut all = vec![start(&[b"npm", b"ci"])];
    all.extend(events);
    all.push(end(Outcome::Exited));
    let records: Vec<Record> =
        all.into_iter().zip(0..).map(|(e, n)| record(n, Some(1), e)).collect();
    let text = report(&fixture, &records);
    let at = text.find("## What ran").expect("a section");
    text[at..].lines().skip(3).take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn programs_are_told_as_a_tree_with_their_ends() {
    let token = format!("ghp_{}", "a".repeat(36));
    let mut events = Vec::new();
    events.extend(program(1, 0, &[b"npm", b"ci"], 0));
    events.extend(program(2, 1, &[b"sh", b"-c", b"node setup.js"], 0));
    events.extend(program(3, 1, &[b"rm", b"\x1b[2J"], 0));
    events.extend(program(4, 2, &[b"curl", b"-H", token.as_bytes()], 7));
    // An attempt that found no program is none.
    events.extend(
        program(5, 2, &[b"nowhere"], 127)
            .into_iter()
            .filter(|event| !matches!(event, Event::Exec { .. })),
    );
    assert_eq!(
        ran(events),
        [
            "- › `/usr/bin/npm` `ci`: exit 0 after 12 ms",
            "- › › `/usr/bin/sh` `-c` `node setup.js`: exit 0 after 12 ms",
            "- › › › `/usr/bin/curl` `-H` `[redacted: code host token]`: exit 7 after 12 ms",
            "- › › `/usr/bin/rm` `\\u{1b}[2J`: exit 0 after 12 ms",
        ]
    );
}

#[test]
fn of_very_many_programs_those_that_failed_and_what_started_most_are_told() {
    // The more there are, the fewer of them are kept while they are taken in.
    for all in [500, 20_000] {
        let mut events = Vec::new();
        let [begin, exec, end] = program(1, 0, &[b"make"], 2);
        events.extend([begin, exec]);
        for n in 2..all {
            events.extend(program(n, 1, &[b"cc"], i32::from(n == 400)));
        }
        events.extend(program(all, 1, &[b"sh"], 0));
        events.extend(program(all + 1, all, &[b"true"], 0));
        events.push(end);
        let lines = ran(events);
        assert_eq!(lines.len(), 41);
        assert_eq!(lines[0], "- › `/usr/bin/make`: exit 2 after 12 ms");
        assert!(lines.iter().any(|line| line == "- › › `/usr/bin/cc`: exit 1 after 12 ms"));
        assert!(lines.iter().any(|line| line == "- › › `/usr/bin/sh`: exit 0 after 12 ms"));
        let more = all + 1 - 40;
        assert_eq!(lines[40], format!("- › and {more} programs more, in the receipt"));
    }
}

#[test]
fn a_subtree_counts_whole_however_little_of_it_is_kept() {
    let mut events = Vec::new();
    // Three shells: the second one starts most, all of it early.
    let shells: Vec<[Event; 3]> = (1..4).map(|n| program(n, 0, &[b"sh"], 0)).collect();
    for [begin, exec, _] in &shells {
        events.extend([begin.clone(), exec.clone()]);
    }
    for n in 10..9_000 {
        events.extend(program(n, 2, &[b"cc"], 0));
    }
    events.extend(shells.into_iter().map(|[_, _, end]| end));
    // Then as many that stand alone.
    for n in 9_000..18_000 {
        events.extend(program(n, 0, &[b"ls"], 0));
    }
    let lines = ran(events);
    assert_eq!(lines[0], "- › `/usr/bin/sh`: exit 0 after 12 ms");
    assert_eq!(lines[40], format!("- › and {} programs more, in the receipt", 17_990 + 3 - 40));
}

#[test]
fn of_very_many_runs_the_first_are_listed_and_all_are_counted() {
    let fixture = Fixture::new(|_| {});
    let mut records = Vec::new();
    // The first one goes on through all the others.
    records.push(record(0, Some(1), start(&[b"agent"])));
    for n in 2..=2_000 {
        records.push(record(0, Some(n), start(&[b"npm", n.to_string().as_bytes()])));
        records.extend(program(n, 0, &[b"npm"], 0).map(|event| record(0, Some(n), event)));
        let outcome = if n.is_multiple_of(4) { Outcome::Stopped } else { Outcome::Exited };
        records.push(record(0, Some(n), end(outcome)));
    }
    let text = report(&fixture, &records);
    assert!(text.contains("2000 runs, the last one: stopped by wall"), "{text}");
    let section = text.split("## What ran").nth(1).expect("a section");
    let lines: Vec<&str> =
        section.lines().filter(|line| line.starts_with("- ")).take(501).collect();
    assert!(lines[0].starts_with("- 1. ") && lines[0].ends_with("has not ended"), "{}", lines[0]);
    assert!(lines[499].starts_with("- › `/usr/bin/npm`") || lines[499].contains("`npm` `251`"));
    assert_eq!(lines[500], format!("- and {} more", 1 + 2 * 1_999 - 500));
    // 500 were stopped, and one goes on.
    assert!(text.contains("501 things need your eyes"), "{}", text.lines().next().unwrap_or(""));
    // A cut ends the one that went on.
    records.push(record(0, None, Event::CutOff { torn_bytes: 0, torn: None }));
    assert!(report(&fixture, &records).contains("Run 1: was cut off."));
}
