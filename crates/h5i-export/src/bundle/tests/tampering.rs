//! Every class of change to a bundle, with every digest that the one who changes it can make anew.

use std::fs;

use serde_json::{Value, json};

use super::Case;
use crate::bundle::{INDEX, PAGE, PATCH, RECEIPT, REPORT};
use crate::digest::Digest;

/// How far the one who changes a bundle goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Effort {
    /// The file only.
    File,
    /// Also bundle.json.
    Index,
    /// Also the receipt.
    Receipt,
}

/// One class of change, and what is said of it at each effort.
struct Tampering {
    what: &'static str,
    file: &'static str,
    edit: fn(&mut Vec<u8>),
    said: &'static [(Effort, &'static str)],
}

fn replace(content: &mut Vec<u8>, from: &str, to: &str) {
    let text = String::from_utf8(std::mem::take(content)).expect("text");
    let edited = text.replacen(from, to, 1);
    assert_ne!(edited, text, "{from}");
    *content = edited.into_bytes();
}

fn receipt(content: &mut Vec<u8>, edit: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(content).expect("json");
    edit(&mut value);
    *content = serde_json::to_vec_pretty(&value).expect("json");
}

fn records(content: &mut Vec<u8>, edit: impl FnOnce(&mut Vec<Value>)) {
    receipt(content, |value| edit(value["records"].as_array_mut().expect("a list")));
}

const TAMPERINGS: &[Tampering] = &[
    Tampering {
        what: "record removed from the middle",
        file: RECEIPT,
        edit: |content| records(content, |records| drop(records.remove(1))),
        said: &[
            (Effort::File, "`receipt.json` was changed"),
            (Effort::Index, "record 1 of the log: it is missing"),
        ],
    },
    Tampering {
        what: "record removed from the end",
        file: RECEIPT,
        edit: |content| records(content, |records| drop(records.pop())),
        said: &[(Effort::Index, "record 2 of the log: the log ends before it")],
    },
    Tampering {
        what: "first record removed",
        file: RECEIPT,
        edit: |content| records(content, |records| drop(records.remove(0))),
        said: &[(Effort::Index, "record 0 of the log: it is missing")],
    },
    Tampering {
        what: "records swapped",
        file: RECEIPT,
        edit: |content| records(content, |records| records.swap(1, 2)),
        said: &[(Effort::Index, "record 1 of the log: it is missing or out of its place")],
    },
    Tampering {
        what: "records swapped and numbered anew",
        file: RECEIPT,
        edit: |content| {
            records(content, |records| {
                records.swap(1, 2);
                records[1]["seq"] = json!(1);
                records[2]["seq"] = json!(2);
            });
        },
        said: &[(Effort::Index, "record 0 of the log: it was changed")],
    },
    Tampering {
        what: "record edited",
        file: RECEIPT,
        edit: |content| records(content, |records| records[1]["text"] = json!("other")),
        said: &[(Effort::Index, "record 1 of the log: it was changed")],
    },
    Tampering {
        what: "last record edited",
        file: RECEIPT,
        edit: |content| records(content, |records| records[2]["text"] = json!("other")),
        said: &[(Effort::Index, "record 2 of the log: it was changed")],
    },
    Tampering {
        what: "record added",
        file: RECEIPT,
        edit: |content| {
            records(content, |records| {
                let mut more = records[2].clone();
                more["seq"] = json!(3);
                records.push(more);
            });
        },
        said: &[(Effort::Index, "record 2 of the log: it was changed")],
    },
    Tampering {
        what: "patch edited",
        file: PATCH,
        edit: |content| replace(content, "+b", "+c"),
        said: &[
            (Effort::File, "`patch.diff` was changed"),
            (Effort::Index, "`patch` of the receipt is not that of the bundle"),
            (Effort::Receipt, "the patch does not apply to the base"),
        ],
    },
    Tampering {
        what: "patch cut",
        file: PATCH,
        edit: |content| content.clear(),
        said: &[(Effort::Receipt, "the patch gives tree")],
    },
    Tampering {
        what: "report edited",
        file: REPORT,
        edit: |content| replace(content, "2 files", "1 file"),
        said: &[
            (Effort::File, "`report.md` was changed"),
            (Effort::Index, "`report` of the receipt is not that of the bundle"),
        ],
    },
    Tampering {
        what: "page edited",
        file: PAGE,
        edit: |content| replace(content, "2 files", "1 file"),
        said: &[
            (Effort::File, "`report.html` was changed"),
            (Effort::Index, "`page` of the receipt is not that of the bundle"),
        ],
    },
    Tampering {
        what: "tier in the receipt edited",
        file: RECEIPT,
        edit: |content| receipt(content, |receipt| receipt["tier"] = json!("microvm")),
        said: &[
            (Effort::File, "`receipt.json` was changed"),
            (Effort::Index, "`tier` of the receipt is not that of the box's first record"),
        ],
    },
    Tampering {
        what: "policy in the receipt edited",
        file: RECEIPT,
        edit: |content| {
            receipt(content, |receipt| {
                let text = receipt["policy_text"].as_str().expect("text");
                let other = text.replacen("tier = \"process\"", "tier = \"microvm\"", 1);
                assert_ne!(text, other);
                receipt["policy_text"] = json!(other);
            });
        },
        said: &[(Effort::Index, "the policy in the receipt has sha256:")],
    },
    Tampering {
        what: "policy digest in the receipt edited",
        file: RECEIPT,
        edit: |content| receipt(content, |receipt| receipt["policy"] = json!("sha256:00")),
        said: &[(Effort::Index, "`policy` of the receipt is not that of the box's first record")],
    },
    Tampering {
        what: "tree in the receipt edited",
        file: RECEIPT,
        edit: |content| receipt(content, |receipt| receipt["tree"] = json!("0")),
        said: &[(Effort::Index, "`tree` of the receipt is not that of the bundle")],
    },
    Tampering {
        what: "a field added to the receipt",
        file: RECEIPT,
        edit: |content| receipt(content, |receipt| receipt["more"] = json!(1)),
        said: &[(Effort::Index, "`receipt.json` is malformed")],
    },
    Tampering {
        what: "a field added to the index",
        file: INDEX,
        edit: |content| receipt(content, |index| index["more"] = json!(1)),
        said: &[(Effort::File, "`bundle.json` is malformed")],
    },
    Tampering {
        what: "completeness in the index edited",
        file: INDEX,
        edit: |content| receipt(content, |index| index["completeness"] = json!("incomplete")),
        said: &[(Effort::File, "`completeness` of the receipt is not that of the bundle")],
    },
    Tampering {
        what: "a file left out of the index",
        file: INDEX,
        edit: |content| {
            receipt(content, |index| {
                index["files"].as_object_mut().expect("an object").remove(REPORT);
            });
        },
        said: &[(Effort::File, "bundle.json does not list")],
    },
];

