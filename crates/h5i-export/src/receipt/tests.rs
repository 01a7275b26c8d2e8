//! Receipts read one record after the other, against the same read whole.

use serde_json::{Value, json};

use super::{Found, read};
use crate::digest::Digest;
use crate::log::{ChainHead, Follow};
use crate::record::{ByteText, Event, Lane, Outcome, Record, Timestamp};

/// Records that follow one another from `manifest` on.
fn chained(manifest: Digest, count: u64) -> Vec<Record> {
    let mut prev = manifest;
    let of = |seq: u64| {
        let event = match seq % 3 {
            0 => Event::Note { text: ByteText::new(format!("note {seq} \",\"prev\":\"x\" é")) },
            1 => {
                Event::Exec { proc: seq, pid: 9, exe: ByteText::new(b"/\xff".to_vec()), failed: 0 }
            }
            _ => Event::RunEnd {
                outcome: Outcome::Exited,
                exit_code: Some(0),
                signal: None,
                limit: None,
                used: None,
                allowed: None,
                wall_ms: seq,
                cpu_ms: 1,
                max_rss_bytes: 2,
            },
        };
        let at = Timestamp::from_unix_micros(seq);
        let run = seq.is_multiple_of(2).then_some(seq);
        let record = Record { seq, at, lane: Lane::Host, run, event, prev };
        prev = Digest::of(record.to_line().expect("json").as_bytes());
        record
    };
    (0..count).map(of).collect()
}

fn head_of(records: &[Record], manifest: Digest) -> ChainHead {
    let last = records.last().map(|record| {
        let line = record.to_line().expect("json");
        ChainHead { records: record.seq + 1, last: Digest::of(line.as_bytes()) }
    });
    last.unwrap_or_else(|| ChainHead::empty(manifest))
}

/// A receipt's text with these elements as its records, and this head.
fn text(manifest: Digest, head: ChainHead, records: &[Value]) -> String {
    let digest = Digest::of(b"");
    json!({
        "v": 1, "name": "a", "base_tree": "0", "tree": "0", "tier": "process", "profile": "default",
        "policy_text": "", "policy": "p", "enforcement": [], "not_enforced": [], "patch": digest,
        "report": digest, "page": digest, "manifest": manifest, "head": head, "records": records,
    })
    .to_string()
}

/// What a whole reading in memory says: the records' fault in the chain, or that it is no receipt.
fn whole(text: &[u8]) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(text) else {
        return "no receipt".to_owned();
    };
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let records = serde_json::from_value::<Vec<Record>>(field("records"));
    let (Ok(records), Ok(manifest), Ok(head)) = (
        records,
        serde_json::from_value::<Digest>(field("manifest")),
        serde_json::from_value::<ChainHead>(field("head")),
    ) else {
        return "no receipt".to_owned();
    };
    let mut follow = Follow::new(manifest, Some(head));
    for record in &records {
        let line = record.to_line().expect("json");
        if let Err(error) = follow.step(record, Digest::of(line.as_bytes())) {
            return format!("{error:?}");
        }
    }
    match follow.end() {
        Err(error) => format!("{error:?}"),
        Ok(end) if end == head => "whole".to_owned(),
        Ok(_) => format!("surplus at {}", head.records),
    }
}

/// What the streaming reading says, in the same words.
fn streamed(text: &[u8]) -> String {
    let mut seen = 0;
    match read(text, |_| seen += 1) {
        Err(_) => "no receipt".to_owned(),
        Ok(Found { chain: Ok(()), receipt }) => {
            assert_eq!(seen, receipt.head.records);
            "whole".to_owned()
        }
        Ok(Found { chain: Err(error), .. }) => match error.fault {
            crate::log::ChainFault::Surplus { .. } => format!("surplus at {}", error.record),
            _ => format!("{error:?}"),
        },
    }
}

#[track_caller]
fn alike(text: &[u8]) -> String {
    let said = streamed(text);
    assert_eq!(said, whole(text), "{}", String::from_utf8_lossy(text));
    said
}

/// What one did to the records of a receipt.
type Change = fn(&mut Vec<Value>, &[Value]);

