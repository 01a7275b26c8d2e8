//! A person's trust in the policy document of a repository.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::at_terminal::{read_all, terminal};
use crate::refusal::Refusal;
use crate::stand::{Said, Stand};
use crate::support::git;

const LOOSE: &str = "version = 1\n[profile.default.net]\nmode = \"host\"\n\
                     [profile.default.limits]\nwall = \"3h\"\n";

fn loose() -> Stand {
    let stand = Stand::new();
    stand.repository_policy(LOOSE);
    stand
}

/// What loosens is refused, wherever a box or a check would have it.
fn refused(stand: &Stand) {
    for words in [&["box", "create", "a"][..], &["policy", "check"], &["policy", "show"]] {
        let says = [".h5i/policy.toml of the base:3:", "may only tighten", "net.mode"];
        Refusal { words, code: 4, kind: "refused", says: &says, hint: "h5i policy trust" }
            .check(stand);
    }
}

#[test]
fn exactly_what_was_trusted_may_loosen_and_a_changed_document_may_not() {
    let stand = loose();
    refused(&stand);
    let trusted = stand.ok(&["policy", "trust", "--yes", "--json"]).json();
    let fields: Vec<&Value> =
        trusted["data"]["loosens"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
    assert_eq!(fields, ["net.mode", "limits.wall"]);
    let said = stand.ok(&["box", "create", "a"]);
    assert!(said.err.contains("network host"), "{}", said.err);
    stand.ok(&["policy", "check"]);
    let shown = stand.ok(&["policy", "show", "--json"]).json();
    let lines = shown["data"]["explained"].as_array().unwrap();
    let mode = lines.iter().find(|line| line["field"] == "net.mode").unwrap();
    assert!(mode["from"].as_str().unwrap().starts_with(".h5i/policy.toml of the base:3"), "{mode}");
    // Trusted again, nothing is asked and nothing changes.
    let before = std::fs::read(stand.path().join("config/h5i/trust.toml")).unwrap();
    assert_eq!(stand.ok(&["policy", "trust", "--json"]).json()["data"]["trusted"], json!(true));
    assert_eq!(std::fs::read(stand.path().join("config/h5i/trust.toml")).unwrap(), before);
    // A comment more, and it is another document.
    stand.repository_policy(&format!("{LOOSE}# reviewed\n"));
    refused(&stand);
    // As it was, it is trusted as it was.
    stand.repository_policy(LOOSE);
    stand.ok(&["box", "create", "b"]);
    stand.ok(&["policy", "trust", "--withdraw"]);
    stand.ok(&["box", "rm", "a", "b"]);
    refused(&stand);
}

#[test]
fn the_same_document_in_another_repository_is_not_trusted() {
    let stand = loose();
    stand.ok(&["policy", "trust", "--yes"]);
    let other = stand.path().join("other");
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    git(stand.path(), &["clone", "--quiet", &text(&stand.repo()), &text(&other)]);
    let create = |words: &[&str]| stand.h5i(&[&["box", "create"][..], words].concat());
    let said = create(&["a", "--clone", &text(&other)]);
    assert!(said.code == 4 && said.err.contains("may only tighten"), "{said:?}");
    // The twin: the one that was trusted, by the same way.
    let said = create(&["a", "--clone", &text(&stand.repo())]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn a_person_sees_what_it_loosens_and_decides() {
    let stand = loose();
    let answered = |answer: &str| {
        let (mut person, program) = terminal();
        let mut command = stand.command();
        command.args(["policy", "trust"]).stdin(Stdio::from(program.try_clone().unwrap()));
        command.stderr(Stdio::from(program)).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        person.write_all(answer.as_bytes()).unwrap();
        (read_all(&mut person), child.wait().unwrap().code().unwrap())
    };
    for answer in ["n\n", "\n"] {
        let (shown, code) = answered(answer);
        assert_eq!(code, 4, "{shown}");
        assert!(shown.contains("profile default: `net.mode`: host is looser than none"), "{shown}");
        assert!(shown.contains("`limits.wall`: 3h is looser than 2h"), "{shown}");
        refused(&stand);
    }
    let (shown, code) = answered("y\n");
    assert_eq!(code, 0, "{shown}");
    stand.ok(&["box", "create", "a"]);
}

#[test]
fn without_a_terminal_the_word_has_to_be_given() {
    let stand = loose();
    let says = ["needs a person's consent"];
    let words = &["policy", "trust"];
    Refusal { words, code: 4, kind: "refused", says: &says, hint: "--yes" }.check(&stand);
    let failure: Value =
        serde_json::from_slice(&stand.h5i(&["policy", "trust", "--json"]).out).unwrap();
    let loosens = failure["error"]["details"]["loosens"].as_array().unwrap();
    assert_eq!(loosens.len(), 2, "{failure}");
}

#[test]
fn a_document_that_tightens_needs_no_trust_and_its_groups_are_told() {
    let stand = Stand::new();
    let trust = |stand: &Stand| -> Said { stand.ok(&["policy", "trust", "--yes"]) };
    let says = ["has no .h5i/policy.toml"];
    let words = &["policy", "trust"];
    Refusal { words, code: 3, kind: "not-found", says: &says, hint: "--dirty" }.check(&stand);
    stand.repository_policy("version = 1\n[profile.default.limits]\nwall = \"1h\"\n");
    assert!(trust(&stand).err.contains("loosens nothing"), "{}", trust(&stand).err);
    assert!(!stand.path().join("config/h5i/trust.toml").try_exists().unwrap());
    // A group would be what the person means by its name.
    stand.repository_policy("version = 1\n[group.npm]\nallow = [\"packages.example\"]\n");
    let said = trust(&stand);
    assert!(said.err.contains("group @npm: is packages.example:443"), "{}", said.err);
}

#[test]
fn a_list_that_is_damaged_trusts_nothing_and_is_said() {
    let stand = loose();
    stand.ok(&["policy", "trust", "--yes"]);
    let list = stand.path().join("config/h5i/trust.toml");
    let whole = std::fs::read_to_string(&list).unwrap();
    for text in ["version = 2\n", "version = 1\nmore = 1\n", "\u{0}"] {
        std::fs::write(&list, text).unwrap();
        let (words, says) = (&["box", "create", "a"], ["trust.toml` is no list"]);
        Refusal { words, code: 1, kind: "corrupt", says: &says, hint: "move it away" }
            .check(&stand);
    }
    std::fs::write(&list, whole).unwrap();
    stand.ok(&["box", "create", "a"]);
}

#[test]
fn check_refuses_what_create_refuses() {
    let stand = Stand::new();
    let cases = [
        ("[profile.default.net]\nmode = \"allow\"\n", "supervised"),
        ("[profile.web]\nextends = \"agent-claude\"\ntier = \"process\"\n", "without grants"),
        ("[profile.web]\nextends = \"wbe\"\n", ""),
        ("[profile.web]\ntier = \"supervised\"\n[profile.web.net]\nmode = \"host\"\n", "net.mode"),
    ];
    for (text, hint) in cases {
        let document = format!("version = 1\n{text}");
        stand.user_policy(&document);
        let profile = if text.contains("web") { "web" } else { "default" };
        let made = stand.h5i(&["box", "create", "a", "-p", profile]);
        let checked = stand.h5i(&["policy", "check"]);
        assert_eq!((made.code, &made.err), (checked.code, &checked.err), "{text}");
        assert!(made.code == 4 || made.code == 2, "{made:?}");
        assert!(made.err.contains(hint), "{made:?}");
        // The same document by its name, and the twin.
        stand.user_policy("version = 1\n");
        std::fs::write(stand.path().join("p.toml"), document).unwrap();
        let file = stand.path().join("p.toml");
        assert_eq!(stand.h5i(&["policy", "check", file.to_str().unwrap()]).code, made.code);
        stand.ok(&["policy", "check"]);
    }
    // The document of the working tree is a repository's, also by its name.
    stand.ground.write(".h5i/policy.toml", LOOSE.as_bytes());
    let said = stand.h5i(&["policy", "check", ".h5i/policy.toml"]);
    assert!(said.code == 4 && said.err.contains("may only tighten"), "{said:?}");
    stand.ok(&["policy", "trust", "--dirty", "--yes"]);
    stand.ok(&["policy", "check", ".h5i/policy.toml"]);
}
