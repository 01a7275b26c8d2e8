//! The commonest mistakes, and what is said to them.

use std::fs;

use crate::refusal::Refusal;
use crate::stand::{Said, Stand};

#[test]
fn a_command_without_dashes_and_a_misspelt_verb_are_told_the_right_line() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let before = stand.traces();
    for (words, hint) in [
        (&["run", "ls", "-la"][..], "h5i run -- ls -la"),
        (&["box", "run", "a", "ls"], "h5i box run a -- ls"),
        (&["rnu", "x"], "did you mean h5i run?"),
        (&["box", "rnu", "a"], "did you mean h5i box run?"),
    ] {
        let said = stand.h5i(words);
        assert_eq!((said.code, said.text()), (2, ""), "{words:?}: {}", said.err);
        assert!(said.err.ends_with(&format!("\n  try       {hint}\n")), "{}", said.err);
    }
    let told = stand.h5i(&["box", "run", "--json", "a", "ls"]).failure();
    assert_eq!(told.hint.as_deref(), Some("h5i box run --json a -- ls"));
    assert_eq!(stand.traces(), before);
    // The twin: the line that was told.
    stand.ok(&["box", "run", "a", "--", "ls"]);
}

#[test]
fn what_is_no_bundle_is_told_what_would_be_one() {
    let stand = Stand::new();
    stand.exported("a", "echo x > x");
    let out = stand.path().join("a.out");
    fs::create_dir(stand.path().join("empty")).unwrap();
    let at = |name: &str| stand.path().join(name).to_str().unwrap().to_owned();
    for (name, code, kind) in
        [("nowhere", 3, "not-found"), ("empty", 3, "not-found"), ("a.out/patch.diff", 2, "usage")]
    {
        let hint = "h5i box export made";
        let words = ["receipt", "verify", &at(name)];
        Refusal { words: &words, code, kind, says: &[name], hint }.check(&stand);
    }
    for right in [out.clone(), out.join("receipt.json")] {
        stand.ok(&["receipt", "verify", right.to_str().unwrap()]);
    }
}

#[test]
fn a_state_directory_that_is_none_and_a_missing_home_are_told_with_a_way_out() {
    let stand = Stand::new();
    let said = |name: &str, value: Option<&str>, words: &[&str]| {
        let mut command = stand.command();
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
        Said::of(command.args(words).output().unwrap())
    };
    for place in ["/dev/null", "/proc"] {
        let told = said("XDG_STATE_HOME", Some(place), &["box", "create", "a"]);
        assert_eq!(told.code, 70, "{told:?}");
        assert!(told.err.contains("try       set XDG_STATE_HOME to"), "{}", told.err);
    }
    let told = said("HOME", None, &["box", "ls"]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.err.contains("try       export HOME=DIR"), "{}", told.err);
    assert_eq!(said("HOME", Some("/nonexistent"), &["box", "ls"]).code, 0);
}

#[test]
fn a_box_of_another_repository_is_found_by_name() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let elsewhere = stand.path().join("elsewhere");
    git2::Repository::init(&elsewhere).unwrap();
    let status = |directory: &str, name: &str| {
        let said = stand.h5i(&["-C", directory, "box", "status", name]);
        (said.code, said.err)
    };
    let there = elsewhere.to_str().unwrap();
    let (code, err) = status(there, "a");
    let repo = stand.repo();
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("no box `a` in this repository"), "{err}");
    assert!(err.contains(&format!("h5i -C '{}'", repo.display())), "{err}");
    // A name that nobody has, and the twin where it is.
    assert!(status(there, "b").1.ends_with("try       h5i box ls\n"), "{}", status(there, "b").1);
    assert_eq!(status(repo.to_str().unwrap(), "a").0, 0);
}

#[test]
fn a_one_shot_that_could_not_start_says_what_became_of_its_box() {
    let stand = Stand::new();
    for (program, code) in [("nonesuch", 127), ("/work", 126)] {
        let said = stand.h5i(&["run", "--", program]);
        assert_eq!(said.code, code, "{said:?}");
        let last = said.err.lines().last().unwrap();
        let end = "; its receipt is in the archive";
        assert!(last.starts_with("  removed   box ") && last.ends_with(end), "{}", said.err);
        let told = stand.h5i(&["run", "--json", "--", program]).failure();
        assert_eq!(told.details["kept"], false, "{told:?}");
        assert!(told.details["box"].as_str().is_some(), "{told:?}");
    }
    assert_eq!(stand.box_directories(), [""; 0]);
    // The twin, which is to be kept whatever happens.
    let told = stand.h5i(&["run", "--keep", "--json", "--", "nonesuch"]).failure();
    assert_eq!(told.details["kept"], true, "{told:?}");
    assert_eq!(stand.box_directories(), [told.details["box"].as_str().unwrap()]);
}

#[test]
fn verbs_that_only_do_something_say_so_in_a_line() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let line = |words: &[&str]| stand.ok(words).err.trim_end().to_owned();
    assert_eq!(line(&["box", "log", "a", "--denied"]), "nothing was refused");
    stand.sh("a", "unshare --user true; true");
    assert_eq!(line(&["box", "log", "a", "--denied"]), "");
    assert_eq!(line(&["box", "start", "a"]), "started  box a; h5i box stop a ends it");
    assert_eq!(line(&["box", "freeze", "a"]), "frozen   box a, 0 processes");
    assert_eq!(line(&["box", "thaw", "a"]), "thawed   box a, 0 processes");
    assert_eq!(line(&["box", "stop", "a"]), "stopped  box a");
    assert_eq!(line(&["box", "stop", "a"]), "box `a` is not alive");
    let listed = stand.ok(&["box", "ls"]);
    assert!(listed.text().lines().all(|line| !line.ends_with(' ')), "{:?}", listed.text());
    assert_eq!(line(&["box", "rm", "a"]), "removed  box a; its receipt is in the archive");
}
