use proptest::prelude::*;

use super::{
    Argv, ByteText, CanaryLoss, Event, FlowVerdict, Gap, GrantChange, GrantEnd, Lane,
    NetworkChange, Outcome, Record, RecordError, SpoolFault, Stream, Timestamp, Unread,
};
use crate::digest::Digest;

pub(crate) fn sample(event: Event) -> Record {
    Record {
        seq: 7,
        at: Timestamp::from_unix_micros(1_777_644_131_482_913),
        lane: Lane::Kernel,
        run: Some(2),
        event,
        prev: Digest::of(b""),
    }
}

/// One event of every kind, and of those with optional fields one with and one without them.
pub(crate) fn every_event() -> Vec<Event> {
    vec![
        Event::Create {
            name: "a".into(),
            base: "4c".into(),
            tree: "9b".into(),
            tier: "process".into(),
            profile: "default".into(),
            policy: "sha256:00".into(),
        },
        Event::SessionStart { policy: "p".into() },
        Event::SessionEnd,
        Event::RunStart {
            argv: vec![ByteText::new("npm"), ByteText::new(b"\xff".to_vec())],
            argv_cut: 0,
            cwd: ByteText::new("/work"),
            tier: "process".into(),
            policy: "p".into(),
        },
        Event::RunEnd {
            outcome: Outcome::Stopped,
            exit_code: None,
            signal: None,
            limit: Some("wall".into()),
            used: Some(2),
            allowed: Some(1),
            wall_ms: 3,
            cpu_ms: 4,
            max_rss_bytes: 5,
        },
        Event::BudgetSpent {
            limit: "memory".into(),
            used: 12,
            allowed: 10,
            pid: 4,
            program: ByteText::new("/usr/bin/tail"),
        },
        Event::Reaction {
            violation: "refused-call".into(),
            reaction: "freeze".into(),
            cause: ByteText::new("mount by /usr/bin/mount"),
        },
        Event::RefusedCall {
            call: "ptrace".into(),
            args: vec![16, u64::MAX],
            pid: 88,
            program: ByteText::new("/usr/bin/gdb"),
            errno: "EPERM".into(),
            count: 2,
        },
        Event::RunEnd {
            outcome: Outcome::Exited,
            exit_code: Some(-1),
            signal: Some(9),
            limit: None,
            used: None,
            allowed: None,
            wall_ms: 3,
            cpu_ms: 4,
            max_rss_bytes: u64::MAX,
        },
        Event::ExecAttempt {
            proc: 3,
            pid: 88,
            parent: 1,
            ppid: 71,
            path: ByteText::new("/usr/bin/git"),
            argv: vec![ByteText::new("git"), ByteText::new(b"\xff".to_vec())],
            argv_cut: 0,
            cwd: ByteText::new("/work"),
            unread: vec![],
            unwatched: false,
        },
        Event::ExecAttempt {
            proc: 3,
            pid: 88,
            parent: 0,
            ppid: 0,
            path: ByteText::default(),
            argv: vec![],
            argv_cut: 0,
            cwd: ByteText::default(),
            unread: vec![Unread::Path, Unread::Argv, Unread::Cwd],
            unwatched: true,
        },
        Event::Exec { proc: 3, pid: 88, exe: ByteText::new("/usr/bin/git"), failed: 4 },
        Event::ProcessEnd {
            proc: 3,
            pid: 88,
            exit_code: Some(1),
            signal: None,
            wall_ms: 7,
            cpu_ms: Some(10),
            max_rss_bytes: Some(4096),
            unseen: false,
        },
        Event::ProcessEnd {
            proc: 3,
            pid: 88,
            exit_code: None,
            signal: Some(9),
            wall_ms: 7,
            cpu_ms: None,
            max_rss_bytes: None,
            unseen: true,
        },
        Event::FlowStart {
            flow: 1,
            protocol: "tcp".into(),
            address: "192.0.2.1".into(),
            port: 443,
            names: vec!["a.example".into()],
            rules: vec!["a.example:443".into()],
            pid: Some(7),
            program: Some(ByteText::new("/usr/bin/curl")),
        },
        Event::FlowStart {
            flow: 1,
            protocol: "tcp".into(),
            address: "192.0.2.1".into(),
            port: 443,
            names: Vec::new(),
            rules: Vec::new(),
            pid: None,
            program: None,
        },
        Event::FlowEnd {
            flow: 1,
            named: Some("a.example".into()),
            sent: 3,
            received: 4,
            duration_ms: 5,
            verdict: FlowVerdict::Refused,
            reason: Some("its rule was revoked".into()),
            errno: Some(111),
            used: Some(11),
            allowed: Some(10),
        },
        Event::FlowEnd {
            flow: 1,
            named: None,
            sent: 3,
            received: u64::MAX,
            duration_ms: 5,
            verdict: FlowVerdict::Done,
            reason: None,
            errno: None,
            used: None,
            allowed: None,
        },
        Event::RefusedFlow {
            protocol: "udp".into(),
            address: Some("::1".into()),
            port: Some(80),
            reason: "a connection to the relay itself".into(),
            pid: Some(7),
            program: Some(ByteText::new([0xff])),
            used: Some(11),
            allowed: Some(10),
        },
        Event::RefusedFlow {
            protocol: "udp".into(),
            address: None,
            port: None,
            reason: "x".into(),
            pid: None,
            program: None,
            used: None,
            allowed: None,
        },
        Event::RefusedAddress {
            protocol: "tcp".into(),
            address: Some("192.0.2.1".into()),
            port: Some(22),
            count: 2,
            pid: Some(7),
            program: Some(ByteText::new([0xff])),
        },
        Event::RefusedAddress {
            protocol: "icmp".into(),
            address: None,
            port: None,
            count: 2,
            pid: None,
            program: None,
        },
        Event::RefusedName {
            name: Some(ByteText::new("a.example")),
            record: 1,
            count: 2,
            pid: Some(7),
            program: Some(ByteText::new([0xff])),
        },
        Event::RefusedName { name: None, record: 0, count: 2, pid: None, program: None },
        Event::Resolved {
            name: "a.example".into(),
            addresses: vec!["192.0.2.1".into()],
            withheld: vec!["10.0.0.1".into()],
        },
        Event::NetworkChange {
            change: NetworkChange::Allow,
            rule: Some("a.example:443".into()),
            policy: "p".into(),
        },
        Event::NetworkChange { change: NetworkChange::Cut, rule: None, policy: "p".into() },
        Event::CutOff { torn_bytes: 3, torn: Some(Digest::of(b"abc")) },
        Event::CutOff { torn_bytes: 0, torn: None },
        Event::Apply { bundle: Digest::of(b"b"), onto: None, branch: None },
        Event::Apply {
            bundle: Digest::of(b"b"),
            onto: Some("4c".into()),
            branch: Some(ByteText::new("h5i/a")),
        },
        Event::Export { bundle: Digest::of(b"b"), tree: "9b".into() },
        Event::Note { text: ByteText::new("a\u{1b}\n\"b") },
        Event::ReportedCommand {
            shell: 7,
            number: 2,
            command: ByteText::new("npm test"),
            program: Some(ByteText::new("npm")),
            status: Some(-1),
        },
        Event::ReportedCommand {
            shell: 0,
            number: 0,
            command: ByteText::default(),
            program: None,
            status: None,
        },
        Event::ReportedEnd { shell: 7, number: 2, status: 1 },
        Event::SpoolRefused { fault: SpoolFault::TooMany, count: 9 },
        Event::Gap {
            gap: Gap::OtherEnd,
            shell: 7,
            what: ByteText::new("npm test"),
            reported: Some(0),
            seen: Some(137),
        },
        Event::Gap {
            gap: Gap::NotSeen,
            shell: 0,
            what: ByteText::new("npm test"),
            reported: None,
            seen: None,
        },
        Event::CanaryRead { path: "~/.aws/credentials".into(), count: 3 },
        Event::CanaryLost { path: "~/.netrc".into(), why: CanaryLoss::Changed },
        Event::GrantIssued {
            grant: "api".into(),
            host: "api.example".into(),
            port: 443,
            lasts_ms: Some(1000),
        },
        Event::GrantUse {
            grant: "api".into(),
            request: 1,
            via: "reverse".into(),
            method: "POST".into(),
            path: ByteText::new("/v1/x"),
            pid: Some(7),
            program: Some(ByteText::new("/usr/bin/node")),
        },
        Event::GrantUseEnd {
            grant: "api".into(),
            request: 1,
            status: Some(200),
            sent: 3,
            received: 4,
            duration_ms: 5,
            end: GrantEnd::Done,
            scrubbed: 0,
        },
        Event::GrantRefused {
            grant: "api".into(),
            reason: "the path is not listed".into(),
            request: Some(ByteText::new("GET /")),
            pid: Some(7),
            program: Some(ByteText::new([0xff])),
            count: 2,
        },
        Event::GrantEnded { grant: "api".into(), end: GrantEnd::RunEnded },
        Event::GrantChange {
            grant: "api".into(),
            change: GrantChange::Extend,
            by_ms: Some(60_000),
        },
        Event::Output { stream: Stream::Stdout, bytes: 9, kept: 4, payload: Digest::of(b"b") },
    ]
}

