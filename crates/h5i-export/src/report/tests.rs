use h5i_policy::Tier;

use super::text::{code, plain, size, span};
use super::{Mechanism, MechanismState, ReportInput};
use crate::Digest;
use crate::fixture::Fixture;
use crate::record::{Argv, ByteText, Event, Lane, Outcome, Record, Timestamp};
use crate::review::Secrets;

fn record(seq: u64, run: Option<u64>, event: Event) -> Record {
    let at = Timestamp::from_unix_micros(1_777_644_131_482_913 + seq);
    Record { seq, at, lane: Lane::Host, run, event, prev: Digest::of(b"") }
}

fn start(argv: &[&[u8]]) -> Event {
    let argv = Argv::bounded(argv.iter().copied());
    let (tier, policy) = ("process".to_owned(), "sha256:9b".to_owned());
    Event::RunStart {
        argv: argv.argv,
        argv_cut: argv.cut,
        cwd: ByteText::new("/work"),
        tier,
        policy,
    }
}

fn end(outcome: Outcome) -> Event {
    let stopped = outcome == Outcome::Stopped;
    Event::RunEnd {
        outcome,
        exit_code: (!stopped).then_some(0),
        signal: None,
        limit: stopped.then(|| "wall".to_owned()),
        used: stopped.then_some(7_200_001),
        allowed: stopped.then_some(7_200_000),
        wall_ms: 12_400,
        cpu_ms: 900,
        max_rss_bytes: 3 << 20,
    }
}

fn report(fixture: &Fixture, records: &[Record]) -> String {
    let reviewed = fixture
        .export()
        .secrets(Secrets::Flag)
        .read(fixture.source())
        .expect("reads")
        .review()
        .expect("may leave");
    ReportInput {
        name: "fix-auth",
        base_name: "main",
        tier: Tier::Process,
        profile: "default",
        policy: "sha256:9b1f",
        records,
        enforcement: &[
            Mechanism {
                name: "seccomp".into(),
                state: MechanismState::On,
                detail: "61 rules".into(),
            },
            Mechanism {
                name: "cgroup limits".into(),
                state: MechanismState::Absent,
                detail: "not delegated".into(),
            },
        ],
        not_enforced: &["Memory is not limited.".to_owned()],
        reviewed: &reviewed,
    }
    .to_markdown()
}

#[test]
fn the_report_is_ordered_by_urgency() {
    let secret = format!("ghp_{}", "A1b2".repeat(9));
    let fixture = Fixture::new(|tree| {
        tree.file("src/a.rs", "a\n")
            .file("old", "x\n")
            .file("package.json", "{}\n")
            .file(".gitignore", "target/\n");
    });
    fixture
        .tree()
        .remove("old")
        .file("src/a.rs", "b\n")
        .file("tests/a.rs", "t\n")
        .file("package.json", "{\"scripts\":{}}\n")
        .file("key.txt", format!("x\n{secret}\n"))
        .file("run.sh", "#!/bin/sh\n")
        .mode("run.sh", 0o755)
        .file("target/x", "");
    let refused = Event::RefusedCall {
        call: "ptrace".into(),
        args: vec![16],
        pid: 88,
        program: ByteText::new("/usr/bin/gdb"),
        errno: "EPERM".into(),
        count: 2,
    };
    let records = [
        record(0, Some(1), start(&[b"npm", b"test"])),
        record(1, Some(1), refused),
        record(2, Some(1), end(Outcome::Exited)),
        record(3, Some(2), start(&[b"npm", secret.as_bytes()])),
        record(4, Some(2), end(Outcome::Stopped)),
    ];
    let text = report(&fixture, &records);
    assert!(!text.contains(&secret), "{text}");
    let text = text.replace(&fixture.base.commit.expect("a commit").to_string()[..12], "BASE");
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_of_the_box_becomes_markup_or_control() {
    let fixture = Fixture::new(|_| ());
    fixture.tree().file("`](x)<script>", "x\n").file("# title", "x\n");
    let records =
        [record(0, Some(1), start(&[b"a\x1b[2J\n## Look here first", "\u{202e}b".as_bytes()]))];
    let text = report(&fixture, &records);
    assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_unprintable(c)), "{text}");
    assert_eq!(text.matches("\n## ").count(), 5, "{text}");
    assert!(text.contains("`` `](x)<script> ``"), "{text}");
}

#[test]
fn code_spans_and_plain_words_are_inert() {
    assert_eq!(code(b"a"), "`a`");
    assert_eq!(code(b"a``b"), "``` a``b ```");
    assert_eq!(code(b""), "`  `");
    assert_eq!(plain("a*b<c>"), "a\\*b\\<c\\>");
    assert!(code(&[b'a'; 1000]).len() < 500);
}

#[test]
fn numbers_have_their_unit() {
    assert_eq!(
        (size(0), size(1536), size(5 << 20)),
        ("0 B".into(), "1.5 KiB".into(), "5.0 MiB".into())
    );
    assert_eq!(
        (span(12), span(12_400), span(840_000)),
        ("12 ms".into(), "12.4 s".into(), "14 min".into())
    );
    assert_eq!(span(9_960_000), "2 h 46 min");
}
