use std::fs;
use std::path::PathBuf;

use super::{
    ChainFault, ChainHead, LogReader, LogWriter, MAX_LINE, OpenError, Opened, ReadError,
    verify_chain,
};
use crate::digest::Digest;
use crate::record::{ByteText, Event, Lane, Timestamp};

fn manifest() -> Digest {
    Digest::of(b"manifest")
}

fn now() -> Timestamp {
    Timestamp::from_unix_micros(1)
}

fn note(text: &str) -> Event {
    Event::Note { text: ByteText::new(text) }
}

/// A log with `count` notes, and its bytes.
fn log_of(count: usize) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("receipt.jsonl");
    let (mut log, opened) = LogWriter::open(&path, manifest(), now()).expect("opens");
    assert_eq!(opened, Opened::Empty);
    for number in 0..count {
        log.append(now(), Lane::Host, None, note(&format!("note {number}"))).expect("appends");
    }
    log.sync().expect("syncs");
    let bytes = fs::read(&path).expect("reads");
    (dir, path, bytes)
}

fn fault(lines: &[&[u8]], expected: Option<ChainHead>) -> (u64, ChainFault) {
    let bytes = lines.concat();
    let error = verify_chain(&bytes[..], manifest(), expected, |_| ()).expect_err("a bad log");
    (error.record, error.fault)
}

fn head_of(bytes: &[u8]) -> ChainHead {
    verify_chain(bytes, manifest(), None, |_| ()).expect("a good log")
}

#[test]
fn a_log_as_written_verifies_and_its_head_is_the_writers() {
    let (_dir, path, bytes) = log_of(5);
    let (log, opened) = LogWriter::open(&path, manifest(), now()).expect("opens again");
    assert_eq!(opened, Opened::Whole);
    assert_eq!(log.head(), head_of(&bytes));
    assert_eq!(log.head().records, 5);
    let mut seen = 0;
    verify_chain(&bytes[..], manifest(), Some(log.head()), |_| seen += 1).expect("a good log");
    assert_eq!(seen, 5);
}

#[test]
fn the_first_bad_record_is_named() {
    let (_dir, _path, bytes) = log_of(4);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let [a, b, c, d] = lines[..] else { panic!("four lines") };
    let head = Some(head_of(&bytes));
    let edited = String::from_utf8_lossy(b).replace("note 1", "note 9").into_bytes();
    let late = String::from_utf8_lossy(d).replace("note 3", "note 9").into_bytes();
    let whole = "the twin: unchanged";
    verify_chain(&bytes[..], manifest(), head, |_| ()).expect(whole);

    assert!(matches!(fault(&[a, c, d], head), (1, ChainFault::Missing { found: 2 })));
    assert!(matches!(fault(&[a, c, b, d], head), (1, ChainFault::Missing { found: 2 })));
    assert!(matches!(fault(&[a, b, b, c, d], head), (2, ChainFault::Missing { found: 1 })));
    assert!(matches!(fault(&[a, &edited, c, d], head), (1, ChainFault::Changed)));
    assert!(matches!(fault(&[a, b, c, &late], head), (3, ChainFault::Changed)));
    assert!(matches!(fault(&[a, b], head), (2, ChainFault::CutShort { expected: 4 })));
    assert!(matches!(fault(&[], head), (0, ChainFault::CutShort { expected: 4 })));
    assert!(matches!(
        fault(&[a, b, c, &d[..20]], head),
        (3, ChainFault::Unreadable(ReadError::Torn { .. }))
    ));
    assert!(matches!(
        fault(&[a, b"{}\n", c], head),
        (1, ChainFault::Unreadable(ReadError::Record { .. }))
    ));
    let other =
        verify_chain(&bytes[..], Digest::of(b"other"), head, |_| ()).expect_err("other box");
    assert!(matches!((other.record, other.fault), (0, ChainFault::OtherManifest)));
}

#[test]
fn a_log_that_grew_after_its_head_was_noted_still_verifies() {
    let (_dir, path, bytes) = log_of(2);
    let noted = head_of(&bytes);
    let (mut log, _) = LogWriter::open(&path, manifest(), now()).expect("opens");
    log.append(now(), Lane::Box, Some(1), note("later")).expect("appends");
    let bytes = fs::read(&path).expect("reads");
    let head = verify_chain(&bytes[..], manifest(), Some(noted), |_| ()).expect("a good log");
    assert_eq!(head, log.head());
}