/// Changes one file and makes the digests anew as far as the effort goes.
fn tamper(case: &Case, tampering: &Tampering, effort: Effort) {
    let path = case.out.join(tampering.file);
    let before = fs::read(&path).expect("reads");
    let mut after = before.clone();
    (tampering.edit)(&mut after);
    fs::write(&path, &after).expect("writes");
    let (old, new) = (Digest::of(&before).to_string(), Digest::of(&after).to_string());
    match effort {
        Effort::File => {}
        Effort::Index => case.edit(INDEX, &old, &new, &[]),
        Effort::Receipt => {
            case.edit(INDEX, &old, &new, &[]);
            case.edit(RECEIPT, &old, &new, &[INDEX]);
        }
    }
}

#[test]
fn every_class_of_tampering_is_caught_and_named() {
    for tampering in TAMPERINGS {
        for (effort, said) in tampering.said {
            let case = Case::new();
            case.write(super::Existing::Refuse).expect("writes");
            case.verify().expect("the twin: as written");
            tamper(&case, tampering, *effort);
            let error = case.verify().expect_err(tampering.what);
            let mut text = error.to_string();
            let mut next = std::error::Error::source(&error);
            while let Some(source) = next {
                text = format!("{text}: {source}");
                next = source.source();
            }
            assert!(text.contains(said), "{} ({effort:?}): {text}", tampering.what);
        }
    }
}