#[test]
fn every_change_of_the_records_is_judged_as_by_a_whole_reading() {
    const CHANGES: &[(&str, Change)] = &[
        ("as written", |_, _| ()),
        ("none", |records, _| records.clear()),
        ("the first is missing", |records, _| drop(records.remove(0))),
        ("one is missing", |records, _| drop(records.remove(2))),
        ("the last is missing", |records, _| drop(records.pop())),
        ("two changed places", |records, _| records.swap(1, 3)),
        ("all the other way round", |records, _| records.reverse()),
        ("one is there twice", |records, _| records.insert(3, records[2].clone())),
        ("the last is there twice", |records, _| records.push(records[4].clone())),
        ("one is edited", |records, _| records[2]["wall_ms"] = json!(7)),
        ("the last is edited", |records, _| records[4]["exe"] = json!("/bin/true")),
        ("one has another lane", |records, _| records[1]["lane"] = json!("kernel")),
        ("one has another run", |records, _| records[0]["run"] = json!(9)),
        ("one has another number", |records, _| records[3]["seq"] = json!(9)),
        ("one has another prev", |records, _| records[3]["prev"] = json!(Digest::of(b"x"))),
        ("one has a field more", |records, _| records[3]["x"] = json!(1)),
        ("one has a null", |records, _| records[1]["run"] = json!(null)),
        ("one lacks a field", |records, _| drop(records[3].as_object_mut().unwrap().remove("at"))),
        ("one is no object", |records, _| records[3] = json!("x")),
        ("the end is another log's", |records, other| {
            records.splice(3.., other[3..].to_vec()).for_each(drop)
        }),
        ("the beginning is another log's", |records, other| {
            records.splice(..3, other[..3].to_vec()).for_each(drop);
        }),
        ("all of it is another log's", |records, other| *records = other.to_vec()),
        ("another log's follow", |records, other| records.extend(other[5..].to_vec())),
    ];
    let (manifest, other) = (Digest::of(b"manifest"), Digest::of(b"other"));
    let values = |records: &[Record]| -> Vec<Value> {
        records.iter().map(|record| serde_json::to_value(record).expect("json")).collect()
    };
    let records = chained(manifest, 5);
    let (head, others) = (head_of(&records, manifest), values(&chained(other, 8)));
    let mut verdicts = Vec::new();
    for (what, change) in CHANGES {
        let mut changed = values(&records);
        change(&mut changed, &others);
        let text = text(manifest, head, &changed);
        let said = alike(text.as_bytes());
        assert_eq!(said == "whole", *what == "as written", "{what}: {said}");
        // In another layout it is the same receipt.
        let value: Value = serde_json::from_str(&text).expect("json");
        let pretty = serde_json::to_string_pretty(&value).expect("json");
        assert_eq!(alike(pretty.as_bytes()), said, "{what}");
        verdicts.push(said);
    }
    verdicts.sort();
    verdicts.dedup();
    assert!(verdicts.len() > 8, "the changes are told apart: {verdicts:?}");
}

#[test]
fn cut_at_every_byte_of_the_last_two_records_it_is_no_receipt() {
    let manifest = Digest::of(b"manifest");
    let records = chained(manifest, 6);
    let mut log = Vec::new();
    for record in &records {
        log.extend(record.to_line().expect("json").into_bytes());
        log.push(b'\n');
    }
    let text = text(manifest, head_of(&records, manifest), &[]);
    let Found { receipt, .. } = read(text.as_bytes(), |_| ()).expect("a receipt");
    let mut written = Vec::new();
    receipt.write(&log[..], &mut written).expect("memory");
    assert_eq!(alike(&written), "whole");
    let last_two: usize =
        records[4..].iter().map(|record| record.to_line().expect("json").len() + 2).sum();
    for cut in written.len() - last_two - 6..written.len() - 1 {
        assert_eq!(alike(&written[..cut]), "no receipt", "cut at {cut}");
    }
    // The same of a log: what is cut off is no record, and what is before it stays.
    for cut in log.len() - last_two..log.len() {
        let part = &log[..cut];
        let lines = part.iter().filter(|byte| **byte == b'\n').count() as u64;
        let mut seen = 0;
        let said = crate::log::verify_chain(part, manifest, Some(receipt.head), |_| seen += 1);
        assert!(said.is_err_and(|error| error.record == lines), "cut at {cut}");
        assert_eq!(seen, lines);
    }
}

#[test]
fn records_stand_behind_what_they_are_compared_with_and_no_field_is_there_twice() {
    let manifest = Digest::of(b"manifest");
    let good = text(manifest, ChainHead::empty(manifest), &[]);
    assert_eq!(streamed(good.as_bytes()), "whole", "the twin");
    let said = |text: &str| read(text.as_bytes(), |_| ()).expect_err("no receipt").to_string();
    let early = good.replacen('{', "{\"records\":[],", 1);
    assert!(said(&early).contains("stands before"), "{}", said(&early));
    let twice = good.replacen('{', "{\"name\":\"b\",", 1);
    assert!(said(&twice).contains("`name` is there twice"), "{}", said(&twice));
    let again = good.replacen("\"records\":[]", "\"records\":[],\"records\":[]", 1);
    assert!(said(&again).contains("`records` is there twice"), "{}", said(&again));
}