#[test]
fn every_kind_comes_back_from_its_line() {
    for event in every_event() {
        for run in [None, Some(2)] {
            let record = Record { run, ..sample(event.clone()) };
            let line = record.to_line().expect("json");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Record::from_line(line.as_bytes()).expect(&line), record);
        }
    }
}

proptest! {
    /// The quick way gives what the thorough one gives, whatever was done to a line.
    #[test]
    fn a_line_is_read_alike_in_both_ways(
        which: prop::sample::Index,
        run in prop::option::of(any::<u64>()),
        cut: prop::sample::Index,
        with in prop_oneof!["[a-z0-9\"\\\\{}:, ]{0,3}", Just(",\"prev\":\"".to_owned()), Just("0".to_owned())],
        edited: bool,
    ) {
        let mut events = every_event();
        let record = Record { run, ..sample(events.swap_remove(which.index(events.len()))) };
        let mut line = record.to_line().expect("json").into_bytes();
        let quick = super::quick::read(&line);
        prop_assert_eq!(quick.as_ref(), Some(&record), "the twin: a line as it is written");
        if edited {
            let at = cut.index(line.len());
            drop(line.splice(at..at + usize::from(with.len() != 2), with.bytes()));
        }
        let (quick, thorough) = (Record::from_line(&line), Record::from_any_line(&line));
        match (quick, thorough) {
            (Ok(quick), Ok(thorough)) => prop_assert_eq!(quick, thorough),
            (Err(quick), Err(thorough)) => prop_assert_eq!(quick.to_string(), thorough.to_string()),
            other => prop_assert!(false, "{other:?}: {}", String::from_utf8_lossy(&line)),
        }
    }
}

