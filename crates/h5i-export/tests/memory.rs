//! The memory that a bundle takes to write and to verify does not grow with the records of its log.
//!
//! What is allocated at one moment is counted, for the whole process: the one test here has it to itself.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::System;
use std::fs::{self, File};
use std::path::Path;

use cap::Cap;
use h5i_export::{
    Applied, Base, BundleInput, ByteText, Digest, Event, Existing, Export, Lane, LogWriter,
    Outcome, ReportInput, Reviewed, Timestamp, TreeSource, WholeLog, verify_bundle, verify_receipt,
    write_bundle,
};
use h5i_policy::{ExportPolicy, ResolvedPolicy, Tier};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// Programs of the shorter log: more than a report tells apart while they run.
const PROGRAMS: u64 = 5_000;
/// The longer log has so many times as many.
const TIMES: u64 = 3;
/// What may differ, in bytes: some buffers double as they grow.
const SLACK: usize = 128 << 10;

#[test]
fn the_memory_of_a_bundle_does_not_grow_with_its_records() {
    let dir = tempfile::tempdir().unwrap();
    let (base, reviewed) = reviewed(dir.path());
    let peak = |programs| {
        let log = dir.path().join(format!("{programs}.jsonl"));
        fill(&log, programs);
        let out = dir.path().join(format!("{programs}.out"));
        written_and_verified(&log, &out, &reviewed, &base);
        ALLOCATED.max_allocated()
    };
    let before = ALLOCATED.max_allocated();
    let short = peak(PROGRAMS);
    let long = peak(TIMES * PROGRAMS);
    assert!(short > before + SLACK, "the count counts: {before}, {short}");
    assert!(long <= short + SLACK, "{long} bytes at most, {short} with a shorter log");
}

fn manifest() -> Digest {
    Digest::of(b"manifest")
}

/// A log of one run with so many programs, each of which was refused a call.
fn fill(path: &Path, programs: u64) {
    let (mut log, _) = LogWriter::open(path, manifest(), Timestamp::now()).unwrap();
    let mut append =
        |lane, event| drop(log.append(Timestamp::now(), lane, Some(1), event).unwrap());
    append(
        Lane::Host,
        Event::RunStart {
            argv: vec![ByteText::new("make")],
            argv_cut: 0,
            cwd: ByteText::new("/work"),
            tier: "process".into(),
            policy: "p".into(),
        },
    );
    for proc in 1..=programs {
        let (pid, path) = (7, ByteText::new("/usr/bin/cc"));
        append(
            Lane::Kernel,
            Event::ExecAttempt {
                proc,
                pid,
                parent: proc / 2,
                ppid: 1,
                path: path.clone(),
                argv: vec![path.clone(), ByteText::new(format!("src/{proc}.c"))],
                argv_cut: 0,
                cwd: ByteText::new("/work"),
                unread: Vec::new(),
                unwatched: false,
            },
        );
        append(Lane::Kernel, Event::Exec { proc, pid, exe: path.clone(), failed: 0 });
        append(
            Lane::Kernel,
            Event::RefusedCall {
                call: "mount".into(),
                args: Vec::new(),
                pid,
                program: ByteText::new(format!("/work/{proc}")),
                errno: "EPERM".into(),
                count: 1,
            },
        );
        let (exit_code, signal, cpu_ms, max_rss_bytes) = (Some(0), None, None, None);
        append(
            Lane::Kernel,
            Event::ProcessEnd {
                proc,
                pid,
                exit_code,
                signal,
                wall_ms: 1,
                cpu_ms,
                max_rss_bytes,
                unseen: false,
            },
        );
    }
    append(
        Lane::Host,
        Event::RunEnd {
            outcome: Outcome::Exited,
            exit_code: Some(0),
            signal: None,
            limit: None,
            used: None,
            allowed: None,
            wall_ms: 1,
            cpu_ms: 1,
            max_rss_bytes: 1,
        },
    );
}

/// A review of one new file on an empty tree.
fn reviewed(dir: &Path) -> (Base, Reviewed) {
    let host = git2::Repository::init_bare(dir.join("host")).unwrap();
    let empty = host.treebuilder(None).unwrap().write().unwrap();
    let base = Base::tree(dir.join("host/objects"), empty);
    for made in ["work", "scratch"] {
        fs::create_dir(dir.join(made)).unwrap();
    }
    fs::write(dir.join("work/a"), "a\n").unwrap();
    let export = Export::new(base.clone(), ExportPolicy::default(), &dir.join("scratch"));
    let source = TreeSource::checkout(&dir.join("work")).unwrap();
    (base, export.read(source).unwrap().review().unwrap())
}

fn written_and_verified(log: &Path, out: &Path, reviewed: &Reviewed, base: &Base) {
    let length = fs::metadata(log).unwrap().len();
    let log = WholeLog::read(File::open(log).unwrap(), length, manifest()).unwrap();
    let policy = ResolvedPolicy::default();
    let report = ReportInput {
        name: "a",
        base_name: "main",
        tier: Tier::Process,
        profile: "default",
        policy: &policy.digest().to_string(),
        purpose: None,
        network: "nothing",
        home: &[],
        history: log.history(),
        enforcement: &[],
        not_enforced: &[],
        reviewed,
    };
    let scratch = out.parent().unwrap();
    let policy_text = &policy.to_toml();
    let input = BundleInput { report, log: &log, policy_text, payloads: scratch };
    write_bundle(out, &input, Existing::Refuse).unwrap();
    let verified = verify_bundle(out, scratch, Some(base)).unwrap();
    assert_eq!((verified.applied, verified.receipt.head), (Applied::Yes, log.head()));
    let mut records = 0;
    let receipt = File::open(out.join("receipt.json")).unwrap();
    verify_receipt(receipt, |_| records += 1).unwrap();
    assert_eq!(records, log.head().records);
}
