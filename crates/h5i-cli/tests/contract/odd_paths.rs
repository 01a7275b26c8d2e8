//! Repositories in unusual states and at unusual places.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::refusal::Refusal;
use crate::stand::{Said, Stand};
use crate::support::{git, picture, raw_name};

#[test]
fn without_a_repository_a_box_needs_to_be_asked_for_as_empty() {
    let stand = Stand::without_repository();
    Refusal {
        words: &["box", "create", "a"],
        code: 3,
        kind: "not-found",
        says: &["no git repository at", "or above"],
        hint: "--empty",
    }
    .check(&stand);
    Refusal {
        words: &["run", "--", "true"],
        code: 125,
        kind: "not-found",
        says: &["no git repository"],
        hint: "--empty",
    }
    .check(&stand);
    stand.ok(&["box", "create", "a", "--empty"]);
}

#[test]
fn an_unborn_head_is_told_to_make_a_commit() {
    let stand = Stand::without_repository();
    stand.ground.git(&["init", "--quiet", "--initial-branch=main", "."]);
    for words in [&["box", "create", "a"][..], &["box", "create", "a", "--dirty"]] {
        Refusal {
            words,
            code: 3,
            kind: "not-found",
            says: &["no commit yet", "`main`"],
            hint: "first commit",
        }
        .check(&stand);
    }
    stand.ground.commit("first");
    stand.ok(&["box", "create", "a"]);
}

#[test]
fn a_bare_repository_gives_a_base_and_no_working_tree() {
    let stand = Stand::new();
    git(stand.path(), &["clone", "--quiet", "--bare", "repo", "bare.git"]);
    let bare = stand.path().join("bare.git");
    let h5i = |words: &[&str]| {
        let output = stand.command().current_dir(&bare).args(words).output().unwrap();
        Said::of(output)
    };
    let before = picture(&bare);
    let words = ["box", "create", "a", "--dirty"];
    let refusal = Refusal {
        words: &words,
        code: 2,
        kind: "usage",
        says: &["working tree"],
        hint: "leave --dirty out",
    };
    refusal.check_said(&h5i(&["box", "create", "a", "--dirty", "--json"]), &h5i(&words));
    assert_eq!(stand.box_directories(), [""; 0]);
    for words in [&["box", "create", "a"][..], &["box", "create", "b", "--base", "main"]] {
        let said = h5i(words);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    let said = h5i(&["box", "run", "a", "--", "cat", "a.txt"]);
    assert_eq!(said.text(), "one and more\n", "{}", said.err);
    assert_eq!(picture(&bare), before);
}

#[test]
fn a_repository_whose_path_is_not_utf8_works() {
    let stand = Stand::new();
    let odd = stand.path().join(raw_name(b"caf\xe9 \x1b[2J \"x\" 'y'"));
    fs::rename(stand.repo(), &odd).unwrap();
    let h5i = |words: &[&str]| {
        let said = Said::of(stand.command().current_dir(&odd).args(words).output().unwrap());
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        assert!(!said.err.contains('\u{1b}') && !said.out.contains(&0x1b), "{said:?}");
        said
    };
    h5i(&["box", "create", "a"]);
    h5i(&["box", "create", "d", "--dirty", "--json"]);
    assert_eq!(h5i(&["box", "run", "a", "--", "git", "status", "--porcelain"]).text(), "");
    h5i(&["box", "ls", "--json"]);
    h5i(&["box", "status", "a"]);
    h5i(&["box", "explain", "a"]);
    h5i(&["box", "rm", "a"]);
    // By its path from elsewhere, too.
    let output = stand
        .command()
        .current_dir("/")
        .arg("-C")
        .arg(&odd)
        .args(["run", "--", "cat", "a.txt"])
        .output()
        .unwrap();
    assert_eq!(Said::of(output).text(), "one and more\n");
    let mut clone = stand.command();
    clone.current_dir("/").args(["box", "create", "c", "--clone"]).arg(&odd);
    let said = Said::of(clone.output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
}

/// A path of this many bytes below `root`, made component by component.
fn deep(root: &Path, length: usize) -> PathBuf {
    let mut path = root.to_owned();
    while path.as_os_str().len() < length {
        let left = length - path.as_os_str().len() - 1;
        // The last component takes what is left; none is longer than a name may be.
        let name = if left > 201 { 200 } else { left };
        path.push("d".repeat(name));
    }
    path
}

#[test]
fn a_path_of_4000_bytes_works_or_is_refused_by_name() {
    let stand = Stand::new();
    let place = deep(&stand.path().join("deep"), 4000);
    assert_eq!(place.as_os_str().as_bytes().len(), 4000);
    fs::create_dir_all(&place).unwrap();
    git(stand.path(), &["clone", "--quiet", "repo", place.to_str().unwrap()]);
    let before = stand.traces();
    let output = stand.command().current_dir(&place).args(["box", "create", "a"]).output().unwrap();
    let said = Said::of(output);
    if said.code == 0 {
        let run = ["box", "run", "a", "--", "cat", "a.txt"];
        let output = stand.command().current_dir(&place).args(run).output().unwrap();
        assert_eq!(Said::of(output).text(), "one and more\n");
    } else {
        assert!(matches!(said.code, 4 | 70), "{said:?}");
        assert!(said.err.contains("try"), "{said:?}");
        assert_eq!(stand.box_directories(), [""; 0]);
    }
    assert_eq!(stand.traces().repo, before.repo);
}

#[test]
fn a_state_directory_of_4000_bytes_is_refused_and_a_long_one_works() {
    let stand = Stand::new();
    let with_state = |state: &Path| {
        let mut command = stand.command();
        command.env("XDG_STATE_HOME", state);
        command
    };
    let far = deep(&stand.path().join("far"), 4000);
    let run = |words: &[&str]| Said::of(with_state(&far).args(words).output().unwrap());
    let words = ["box", "create", "a"];
    Refusal {
        words: &words,
        code: 2,
        kind: "usage",
        says: &["the state directory's path has 4004 bytes"],
        hint: "XDG_STATE_HOME",
    }
    .check_said(&run(&["box", "create", "a", "--json"]), &run(&words));
    assert!(!stand.path().join("far").try_exists().unwrap());
    let near = deep(&stand.path().join("near"), 3400);
    let said = Said::of(with_state(&near).args(words).output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    let run = ["box", "run", "a", "--", "cat", "a.txt"];
    let said = Said::of(with_state(&near).args(run).output().unwrap());
    assert_eq!(said.text(), "one and more\n", "{}", said.err);
}