#[test]
fn the_line_is_as_documented() {
    let record = sample(Event::CutOff { torn_bytes: 0, torn: None });
    assert_eq!(
        record.to_line().expect("json"),
        r#"{"v":1,"seq":7,"at":"2026-05-01T14:02:11.482913Z","lane":"kernel","run":2,"kind":"cut-off","torn_bytes":0,"prev":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#
    );
}

#[test]
fn unknown_fields_other_versions_and_other_spellings_are_refused() {
    let line = sample(Event::SessionStart { policy: "p".into() }).to_line().expect("json");
    Record::from_line(line.as_bytes()).expect("the twin: the line as it was written");
    let refused = |line: String| Record::from_line(line.as_bytes()).expect_err("refused");
    assert!(matches!(
        refused(line.replace("\"seq\"", "\"x\":1,\"seq\"")),
        RecordError::Malformed(_)
    ));
    assert!(matches!(
        refused(line.replace("session-start", "session-over")),
        RecordError::Malformed(_)
    ));
    assert!(matches!(refused(line.replace(",\"seq\":7", "")), RecordError::Malformed(_)));
    assert!(matches!(
        refused(line.replace("\"v\":1", "\"v\":2")),
        RecordError::Version { found: 2 }
    ));
    assert!(matches!(refused(line.replace("\"seq\":7", "\"seq\": 7")), RecordError::NotCanonical));
    assert!(matches!(
        refused(line.replace("\"seq\":7", "\"seq\":6,\"seq\":7")),
        RecordError::NotCanonical
    ));
    assert!(matches!(
        refused(line.replace("\"run\":2", "\"run\":null")),
        RecordError::NotCanonical
    ));
}

#[test]
fn an_unknown_field_is_refused_on_a_kind_without_fields_too() {
    let line = sample(Event::SessionEnd).to_line().expect("json");
    Record::from_line(line.as_bytes()).expect("the twin: the line as it was written");
    let more = line.replace("\"prev\"", "\"x\":1,\"prev\"");
    Record::from_line(more.as_bytes()).expect_err("an unknown field");
}

#[test]
fn arguments_are_bounded_and_their_number_is_known() {
    let small = Argv::bounded([&b"npm"[..], b"test"]);
    assert_eq!((small.argv.len(), small.cut), (2, 0));
    let long = vec![b'a'; Argv::MAX_ARG + 1];
    let one = Argv::bounded([&long[..]]);
    assert_eq!((one.argv[0].as_bytes().len(), one.cut), (Argv::MAX_ARG, 1));
    let empty = vec![&b""[..]; Argv::MAX_TOTAL * 2];
    let many = Argv::bounded(empty);
    assert!(many.argv.len() <= Argv::MAX_TOTAL);
    assert_eq!(many.argv.len() + many.cut as usize, Argv::MAX_TOTAL * 2);
}
