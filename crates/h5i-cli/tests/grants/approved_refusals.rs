//! J9: an approval that is spent, over, of something else, or nobody's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::approved::{approved, exported, made};
use crate::with_grants::With;

/// Asks for box `b`, which is refused with these words and leaves no box.
fn refused(with: &With, bundle: &str, id: &str, code: i32, why: &str) {
    let before = with.stand.box_directories();
    let said = with.h5i(&made("b", bundle, id));
    assert!(said.code == code && said.err.contains(why), "{why}: {said:?}");
    assert_eq!(with.stand.box_directories(), before);
}

#[test]
fn an_approval_is_spent_once_in_its_time_for_its_digest() {
    let with = With::deploying("reverse");
    exported(&with, "out", "echo new > new");
    let id = approved(&with, "out", "10m");
    exported(&with, "other", "echo newer > new");
    refused(&with, "other", &id, 4, "is of another bundle");
    // The clock goes on before the program is started.
    let late = approved(&with, "out", "1ms");
    refused(&with, "out", &late, 4, "ended at");
    refused(&with, "out", "0123456789ab", 3, "there is no approval");
    // The twin: none of that has spent it.
    with.ok(&made("c", "out", &id));
    refused(&with, "out", &id, 4, "was used at");
    // Nor does the end of its box give it back.
    with.ok(&["box", "rm", "--force", "c"]);
    refused(&with, "out", &id, 4, "was used at");
    let list = with.ok(&["box", "approve", "--list"]);
    assert!(list.text().contains("used for box c") && list.text().contains("over"), "{list:?}");
}

#[test]
fn what_was_changed_is_not_what_was_approved() {
    let with = With::deploying("reverse");
    let out = exported(&with, "out", "echo new > new");
    let id = approved(&with, "out", "10m");
    let original = fs::read(out.join("patch.diff")).unwrap();
    fs::write(out.join("patch.diff"), [&original[..], b"\n"].concat()).unwrap();
    let approve = ["box", "approve", "a", "--bundle", "out", "--for", "10m", "--yes"];
    assert_eq!(with.h5i(&approve).code, 1);
    refused(&with, "out", &id, 1, "patch.diff");
    fs::write(out.join("patch.diff"), original).unwrap();
    let index = fs::read(out.join("bundle.json")).unwrap();
    fs::write(out.join("bundle.json"), [&index[..], b"\n"].concat()).unwrap();
    let said = with.h5i(&approve);
    assert!(said.code == 4 && said.err.contains("does not know the bundle"), "{said:?}");
    refused(&with, "out", &id, 4, "does not know the bundle");
    fs::write(out.join("bundle.json"), index).unwrap();
    // Another box's log does not know it either.
    with.ok(&["box", "create", "x"]);
    let said = with.h5i(&["box", "approve", "x", "--bundle", "out", "--for", "10m", "--yes"]);
    assert!(said.code == 4 && said.err.contains("does not know the bundle"), "{said:?}");
    // Nobody was asked.
    let said = with.h5i(&approve[..7]);
    assert!(said.code == 4 && said.err.contains("consent"), "{said:?}");
    // The twin.
    with.ok(&made("b", "out", &id));
}

#[test]
fn a_damaged_list_approves_nothing_and_says_so() {
    let with = With::deploying("reverse");
    exported(&with, "out", "echo new > new");
    let id = approved(&with, "out", "10m");
    let path = with.stand.state().join("h5i/approvals.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let list = fs::read(&path).unwrap();
    let text = String::from_utf8(list.clone()).unwrap();
    let long = [vec![b' '; 300 * 1024], list.clone()].concat();
    let unknown = text.replacen("\"v\"", "\"more\": 1, \"v\"", 1).into_bytes();
    for damaged in [list[..list.len() / 2].to_vec(), Vec::new(), unknown, long] {
        fs::write(&path, &damaged).unwrap();
        refused(&with, "out", &id, 1, "is damaged, so nothing is approved");
        assert_eq!(with.h5i(&["box", "approve", "--list"]).code, 1);
        let approve = ["box", "approve", "a", "--bundle", "out", "--for", "10m", "--yes"];
        assert_eq!(with.h5i(&approve).code, 1);
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::write(&path, list).unwrap();
    with.ok(&made("b", "out", &id));
}

#[test]
fn a_person_takes_an_approval_back() {
    let with = With::deploying("reverse");
    exported(&with, "out", "echo new > new");
    let (id, other) = (approved(&with, "out", "10m"), approved(&with, "out", "10m"));
    with.ok(&["box", "approve", "--revoke", &id]);
    refused(&with, "out", &id, 3, "there is no approval");
    assert_eq!(with.h5i(&["box", "approve", "--revoke", &id]).code, 3);
    with.ok(&made("b", "out", &other));
}

#[test]
fn a_box_that_would_hold_more_or_nothing_is_refused_before_it_costs_the_approval() {
    let with = With::deploying("reverse");
    exported(&with, "out", "echo new > new");
    let id = approved(&with, "out", "10m");
    let with_more = |more: &[&str]| with.h5i(&[&made("b", "out", &id)[..], more].concat());
    let said = with_more(&["--set", "history=\"full\""]);
    assert!(said.code == 4 && said.err.contains("no history"), "{said:?}");
    assert_eq!(with_more(&["--dirty"]).code, 2);
    let none = ["box", "create", "b", "--artifact", "out", "--grant", &id];
    let said = with.h5i(&none);
    assert!(said.code == 4 && said.err.contains("has no grant"), "{said:?}");
    assert_eq!(with.h5i(&none[..5]).code, 2);
    with.ok(&["box", "create", "taken"]);
    assert_eq!(with.h5i(&made("taken", "out", &id)).code, 4);
    with.ok(&made("b", "out", &id));
}

#[test]
fn nothing_in_a_box_approves() {
    let with = With::deploying("reverse");
    exported(&with, "out", "echo new > new");
    let id = approved(&with, "out", "10m");
    let list = with.ok(&["box", "approve", "--list"]).out;
    let create = made("b", "/work", &id).join(" ");
    for words in [
        "box approve a --bundle /work --for 10m --yes",
        "box approve --list",
        &format!("box approve --revoke {id}"),
        &create,
    ] {
        let said = with.h5i(&["box", "run", "a", "--", "sh", "-c", &format!("h5i {words}")]);
        assert!(said.code == 4 && said.err.contains("the inside of a box"), "{words}: {said:?}");
    }
    assert_eq!(with.ok(&["box", "approve", "--list"]).out.len(), list.len());
    // The twin: outside it holds.
    with.ok(&made("b", "out", &id));
}