/// Why a text is no receipt, with its causes.
#[track_caller]
fn refusal(text: &str) -> String {
    let error = read(text.as_bytes(), |_| ()).expect_err("no receipt");
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {cause}")
}

#[test]
fn a_key_that_is_twice_in_a_record_or_a_field_is_refused() {
    let manifest = Digest::of(b"manifest");
    let records = chained(manifest, 3);
    let values: Vec<_> =
        records.iter().map(|record| serde_json::to_value(record).expect("json")).collect();
    let good = text(manifest, head_of(&records, manifest), &values);
    // The last of two equal keys would be taken, and what is before it be shown by others.
    for (what, from, twice) in [
        ("a record's field", "\"kind\":\"exec\"", "\"kind\":\"note\",\"kind\":\"exec\""),
        ("the same in other letters", "\"pid\":9", "\"p\\u0069d\":1,\"pid\":9"),
        ("an object in a record", "{\"b64\":", "{\"b64\":\"YQ==\",\"b64\":"),
        ("an object in a field", "{\"last\":", &format!("{{\"last\":\"{manifest}\",\"last\":")),
        ("a count", "\"records\":3", "\"records\":2,\"records\":3"),
    ] {
        assert_eq!(streamed(good.as_bytes()), "whole", "the twin");
        let changed = good.replacen(from, twice, 1);
        assert_ne!(changed, good, "{what}");
        let said = refusal(&changed);
        assert!(said.contains("twice") || said.contains("duplicate field"), "{what}: {said}");
    }
}

/// Gives a text, so many blanks, and a failure: nobody who stops in time sees that.
fn long_after(text: &str, blanks: u64) -> impl std::io::Read + '_ {
    struct Fails;
    impl std::io::Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("read to its end"))
        }
    }
    use std::io::Read as _;
    text.as_bytes().chain(std::io::repeat(b'0').take(blanks)).chain(Fails)
}

#[test]
fn unknown_names_and_long_values_are_refused_before_they_are_read() {
    let manifest = Digest::of(b"manifest");
    let records = chained(manifest, 2);
    let good = text(manifest, head_of(&records, manifest), &[]);
    let said = |text: &str| {
        let read = read(long_after(text, 8 << 20), |_| ()).expect_err("no receipt");
        let cause = std::error::Error::source(&read).map(ToString::to_string).unwrap_or_default();
        format!("{read}: {cause}")
    };
    assert!(said("{\"x\\n\":").contains("no field `x\\n`"), "{}", said("{\"x\\n\":"));
    assert!(said("{\"").contains("longer than 128 bytes"), "{}", said("{\""));
    assert!(said("{\"name\":\"").contains("longer than 1048576 bytes"));
    assert!(said("{\"policy_text\":\"").contains("longer than 6291458 bytes"));
    // One record that is one, and a long one.
    let (begun, _) = good.split_once("\"records\":[]").expect("a list");
    let begun = format!("{begun}\"records\":[");
    let first = records[0].to_line().expect("json");
    let long = said(&format!("{begun}{first},{{\"v\":1,\"x\":\""));
    assert!(long.contains("record 1 is longer than 1048576 bytes"), "{long}");
    // The twins: the longest that may be.
    let policy = "x".repeat(h5i_policy::PolicyDocument::LARGEST);
    let with = good.replacen("\"policy_text\":\"\"", &format!("\"policy_text\":\"{policy}\""), 1);
    assert_eq!(read(with.as_bytes(), |_| ()).expect("a receipt").receipt.policy_text, policy);
    let mut note = records[0].clone();
    let Event::Note { text: say } = &mut note.event else { panic!("{note:?}") };
    *say = ByteText::new(Vec::new());
    let bare = note.to_line().expect("json").len();
    let mut lengths = Vec::new();
    for length in [crate::log::MAX_LINE, crate::log::MAX_LINE + 1] {
        let Event::Note { text: say } = &mut note.event else { panic!("{note:?}") };
        *say = ByteText::new("x".repeat(length - bare));
        let value = serde_json::to_value(&note).expect("json");
        lengths.push(streamed(
            text(manifest, head_of(&[note.clone()], manifest), &[value]).as_bytes(),
        ));
    }
    assert_eq!(lengths, ["whole", "no receipt"]);
}
