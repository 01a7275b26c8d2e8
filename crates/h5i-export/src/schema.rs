//! The schema files against what this crate writes: neither may know more than the other.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::record::Record;
use crate::record::tests::{every_event, sample};
use crate::{BUNDLE_SCHEMA, BundleIndex, RECEIPT_SCHEMA};

/// A validator of one of the schemas.
pub(crate) fn validator(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).expect("json");
    jsonschema::meta::validate(&schema).expect("a schema of its draft");
    jsonschema::draft202012::new(&schema).expect("a schema")
}

/// Fails with every violation.
#[track_caller]
pub(crate) fn assert_valid(validator: &Validator, value: &Value) {
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}: {value}");
}

fn receipt_of(records: &[Record]) -> Value {
    let digest = format!("sha256:{}", "0".repeat(64));
    let id = "0".repeat(40);
    json!({
        "v": 1, "name": "a", "base": id, "base_tree": id, "tree": id, "tier": "process",
        "profile": "default", "policy_text": "", "policy": digest,
        "enforcement": [{ "name": "seccomp", "state": "off-by-choice", "detail": "" }],
        "not_enforced": ["x"], "patch": digest, "report": digest, "page": digest,
        "manifest": digest, "head": { "records": 0, "last": digest }, "records": records,
    })
}

fn index() -> Value {
    let digest = format!("sha256:{}", "0".repeat(64));
    let id = "0".repeat(40);
    json!({
        "v": 1, "name": "a", "base": id, "base_tree": id, "tree": id, "completeness": "complete",
        "files": { "patch.diff": digest, "receipt.json": digest, "report.html": digest, "report.md": digest },
    })
}

/// What reads a value; an error says why it does not.
type Reader = fn(&Value) -> Result<(), String>;

fn reads_receipt(value: &Value) -> Result<(), String> {
    let found = crate::receipt::read(value.to_string().as_bytes(), |_| ());
    found.map(drop).map_err(|error| format!("{error:?}"))
}

fn reads_index(value: &Value) -> Result<(), String> {
    let read = serde_json::from_value::<BundleIndex>(value.clone());
    read.map(drop).map_err(|error| error.to_string())
}

/// Whether schema and reader agree about a value.
#[track_caller]
fn agree(reads: Reader, validator: &Validator, value: &Value, expected: bool) {
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(errors.is_empty(), expected, "the schema of {value}: {errors:?}");
    let read = reads(value);
    assert_eq!(read.is_ok(), expected, "the reader of {value}: {:?}", read.err());
}

/// Every object in a value, as a path to it.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(at.to_owned());
            for (name, value) in fields {
                objects(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (number, value) in items.iter().enumerate() {
                objects(value, &format!("{at}/{number}"), found);
            }
        }
        _ => {}
    }
}

/// The fields that are left out where there is nothing to say.
fn may_be_missing(place: &str, kind: &str, name: &str) -> bool {
    match name {
        "cpu_ms" | "max_rss_bytes" => kind == "process-end",
        "unread" | "unwatched" | "unseen" => true,
        "base" => place.is_empty(),
        "named" | "errno" if kind == "flow-end" => true,
        "reason" => kind == "flow-end",
        "pid" | "program" if kind.starts_with("refused-") || kind == "flow-start" => {
            kind != "refused-call"
        }
        "address" | "port" => matches!(kind, "refused-flow" | "refused-address"),
        "name" => kind == "refused-name",
        "pid" | "program" if matches!(kind, "grant-use" | "grant-refused") => true,
        "lasts_ms" | "by_ms" => true,
        "status" if kind == "grant-use-end" => true,
        "request" => kind == "grant-refused",
        "rule" => kind == "network-change",
        "program" | "status" => kind == "reported-command",
        "reported" | "seen" => kind == "gap",
        "limit" => kind == "run-end",
        "used" | "allowed" => matches!(kind, "run-end" | "flow-end" | "refused-flow"),
        "run" | "exit_code" | "signal" | "torn" | "onto" | "branch" => {
            place.starts_with("/records/")
        }
        _ => false,
    }
}

/// A surplus field, and each field that is missing or of another type, are refused by both, at
/// every depth; fields that may be missing may be missing in both.
fn agree_about_every_change(reads: Reader, schema: &str, value: &Value) {
    let validator = validator(schema);
    agree(reads, &validator, value, true);
    let mut places = Vec::new();
    objects(value, "", &mut places);
    for place in places {
        let at = |value: &mut Value, edit: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            edit(value.pointer_mut(&place).and_then(Value::as_object_mut).expect("an object"));
        };
        let mut more = value.clone();
        at(&mut more, &|fields| drop(fields.insert("surplus".to_owned(), json!(1))));
        agree(reads, &validator, &more, false);
        let fields = value.pointer(&place).and_then(Value::as_object).expect("an object");
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or("").to_owned();
        for name in fields.keys() {
            let mut less = value.clone();
            at(&mut less, &|fields| drop(fields.remove(name)));
            agree(reads, &validator, &less, may_be_missing(&place, &kind, name));
            let mut other = value.clone();
            at(&mut other, &|fields| drop(fields.insert(name.clone(), json!([[]]))));
            agree(reads, &validator, &other, false);
        }
    }
}

#[test]
fn every_kind_of_record_is_in_the_schema_exactly_as_it_is_written() {
    for event in every_event() {
        let receipt = receipt_of(&[sample(event)]);
        agree_about_every_change(reads_receipt, RECEIPT_SCHEMA, &receipt);
    }
}

#[test]
fn the_schema_has_no_kind_that_is_never_written() {
    let schema: Value = serde_json::from_str(RECEIPT_SCHEMA).expect("json");
    let mut listed: Vec<&str> = schema["$defs"]["record"]["oneOf"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|kind| kind["$ref"].as_str()?.strip_prefix("#/$defs/record-"))
        .collect();
    let written: Vec<Value> =
        every_event().iter().map(|event| serde_json::to_value(event).expect("json")).collect();
    let mut written: Vec<&str> =
        written.iter().filter_map(|event| event["kind"].as_str()).collect();
    listed.sort_unstable();
    written.sort_unstable();
    written.dedup();
    assert_eq!(listed, written);
}

#[test]
fn the_index_is_in_its_schema_exactly_as_it_is_written() {
    let validator = validator(BUNDLE_SCHEMA);
    let index = index();
    agree(reads_index, &validator, &index, true);
    for (field, wrong) in [
        ("name", json!(1)),
        ("base", json!(1)),
        ("base_tree", json!(null)),
        ("tree", json!({})),
        ("completeness", json!("whole")),
        ("surplus", json!(1)),
        ("files", json!({ "patch.diff": "sha256:00" })),
    ] {
        let mut other = index.clone();
        other[field] = wrong;
        agree(reads_index, &validator, &other, false);
    }
    for field in ["v", "name", "base_tree", "tree", "completeness", "files"] {
        let mut less = index.clone();
        less.as_object_mut().expect("an object").remove(field);
        agree(reads_index, &validator, &less, false);
    }
}
