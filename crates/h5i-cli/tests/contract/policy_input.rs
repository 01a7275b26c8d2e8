//! Policy documents with mistakes, at each level, and what is damaged on disk.

use std::fs;

use serde_json::json;

use crate::refusal::Refusal;
use crate::shapes::{CheckedPolicies, CreatedBox, ShownPolicy};
use crate::stand::Stand;

/// A mistake at each level of a document: text, place, sentence, and what to do.
const MISTAKES: [(&str, &str, &str, &str); 10] = [
    ("version = 1\nprofiles = 1\n", "2:1", "unknown key `profiles`", "`profile`"),
    (
        "version = 1\n[profile.default]\ntiers = \"process\"\n",
        "3:1",
        "unknown key `tiers`",
        "`tier`",
    ),
    ("version = 1\n[profile.default.net]\nalow = []\n", "3:1", "unknown key `alow`", "`allow`"),
    ("version = 1\n[profile.default.grant.g]\nhots = \"a\"\n", "", "unknown key `hots`", "`host`"),
    ("version = \"1\"\n", "1:", "`version`", "h5i policy"),
    ("version = 2\n", "1:", "version 1", "h5i policy"),
    ("version = 1\nprofile = 3\n", "2:", "`profile` must be a table", "h5i policy"),
    (
        "version = 1\n[profile.default]\nlimits = 3\n",
        "3:",
        "`limits` must be a table",
        "h5i policy",
    ),
    ("version = 1\n[profile.default.limits]\nwall = 5\n", "3:", "wall` must be", "h5i policy"),
    ("version = 1\n[profile.default\n", "2:", "", "h5i policy"),
];

#[test]
fn a_mistake_in_the_users_document_is_told_with_line_and_column() {
    let stand = Stand::new();
    for (text, place, says, hint) in MISTAKES {
        stand.user_policy(text);
        for words in [&["box", "create", "a"][..], &["policy", "check"], &["policy", "show"]] {
            let place = format!("config/h5i/policy.toml:{place}");
            let says = [place.as_str(), says];
            Refusal { words, code: 2, kind: "usage", says: &says, hint }.check(&stand);
        }
        let said = stand.h5i(&["run", "--", "true"]);
        assert_eq!(said.code, 125, "{}", said.err);
    }
    stand.user_policy("version = 1\n[profile.default.limits]\nwall = \"5m\"\n");
    stand.ok(&["box", "create", "a"]);
}

#[test]
fn a_mistake_in_the_repositorys_document_is_told_with_line_and_column() {
    let stand = Stand::new();
    for (text, place, says, hint) in MISTAKES {
        stand.repository_policy(text);
        let place = format!(".h5i/policy.toml of the base:{place}");
        let says = [place.as_str(), says];
        for words in [&["box", "create", "a"][..], &["policy", "check"]] {
            Refusal { words, code: 2, kind: "usage", says: &says, hint }.check(&stand);
        }
    }
    stand.repository_policy("version = 1\n[profile.default.limits]\nwall = \"5m\"\n");
    stand.ok(&["box", "create", "a"]);
}

#[test]
fn a_person_sees_the_line_with_the_mistake_marked() {
    let stand = Stand::new();
    stand.user_policy("version = 1\n[profile.default.net]\nalow = [\"\u{202e}\"]\n");
    let said = stand.h5i(&["box", "create", "a"]);
    assert!(said.err.contains("  3 | alow = ["), "{}", said.err);
    assert!(said.err.contains("    | ^^^^ did you mean `allow`?"), "{}", said.err);
    assert!(!said.err.contains('\u{202e}'), "{:?}", said.err);
}