#[test]
fn cut_at_any_byte_of_the_last_two_records_nothing_whole_is_lost() {
    let (_dir, path, bytes) = log_of(4);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let kept = lines[0].len() + lines[1].len();
    for cut in kept..=bytes.len() {
        fs::write(&path, &bytes[..cut]).expect("writes");
        let whole = bytes[..cut].iter().filter(|&&byte| byte == b'\n').count() as u64;
        let at_line_end = bytes[cut - 1] == b'\n';
        let (mut log, opened) = LogWriter::open(&path, manifest(), now()).expect("opens");
        assert_eq!(opened == Opened::Whole, at_line_end, "cut at {cut}");
        log.append(now(), Lane::Host, None, note("after")).expect("appends");
        let after = fs::read(&path).expect("reads");
        let mut kinds = Vec::new();
        let head =
            verify_chain(&after[..], manifest(), None, |record| kinds.push(record.event.clone()))
                .expect("the chain holds");
        assert_eq!(head.records, whole + 1 + u64::from(!at_line_end), "cut at {cut}");
        let aside = path.with_file_name(format!("receipt.jsonl.torn-{whole}"));
        if at_line_end {
            fs::metadata(&aside).expect_err("nothing is moved aside");
        } else {
            let torn = fs::read(&aside).expect("the torn bytes are kept");
            assert!(bytes[..cut].ends_with(&torn));
            let expected =
                Event::CutOff { torn_bytes: torn.len() as u64, torn: Some(Digest::of(&torn)) };
            assert_eq!(kinds[usize::try_from(whole).expect("few")], expected);
            fs::remove_file(&aside).expect("removes");
        }
    }
}

#[test]
fn an_opening_that_was_interrupted_is_finished_by_the_next() {
    let (_dir, path, bytes) = log_of(2);
    // The torn bytes are aside and cut off, the record of it is not there yet.
    fs::write(path.with_file_name("receipt.jsonl.torn-2"), b"{\"v\":1,").expect("writes");
    let (log, opened) = LogWriter::open(&path, manifest(), now()).expect("opens");
    assert_eq!(opened, Opened::Torn { bytes: 7 });
    assert_eq!(log.head().records, 3);
    // The twin: with the record there, the next opening finds a whole log.
    let (_, opened) = LogWriter::open(&path, manifest(), now()).expect("opens");
    assert_eq!(opened, Opened::Whole);
    assert!(fs::read(&path).expect("reads").starts_with(&bytes));
}

#[test]
fn a_last_line_that_is_no_record_is_refused_and_left_alone() {
    let (_dir, path, mut bytes) = log_of(2);
    bytes.extend_from_slice(b"not a record\n");
    fs::write(&path, &bytes).expect("writes");
    let error = LogWriter::open(&path, manifest(), now()).expect_err("changed by something else");
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
    assert_eq!(fs::read(&path).expect("reads"), bytes);
}

#[test]
fn a_link_in_the_logs_place_is_not_followed() {
    let (dir, path, bytes) = log_of(1);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("links");
    let error = LogWriter::open(&link, manifest(), now()).expect_err("a link");
    assert!(matches!(error, OpenError::Io { operation: "open", .. }), "{error:?}");
    assert_eq!(fs::read(&path).expect("reads"), bytes);
}

#[test]
fn lines_are_bounded_for_reader_and_writer() {
    let (_dir, path, bytes) = log_of(1);
    let (mut log, _) = LogWriter::open(&path, manifest(), now()).expect("opens");
    log.append(now(), Lane::Box, None, note(&"x".repeat(MAX_LINE))).expect_err("too long");
    assert_eq!(fs::read(&path).expect("reads"), bytes, "a refused record leaves nothing");
    log.append(now(), Lane::Box, None, note(&"x".repeat(MAX_LINE - 300))).expect("the twin fits");
    let long = vec![b'x'; MAX_LINE + 2];
    let error = LogReader::new(&long[..]).next().expect("a line").expect_err("too long");
    assert!(matches!(error, ReadError::TooLong { number: 0 }));
}
