mod tampering;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use h5i_policy::{ResolvedPolicy, Tier};

use super::{
    Applied, BundleError, BundleInput, Existing, INDEX, PAGE, PATCH, RECEIPT, REPORT, VerifyError,
    WholeLog, verify_bundle, verify_receipt, write_bundle,
};
use crate::Digest;
use crate::fixture::Fixture;
use crate::log::{ChainFault, LogWriter};
use crate::record::{ByteText, Event, Lane, Stream, Timestamp};
use crate::report::{Mechanism, MechanismState, ReportInput};

/// A box with a change, and a log with three records.
struct Case {
    fixture: Fixture,
    out: PathBuf,
    /// What a run wrote and was kept.
    output: Option<&'static [u8]>,
}

const KEPT: &str = "output-1-stdout.txt";

impl Case {
    fn new() -> Self {
        let fixture = Fixture::new(|tree| {
            tree.file("a", "a\n");
        });
        fixture.tree().file("a", "b\n").file("new", "n\n");
        let out = fixture.path().join("out");
        Self { fixture, out, output: None }
    }

    fn write(&self, existing: Existing) -> Result<Digest, BundleError> {
        let manifest = Digest::of(b"manifest");
        let path = self.fixture.path().join("receipt.jsonl");
        let (mut log, _) =
            LogWriter::open(&path, manifest, Timestamp::from_unix_micros(1)).expect("opens");
        let policy = ResolvedPolicy::default();
        let create = Event::Create {
            name: "fix-auth".to_owned(),
            base: self.fixture.base.commit.expect("a commit").to_string(),
            tree: self.fixture.base.tree.to_string(),
            tier: Tier::Process.to_string(),
            profile: "default".to_owned(),
            policy: policy.digest().to_string(),
        };
        log.append(Timestamp::from_unix_micros(0), Lane::Host, None, create).expect("appends");
        for number in 1..3 {
            let text = ByteText::new(format!("note {number}"));
            log.append(Timestamp::from_unix_micros(number), Lane::Host, None, Event::Note { text })
                .expect("appends");
        }
        let payloads = self.fixture.path();
        if let Some(output) = self.output {
            let (stream, bytes, payload) = (Stream::Stdout, 14, Digest::of(b"what it wrote\n"));
            let event = Event::Output { stream, bytes, kept: 14, payload };
            let at = Timestamp::from_unix_micros(4);
            log.append(at, Lane::Host, Some(1), event).expect("appends");
            fs::write(payloads.join(KEPT), output).expect("writes");
        }
        let length = fs::metadata(&path).expect("a file").len();
        let read = fs::File::open(&path).expect("opens");
        let log = WholeLog::read(read, length, manifest).expect("whole");
        let reviewed = self.fixture.accepted();
        let digest = policy.digest().to_string();
        let report = ReportInput {
            name: "fix-auth",
            base_name: "main",
            tier: Tier::Process,
            profile: "default",
            policy: &digest,
            purpose: None,
            network: "nothing",
            home: &[],
            history: log.history(),
            enforcement: &[Mechanism {
                name: "seccomp".into(),
                state: MechanismState::On,
                detail: "61 rules".into(),
            }],
            not_enforced: &[],
            reviewed: &reviewed,
        };
        let input = BundleInput { report, log: &log, policy_text: &policy.to_toml(), payloads };
        let written = write_bundle(&self.out, &input, existing);
        if written.is_ok() {
            self.fits_its_schemas();
        }
        written
    }

    /// Whatever a test writes is what the schema files say.
    fn fits_its_schemas(&self) {
        for (file, schema) in [(RECEIPT, crate::RECEIPT_SCHEMA), (INDEX, crate::BUNDLE_SCHEMA)] {
            let text = fs::read(self.out.join(file)).expect("reads");
            let value = serde_json::from_slice(&text).expect("json");
            crate::schema::assert_valid(&crate::schema::validator(schema), &value);
        }
    }

    fn scratch(&self) -> PathBuf {
        self.fixture.path().join("scratch")
    }

    fn verify(&self) -> Result<super::Verified, VerifyError> {
        verify_bundle(&self.out, &self.scratch(), Some(&self.fixture.base))
    }