#[test]
fn a_credential_that_a_document_writes_is_told_wherever_it_is_read() {
    let stand = Stand::new();
    let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let document =
        |value: &str| format!("version = 1\n[profile.default]\nenv.set.MINE = \"{value}\"\n");
    stand.user_policy(&document(token));
    let words = "env.set.MINE holds what looks like a code host token";
    for verb in [
        &["policy", "check"][..],
        &["policy", "show"],
        &["box", "create", "a"],
        &["run", "--", "true"],
    ] {
        let said = stand.ok(verb);
        assert!(said.err.contains(words) && !said.err.contains(token), "{}", said.err);
    }
    let explained = stand.ok(&["box", "explain", "a"]);
    assert!(
        explained.text().contains(", unless env.set gives it one: MINE."),
        "{}",
        explained.text()
    );
    let checked: CheckedPolicies = stand.ok(&["policy", "check", "--json"]).data();
    assert_eq!(checked.written_secrets[0].profile, "default");
    let shown: ShownPolicy = stand.ok(&["policy", "show", "--json"]).data();
    let made: CreatedBox = stand.ok(&["box", "create", "b", "--json"]).data();
    for told in
        [&checked.written_secrets[0].secret, &shown.written_secrets[0], &made.written_secrets[0]]
    {
        assert_eq!((told.place.as_str(), told.shape.as_str()), ("env.set.MINE", "code host token"));
        assert!(told.in_box);
    }
    // The twin: another value is nobody's business.
    stand.user_policy(&document("1"));
    for verb in [&["policy", "check"][..], &["policy", "show"], &["box", "create", "c"]] {
        let said = stand.ok(verb);
        assert!(!said.err.contains("looks like"), "{}", said.err);
    }
    let explained = stand.ok(&["box", "explain", "c"]);
    assert!(!explained.text().contains("gives it one"), "{}", explained.text());
}

#[test]
fn a_document_that_loosens_is_refused_from_the_repository_and_taken_from_the_user() {
    let stand = Stand::new();
    let text = "version = 1\n[profile.default.net]\nmode = \"host\"\n";
    stand.repository_policy(text);
    Refusal {
        words: &["box", "create", "a"],
        code: 4,
        kind: "refused",
        says: &[".h5i/policy.toml of the base:3:", "may only tighten", "net.mode"],
        hint: "leave it out",
    }
    .check(&stand);
    stand.ground.git(&["rm", "--quiet", ".h5i/policy.toml"]);
    stand.ground.commit("no policy");
    stand.user_policy(text);
    let said = stand.ok(&["box", "create", "a"]);
    assert!(said.err.contains("network host"), "{}", said.err);
}

#[test]
fn the_repositorys_document_is_the_one_of_the_base() {
    let stand = Stand::new();
    stand.ground.write(".h5i/policy.toml", b"version = 1\nbroken\n");
    stand.ok(&["box", "create", "a"]);
    // The working tree is the base of a box of it: what the box contains is what holds.
    assert_eq!(stand.h5i(&["box", "create", "b", "--dirty"]).code, 2);
    stand
        .ground
        .write(".h5i/policy.toml", b"version = 1\n[profile.default.limits]\nwall = \"7m\"\n");
    stand.ok(&["box", "create", "b", "--dirty"]);
    assert!(stand.ok(&["box", "status", "b"]).text().contains("wall 7m"));
    // One that git ignores is not in the box and not read.
    fs::write(stand.repo().join(".git/info/exclude"), ".h5i/\n").unwrap();
    stand.ok(&["box", "create", "c", "--dirty"]);
    assert!(!stand.ok(&["box", "status", "c"]).text().contains("wall 7m"));
    fs::remove_file(stand.repo().join(".git/info/exclude")).unwrap();
    // Through a link there is no document, in the working tree as in a commit.
    fs::rename(stand.repo().join(".h5i"), stand.repo().join("aside")).unwrap();
    std::os::unix::fs::symlink("aside", stand.repo().join(".h5i")).unwrap();
    stand.ok(&["box", "create", "linked", "--dirty"]);
    assert!(!stand.ok(&["box", "status", "linked"]).text().contains("wall 7m"));
    fs::remove_file(stand.repo().join(".h5i")).unwrap();
    fs::rename(stand.repo().join("aside"), stand.repo().join(".h5i")).unwrap();
    // As a part of the base commit it is read by every box, until the working tree has none.
    stand.ground.commit("policy");
    stand.ok(&["box", "create", "d"]);
    assert!(stand.ok(&["box", "status", "d"]).text().contains("wall 7m"));
    fs::remove_file(stand.repo().join(".h5i/policy.toml")).unwrap();
    stand.ok(&["box", "create", "e", "--dirty"]);
    assert!(!stand.ok(&["box", "status", "e"]).text().contains("wall 7m"));
}

