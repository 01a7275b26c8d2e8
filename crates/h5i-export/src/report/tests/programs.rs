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
    let mut events = Vec::new();
    events.extend(program(1, 0, &[b"make"], 2));
    for n in 2..500 {
        events.extend(program(n, 1, &[b"cc"], i32::from(n == 400)));
    }
    events.extend(program(500, 1, &[b"sh"], 0));
    events.extend(program(501, 500, &[b"true"], 0));
    let lines = ran(events);
    assert_eq!(lines.len(), 41);
    assert_eq!(lines[0], "- › `/usr/bin/make`: exit 2 after 12 ms");
    assert!(lines.iter().any(|line| line == "- › › `/usr/bin/cc`: exit 1 after 12 ms"));
    assert!(lines.iter().any(|line| line == "- › › `/usr/bin/sh`: exit 0 after 12 ms"));
    assert_eq!(lines[40], "- › and 461 programs more, in the receipt");
}