    /// Edits one file, and, where `cover` says so, the digests that stand for it.
    fn edit(&self, file: &str, from: &str, to: &str, cover: &[&str]) {
        let path = self.out.join(file);
        let before = fs::read_to_string(&path).expect("reads");
        let after = before.replacen(from, to, 1);
        assert_ne!(before, after, "{from} is not in {file}");
        fs::write(&path, &after).expect("writes");
        let (old, new) =
            (Digest::of(before.as_bytes()).to_string(), Digest::of(after.as_bytes()).to_string());
        match cover {
            [] => {}
            [next, rest @ ..] => self.edit(next, &old, &new, rest),
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .expect("lists")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_bundle_as_written_verifies_and_its_patch_applies() {
    let case = Case::new();
    let digest = case.write(Existing::Refuse).expect("writes");
    assert_eq!(names(&case.out), [INDEX, PATCH, RECEIPT, PAGE, REPORT]);
    let verified = case.verify().expect("as written");
    assert_eq!((verified.bundle, verified.applied), (digest, Applied::Yes));
    assert_eq!(verified.receipt.head.records, 3);
    assert_eq!(
        verify_bundle(&case.out, &case.scratch(), None).expect("as written").applied,
        Applied::NoBase
    );
    assert!(names(case.fixture.path()).iter().all(|name| !name.starts_with(".h5i")));
}

#[test]
fn kept_output_is_in_the_bundle_and_what_the_records_say() {
    let with = |output| Case { output: Some(output), ..Case::new() };
    let case = with(b"what it wrote\n");
    case.write(Existing::Refuse).expect("writes");
    assert_eq!(names(&case.out), [INDEX, KEPT, PATCH, RECEIPT, PAGE, REPORT]);
    case.verify().expect("as written");
    case.edit(KEPT, "wrote", "wrota", &[]);
    let error = case.verify().expect_err("changed");
    assert!(matches!(&error, VerifyError::Digest { file, .. } if file == KEPT), "{error:?}");
    case.edit(KEPT, "wrota", "wrote", &[]);
    case.edit(KEPT, "wrote", "wroto", &[INDEX]);
    let error = case.verify().expect_err("covered in the index, not in its record");
    assert!(matches!(error, VerifyError::Files | VerifyError::Digest { .. }), "{error:?}");
    let case = with(b"what it wrote\n");
    case.write(Existing::Refuse).expect("writes");
    fs::remove_file(case.out.join(KEPT)).expect("removes");
    assert!(matches!(case.verify(), Err(VerifyError::Io { .. })));
    // What was changed on the host since is not exported.
    let error = with(b"something else\n").write(Existing::Refuse).expect_err("changed");
    assert!(matches!(error, BundleError::Payload { .. }), "{error:?}");
}

#[test]
fn a_changed_file_is_named() {
    for (file, from, to) in [
        (PATCH, "+b", "+c"),
        (REPORT, "2 files", "1 file"),
        (PAGE, "2 files", "1 file"),
        (RECEIPT, "note 1", "note 7"),
    ] {
        let case = Case::new();
        case.write(Existing::Refuse).expect("writes");
        case.edit(file, from, to, &[]);
        let error = case.verify().expect_err("changed");
        assert!(
            matches!(&error, VerifyError::Digest { file: named, .. } if named == file),
            "{error:?}"
        );
    }
}

#[test]
fn a_change_that_covers_its_digests_is_still_found() {
    let case = Case::new();
    case.write(Existing::Refuse).expect("writes");
    case.edit(RECEIPT, "note 1", "note 7", &[INDEX]);
    let error = case.verify().expect_err("a record was edited");
    assert!(
        matches!(&error, VerifyError::Records(chain) if chain.record == 1 && matches!(chain.fault, ChainFault::Changed)),
        "{error:?}"
    );

    let case = Case::new();
    let digest = case.write(Existing::Refuse).expect("writes");
    case.edit(PATCH, "+b", "+c", &[INDEX]);
    let error = case.verify().expect_err("the receipt has another digest");
    assert!(matches!(error, VerifyError::Field { field: "patch" }), "{error:?}");

    // With every digest covered, the tree and the bundle's own digest remain.
    let case = Case::new();
    assert_eq!(case.write(Existing::Refuse).expect("writes"), digest, "the same bytes again");
    let old = Digest::of(&fs::read(case.out.join(PATCH)).expect("reads")).to_string();
    let patch = fs::read_to_string(case.out.join(PATCH)).expect("reads").replacen("+b", "+c", 1);
    fs::write(case.out.join(PATCH), &patch).expect("writes");
    let new = Digest::of(patch.as_bytes()).to_string();
    case.edit(INDEX, &old, &new, &[]);
    case.edit(RECEIPT, &old, &new, &[INDEX]);
    let error = case.verify().expect_err("the patch gives another file");
    assert!(matches!(error, VerifyError::Patch(_)), "{error:?}");
    assert_ne!(
        verify_bundle(&case.out, &case.scratch(), None).expect("consistent without a base").bundle,
        digest
    );
}

#[test]
fn removed_and_swapped_records_are_found() {
    let record = |case: &Case, number: usize| {
        let text = fs::read_to_string(case.out.join(RECEIPT)).expect("reads");
        let receipt: serde_json::Value = serde_json::from_str(&text).expect("json");
        receipt["records"][number].clone()
    };
    let rewrite = |case: &Case, change: &dyn Fn(&mut Vec<serde_json::Value>)| {
        let path = case.out.join(RECEIPT);
        let before = fs::read(&path).expect("reads");
        let mut receipt: serde_json::Value = serde_json::from_slice(&before).expect("json");
        change(receipt["records"].as_array_mut().expect("a list"));
        let after = serde_json::to_vec(&receipt).expect("json");
        fs::write(&path, &after).expect("writes");
        case.edit(INDEX, &Digest::of(&before).to_string(), &Digest::of(&after).to_string(), &[]);
        case.verify()
    };
    let fault = |change: &dyn Fn(&mut Vec<serde_json::Value>)| {
        let case = Case::new();
        case.write(Existing::Refuse).expect("writes");
        match rewrite(&case, change) {
            Err(VerifyError::Records(chain)) => (chain.record, chain.fault),
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(
        fault(&|records| drop(records.remove(1))),
        (1, ChainFault::Missing { found: 2 })
    ));
    assert!(matches!(fault(&|records| records.swap(0, 1)), (0, ChainFault::Missing { found: 1 })));
    assert!(matches!(
        fault(&|records| drop(records.pop())),
        (2, ChainFault::CutShort { expected: 3 })
    ));
    let case = Case::new();
    case.write(Existing::Refuse).expect("writes");
    let same = record(&case, 0);
    rewrite(&case, &|records| records[0] = same.clone())
        .expect("the twin: the same records in another layout");
}

#[test]
fn a_record_after_the_noted_head_is_found() {
    let case = Case::new();
    case.write(Existing::Refuse).expect("writes");
    let text = fs::read_to_string(case.out.join(RECEIPT)).expect("reads");
    verify_receipt(text.as_bytes(), |_| ()).expect("the twin: as written");
    let mut receipt: serde_json::Value = serde_json::from_str(&text).expect("json");
    receipt["head"] = serde_json::json!({ "records": 2, "last": receipt["records"][2]["prev"] });
    let error = verify_receipt(receipt.to_string().as_bytes(), |_| ()).expect_err("one too many");
    let VerifyError::Records(chain) = error else { panic!("{error:?}") };
    assert!(matches!((chain.record, chain.fault), (2, ChainFault::Surplus { expected: 2 })));
}

#[test]
fn unknown_fields_versions_files_and_links_are_refused() {
    let written = || {
        let case = Case::new();
        case.write(Existing::Refuse).expect("writes");
        case
    };
    let case = written();
    case.edit(INDEX, "\"v\": 1", "\"x\": 1, \"v\": 1", &[]);
    assert!(matches!(case.verify(), Err(VerifyError::Json { file: INDEX, .. })));
    let case = written();
    let twice = format!("\"files\": {{\"{PATCH}\": \"{}\",", Digest::of(b""));
    case.edit(INDEX, "\"files\": {", &twice, &[]);
    assert!(matches!(case.verify(), Err(VerifyError::Json { file: INDEX, .. })));
    let case = written();
    case.edit(INDEX, "\"v\": 1", "\"v\": 2", &[]);
    assert!(matches!(case.verify(), Err(VerifyError::Version { file: INDEX, found: 2 })));
    let case = written();
    fs::write(case.out.join("extra"), "").expect("writes");
    assert!(matches!(case.verify(), Err(VerifyError::Surplus { name }) if name == b"extra"));
    let case = written();
    fs::rename(case.out.join(PATCH), case.fixture.path().join("moved")).expect("renames");
    symlink(case.fixture.path().join("moved"), case.out.join(PATCH)).expect("links");
    assert!(matches!(case.verify(), Err(VerifyError::Io { .. })));
}

#[test]
fn another_patch_is_not_copied() {
    let case = Case::new();
    case.write(Existing::Refuse).expect("writes");
    let path = case.out.join(PATCH);
    let mut patch = fs::read(&path).expect("reads");
    patch.resize(2 << 20, b'\n');
    fs::write(&path, &patch).expect("writes");
    // Where nothing can be copied to, a copy would be the first thing that fails.
    let nowhere = case.fixture.path().join("nowhere");
    let verify = || verify_bundle(&case.out, &nowhere, None);
    assert!(matches!(verify(), Err(VerifyError::Digest { ref file, .. }) if file == PATCH));
    // The twin: a long patch that has the digest is copied.
    let (old, new) = (written_digest(&case, PATCH), Digest::of(&patch).to_string());
    case.edit(INDEX, &old, &new, &[]);
    assert!(matches!(verify(), Err(VerifyError::Io { ref path, .. }) if path.ends_with(PATCH)));
}

/// The digest that bundle.json has of a file.
fn written_digest(case: &Case, file: &str) -> String {
    let text = fs::read(case.out.join(INDEX)).expect("reads");
    let index: serde_json::Value = serde_json::from_slice(&text).expect("json");
    index["files"][file].as_str().expect("a digest").to_owned()
}

#[test]
fn another_base_is_named() {
    let case = Case::new();
    case.write(Existing::Refuse).expect("writes");
    let other = Fixture::new(|tree| {
        tree.file("other", "x\n");
    });
    let error =
        verify_bundle(&case.out, other.path(), Some(&other.base)).expect_err("another base");
    assert!(matches!(error, VerifyError::OtherBase { .. }), "{error:?}");
}

#[test]
fn planted_files_and_links_are_refused_and_force_leaves_nothing_of_them() {
    let case = Case::new();
    fs::create_dir(&case.out).expect("makes");
    let victim = case.fixture.path().join("victim");
    fs::write(&victim, "untouched").expect("writes");
    symlink(&victim, case.out.join(PATCH)).expect("links");
    fs::write(case.out.join("stale"), "x").expect("writes");
    assert!(matches!(case.write(Existing::Refuse), Err(BundleError::NotEmpty { .. })));
    assert_eq!(names(&case.out), [PATCH, "stale"]);
    case.write(Existing::Replace).expect("replaces");
    assert_eq!(names(&case.out), [INDEX, PATCH, RECEIPT, PAGE, REPORT]);
    assert_eq!(fs::read_to_string(&victim).expect("reads"), "untouched");
    assert!(names(case.fixture.path()).iter().all(|name| !name.starts_with(".h5i")));
}

#[test]
fn an_empty_directory_is_taken_and_a_link_or_a_full_one_is_not() {
    let case = Case::new();
    fs::create_dir(&case.out).expect("makes");
    case.write(Existing::Refuse).expect("an empty directory");
    case.verify().expect("as written");

    let linked = Case::new();
    let elsewhere = linked.fixture.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("makes");
    symlink(&elsewhere, &linked.out).expect("links");
    for existing in [Existing::Refuse, Existing::Replace] {
        assert!(matches!(linked.write(existing), Err(BundleError::NotDirectory { .. })));
    }
    assert!(names(&elsewhere).is_empty());

    let home = Case::new();
    fs::create_dir_all(home.out.join("documents")).expect("makes");
    assert!(matches!(home.write(Existing::Replace), Err(BundleError::NotBundle { .. })));
    assert_eq!(names(&home.out), ["documents"]);
}

#[test]
fn a_log_that_is_changed_while_it_is_read_gives_no_bundle() {
    let case = Case::new();
    let reviewed = case.fixture.accepted();
    let manifest = Digest::of(b"manifest");
    let path = case.fixture.path().join("receipt.jsonl");
    let now = Timestamp::from_unix_micros(1);
    let (mut writer, _) = LogWriter::open(&path, manifest, now).expect("opens");
    let note = |text: &str| Event::Note { text: ByteText::new(text) };
    writer.append(now, Lane::Host, None, note("one")).expect("appends");
    let bytes = fs::read(&path).expect("reads");
    let read = fs::File::open(&path).expect("opens");
    let log = WholeLog::read(read, bytes.len() as u64, manifest).expect("whole");
    let report = ReportInput {
        name: "a",
        base_name: "main",
        tier: Tier::Process,
        profile: "default",
        policy: "p",
        purpose: None,
        network: "nothing",
        home: &[],
        history: log.history(),
        enforcement: &[],
        not_enforced: &[],
        reviewed: &reviewed,
    };
    let payloads = case.fixture.path();
    let input = BundleInput { report, log: &log, policy_text: "", payloads };
    let write = || write_bundle(&case.out, &input, Existing::Refuse);
    fs::write(&path, String::from_utf8_lossy(&bytes).replace("one", "two")).expect("writes");
    assert!(matches!(write(), Err(BundleError::LogChanged)));
    fs::write(&path, &bytes[..bytes.len() - 1]).expect("writes");
    assert!(matches!(write(), Err(BundleError::LogChanged)));
    assert!(names(case.fixture.path()).iter().all(|name| !name.starts_with(".h5i")));
    fs::write(&path, &bytes).expect("writes");
    writer.append(now, Lane::Host, None, note("later")).expect("appends");
    write().expect("the twin: what is appended later is not of this log");
}