#[test]
fn what_is_damaged_on_disk_is_corrupt_and_can_be_removed() {
    for (file, text, says) in [
        ("manifest.json", "{", "box `a` is damaged"),
        ("manifest.json", "{\"v\":99}", "has version 99"),
        ("policy.json", "not = [", "the frozen policy of box `a`"),
        ("policy.json", "", "the frozen policy of box `a`"),
    ] {
        let stand = Stand::new();
        stand.ok(&["box", "create", "a"]);
        let path = stand.box_dir("a").join("host").join(file);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, text).unwrap();
        for (words, code) in [
            (&["box", "status", "a"][..], 1),
            (&["box", "explain", "a"], 1),
            (&["policy", "diff", "a"], 1),
            (&["box", "run", "a", "--", "true"], 125),
        ] {
            let says = &[says][..];
            Refusal { words, code, kind: "corrupt", says, hint: "h5i box rm a" }.check(&stand);
        }
        // The twin: restored, it is a box again.
        fs::write(&path, whole).unwrap();
        stand.ok(&["box", "status", "a"]);
        fs::write(&path, text).unwrap();
        stand.ok(&["box", "rm", "a"]);
        assert_eq!(stand.box_directories(), [""; 0]);
    }
}

#[test]
fn a_frozen_policy_that_was_loosened_on_disk_is_corrupt() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let path = stand.box_dir("a").join("host/policy.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"mode\":\"none\""), "{text}");
    fs::write(&path, text.replace("\"mode\":\"none\"", "\"mode\":\"host\"")).unwrap();
    Refusal {
        words: &["box", "run", "a", "--", "true"],
        code: 125,
        kind: "corrupt",
        says: &["the frozen policy of box `a`", "its digest is sha256:"],
        hint: "h5i box rm a",
    }
    .check(&stand);
}

#[test]
fn a_damaged_log_is_corrupt_and_nothing_runs() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let log = stand.box_dir("a").join("host/receipt.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, "{\"v\":1}\n").unwrap();
    let said = stand.h5i(&["box", "run", "a", "--json", "--", "sh", "-c", "touch /work/ran"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (125, "corrupt"));
    assert!(!stand.box_dir("a").join("box/work/ran").try_exists().unwrap());
    let said = stand.h5i(&["box", "log", "a"]);
    assert_eq!(said.code, 1, "{}", said.err);
    fs::write(&log, text).unwrap();
    stand.ok(&["box", "run", "a", "--", "true"]);
}

#[test]
fn gc_names_a_damaged_box_and_keeps_it() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    fs::write(stand.box_dir("a").join("host/manifest.json"), "{").unwrap();
    let said = stand.ok(&["box", "gc", "--json"]);
    assert_eq!(said.json()["data"]["damaged"], json!(["a"]));
    assert_eq!(stand.box_directories(), ["a"]);
    let listed = stand.ok(&["box", "ls"]);
    assert!(listed.text().contains("damaged"), "{}", listed.text());
}

#[test]
fn where_h5i_keeps_its_boxes_is_never_granted() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "first"]);
    let state = stand.state();
    let beside = stand.path().join("beside");
    fs::create_dir(&beside).unwrap();
    std::os::unix::fs::symlink(state.join("h5i/objects"), stand.path().join("link")).unwrap();
    let config = stand.path().join("config/h5i");
    for place in [
        state.clone(),
        state.join("h5i"),
        state.join("h5i/repos"),
        stand.path().join("link"),
        stand.path().to_owned(),
        config,
    ] {
        for field in ["read", "write"] {
            let setting = format!("fs.{field}=[\"{}\"]", place.display());
            let words = &["box", "create", "a", "--set", &setting][..];
            let says = [&*format!("fs.{field} grants"), "where h5i keeps"].map(str::to_owned);
            let says = &says.each_ref().map(String::as_str)[..];
            let hint = "neither hold them nor lie in them";
            Refusal { words, code: 4, kind: "refused", says, hint }.check(&stand);
        }
    }
    // The twin: a directory beside it.
    let setting = format!("fs.write=[\"{}\"]", beside.display());
    stand.ok(&["box", "create", "a", "--set", &setting]);
}
