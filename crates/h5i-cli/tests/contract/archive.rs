//! What stays of removed boxes, and its end.

use std::fs;

use crate::shapes::{PurgedReceipts, Receipts};
use crate::stand::Stand;

#[test]
fn receipts_of_removed_boxes_are_listed_shown_and_purged() {
    let stand = Stand::new();
    let empty: Receipts = stand.ok(&["receipt", "ls", "--json"]).data();
    assert!(empty.receipts.is_empty());
    stand.ok(&["box", "create", "a", "--purpose", "mend it"]);
    stand.sh("a", "echo x > x; unshare -U true; true");
    let out = stand.export("a");
    let bundle = stand.ok(&["receipt", "verify", out.to_str().unwrap(), "--json"]).json();
    stand.ok(&["box", "rm", "a"]);
    // The one-shot's too.
    stand.ok(&["run", "--", "true"]);
    let listed: Receipts = stand.ok(&["receipt", "ls", "--json"]).data();
    let [a, shot] = &listed.receipts[..] else { panic!("{listed:?}") };
    assert_eq!((a.name.as_deref(), a.purpose.as_deref()), (Some("a"), Some("mend it")));
    assert_eq!((a.runs, a.refused, a.records, a.tier.as_deref()), (1, 1, 11, Some("process")));
    assert_eq!(a.bundles, [bundle["data"]["bundle"].as_str().unwrap()]);
    assert!(a.receipt.starts_with("a-") && a.created.is_some() && a.last.is_some(), "{a:?}");
    assert!(shot.name.as_deref().unwrap().starts_with("true-"), "{shot:?}");
    assert_eq!((shot.runs, shot.bundles.len()), (1, 0));
    let shown = stand.ok(&["receipt", "show", "a"]);
    for part in ["chain     whole", "purpose   mend it", "started sh", "exported sha256:"] {
        assert!(shown.text().contains(part), "{part}: {}", shown.text());
    }
    let data = stand.ok(&["receipt", "show", &a.receipt, "--json"]).json()["data"].clone();
    assert_eq!((&data["whole"], data["log"].as_array().unwrap().len()), (&true.into(), 11));
    assert_eq!(data["manifest"]["name"], "a");
    let purged: PurgedReceipts = stand.ok(&["receipt", "purge", "a", "--json"]).data();
    assert_eq!(purged.purged, [a.receipt.as_str()]);
    let left: Receipts = stand.ok(&["receipt", "ls", "--json"]).data();
    assert_eq!(left.receipts.len(), 1);
    stand.ok(&["receipt", "purge", "--all"]);
    assert!(stand.ok(&["receipt", "ls"]).err.contains("no receipts"));
}

#[test]
fn a_name_that_two_boxes_had_is_ambiguous_and_a_slip_removes_nothing() {
    let stand = Stand::new();
    for _ in 0..2 {
        stand.ok(&["box", "create", "a"]);
        stand.ok(&["box", "rm", "a"]);
    }
    let told = stand.h5i(&["receipt", "purge", "a", "--json"]);
    assert_eq!((told.code, told.failure().kind.as_str()), (2, "usage"));
    let keys = told.failure().details["receipts"].clone();
    let [first, second] = &keys.as_array().unwrap()[..] else { panic!("{keys}") };
    let (first, second) = (first.as_str().unwrap(), second.as_str().unwrap());
    let slip = stand.h5i(&["receipt", "purge", first, "zz", "--json"]);
    assert_eq!((slip.code, slip.failure().kind.as_str()), (3, "not-found"));
    let all: Receipts = stand.ok(&["receipt", "ls", "--json"]).data();
    assert_eq!(all.receipts.len(), 2);
    // The twin: their full names say which.
    stand.ok(&["receipt", "purge", first, second]);
    assert_eq!(stand.h5i(&["receipt", "purge"]).code, 2);
}

#[test]
fn a_receipt_that_was_changed_is_a_finding() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", "true");
    stand.ok(&["box", "rm", "a"]);
    let all: Receipts = stand.ok(&["receipt", "ls", "--json"]).data();
    let log =
        stand.state().join("h5i/archive").join(&all.receipts[0].receipt).join("receipt.jsonl");
    let original = fs::read_to_string(&log).unwrap();
    fs::write(&log, original.replacen("\"cwd\":\"/work\"", "\"cwd\":\"/wirk\"", 1)).unwrap();
    let said = stand.h5i(&["receipt", "show", "a"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.text().contains("BROKEN: record 1 of the log"), "{}", said.text());
    fs::write(&log, original).unwrap();
    stand.ok(&["receipt", "show", "a"]);
}

#[test]
fn a_receipt_alone_is_verified_too() {
    let stand = Stand::new();
    let out = stand.exported("a", "echo x > x").join("receipt.json");
    let said = stand.ok(&["receipt", "verify", out.to_str().unwrap()]);
    assert!(said.text().contains("the chain holds"), "{}", said.text());
    let text = fs::read_to_string(&out).unwrap();
    fs::write(&out, text.replacen("\"tier\": \"process\"", "\"tier\": \"microvm\"", 1)).unwrap();
    let said = stand.h5i(&["receipt", "verify", out.to_str().unwrap(), "--json"]);
    assert_eq!(said.code, 1);
    assert!(said.failure().message.contains("`tier`"), "{:?}", said.failure());
}
