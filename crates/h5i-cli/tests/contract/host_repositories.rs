//! Every kind of host repository gives its base, or is refused by name; what becomes of it later is
//! nothing to the box.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::refusal::Refusal;
use crate::stand::{Said, Stand};
use crate::support::{git, picture};

on_both_back_ends!(
    Stand:
    a_linked_worktree_and_a_bare_repository_with_worktrees_give_their_own_base,
    each_history_brings_what_it_says,
    objects_that_are_borrowed_over_several_repositories_are_all_there,
    ten_thousand_refs_stay_outside,
    what_becomes_of_the_host_repository_is_nothing_to_the_box,
);

/// The program started somewhere else.
fn at(stand: &Stand, directory: &Path, words: &[&str]) -> Said {
    let mut command: Command = stand.with(words);
    let said = Said::of(command.current_dir(directory).output().unwrap());
    assert_eq!(said.code, 0, "{words:?}: {}", said.err);
    said
}

/// What a box shows of its base.
fn seen_at(stand: &Stand, directory: &Path, name: &str) -> String {
    let script =
        "cat a.txt; git log --format=%s; git status --porcelain --branch; git fsck --strict";
    let said = at(stand, directory, &["box", "run", name, "--", "sh", "-c", script]);
    String::from_utf8(said.out).unwrap()
}

fn a_linked_worktree_and_a_bare_repository_with_worktrees_give_their_own_base(stand: &Stand) {
    stand.ground.git(&["config", "extensions.worktreeConfig", "true"]);
    stand.ground.git(&["worktree", "add", "--quiet", "-b", "side", "../linked", "HEAD~1"]);
    let linked = stand.path().join("linked");
    git(&linked, &["config", "--worktree", "core.sparseCheckout", "true"]);
    git(stand.path(), &["clone", "--quiet", "--bare", "repo", "bare.git"]);
    let bare = stand.path().join("bare.git");
    git(&bare, &["worktree", "add", "--quiet", "-b", "other", "../of-bare", "HEAD~1"]);
    let of_bare = stand.path().join("of-bare");
    fs::write(of_bare.join("a.txt"), "dirty\n").unwrap();
    let before = [&linked, &bare, &of_bare].map(|dir| picture(dir));
    at(stand, &linked, &["box", "create", "linked"]);
    assert_eq!(seen_at(stand, &linked, "linked"), "one\nfirst\n## side\n");
    at(stand, &bare, &["box", "create", "bare"]);
    assert_eq!(seen_at(stand, &bare, "bare"), "one and more\nsecond\nfirst\n## main\n");
    at(stand, &of_bare, &["box", "create", "dirty", "--dirty"]);
    let seen = seen_at(stand, &of_bare, "dirty");
    assert!(seen.starts_with("dirty\n") && seen.ends_with("first\n## other\n"), "{seen}");
    for (dir, name) in [(&linked, "linked"), (&bare, "bare"), (&of_bare, "dirty")] {
        at(stand, dir, &["box", "rm", "--force", name]);
    }
    assert_eq!([&linked, &bare, &of_bare].map(|dir| picture(dir)), before);
}

fn each_history_brings_what_it_says(stand: &Stand) {
    for number in 3..7 {
        stand.ground.commit(&format!("commit {number}"));
    }
    let before = picture(&stand.repo());
    for (history, commits) in [("full", 6), ("depth:2", 2), ("none", 1), ("borrow", 6)] {
        let set = format!("history=\"{history}\"");
        stand.ok(&["box", "create", "a", "--set", &set]);
        let script =
            "git rev-list --count HEAD; git status --porcelain; cat a.txt; git fsck --strict";
        assert_eq!(stand.sh("a", script), format!("{commits}\none and more"), "{history}");
        stand.sh(
            "a",
            "echo more >> a.txt; git -c user.name=x -c user.email=x@example.com commit -qam x",
        );
        assert_eq!(stand.ok(&["box", "diff", "a", "--name-only"]).text(), "a.txt\n", "{history}");
        stand.ok(&["box", "rm", "--force", "a"]);
    }
    assert_eq!(picture(&stand.repo()), before);
}

fn objects_that_are_borrowed_over_several_repositories_are_all_there(stand: &Stand) {
    let mut from = "repo".to_owned();
    for number in 0..3 {
        let next = format!("shared{number}");
        git(stand.path(), &["clone", "--quiet", "--shared", &from, &next]);
        let directory = stand.path().join(&next);
        fs::write(directory.join(&next), &next).unwrap();
        git(&directory, &["add", "."]);
        git(&directory, &["commit", "--quiet", "-m", &next]);
        from = next;
    }
    let last = stand.path().join(&from);
    for (name, history) in [("a", "full"), ("b", "borrow")] {
        let set = format!("history=\"{history}\"");
        at(stand, &last, &["box", "create", name, "--set", &set]);
        assert_eq!(
            seen_at(stand, &last, name),
            "one and more\nshared2\nshared1\nshared0\nsecond\nfirst\n## main\n"
        );
    }
    // The twin of what is borrowed: without the first repository only h5i's own copy is whole.
    fs::rename(stand.repo().join(".git/objects"), stand.path().join("away")).unwrap();
    seen_at(stand, &last, "a");
    let lost = stand.with(&["box", "run", "b", "--", "git", "log"]).current_dir(&last).output();
    assert!(!lost.unwrap().status.success());
}

fn ten_thousand_refs_stay_outside(stand: &Stand) {
    let tip = stand.ground.git(&["rev-parse", "HEAD"]);
    let lines: String = (0..10_000).map(|n| format!("{tip} refs/heads/many/b{n:04}\n")).collect();
    fs::write(
        stand.repo().join(".git/packed-refs"),
        format!("# pack-refs with: peeled fully-peeled sorted \n{lines}"),
    )
    .unwrap();
    assert_eq!(stand.ground.git(&["for-each-ref"]).lines().count(), 10_001);
    stand.ok(&["box", "create", "a", "--base", "many/b0017"]);
    assert_eq!(stand.sh("a", "git for-each-ref --format='%(refname)'"), "refs/heads/many/b0017");
}

fn what_becomes_of_the_host_repository_is_nothing_to_the_box(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    let script = "cat a.txt; git log --format=%s; git status --porcelain; git fsck --strict; \
                  git show HEAD~1:a.txt; git log -p | wc -l";
    let before = stand.sh("a", script);
    let unchanged = |what: &str| {
        assert_eq!(stand.sh("a", script), before, "{what}");
        assert_eq!(stand.ok(&["box", "diff", "a"]).text(), "", "{what}");
    };
    stand.ground.write("a.txt", b"rewritten\n");
    stand.ground.git(&["commit", "--quiet", "--all", "--amend", "-m", "rewritten"]);
    stand.ground.git(&["branch", "--force", "main2", "HEAD~1"]);
    stand.ground.git(&["reflog", "expire", "--expire=now", "--all"]);
    stand.ground.git(&["gc", "--quiet", "--prune=now"]);
    unchanged("history rewritten and collected");
    stand.ground.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    stand.ground.commit("fresh");
    stand.ground.git(&["branch", "--quiet", "-D", "main", "main2"]);
    stand.ground.git(&["reflog", "expire", "--expire=now", "--all"]);
    stand.ground.git(&["gc", "--quiet", "--prune=now"]);
    unchanged("every commit of the base gone");
    // The boxes are those of the place: there, an empty repository is enough to name them.
    let away = stand.path().join("away");
    fs::rename(stand.repo(), &away).unwrap();
    git(stand.path(), &["init", "--quiet", "repo"]);
    unchanged("moved away, another one in its place");
    fs::remove_dir_all(&away).unwrap();
    unchanged("deleted");
}

#[test]
fn what_can_not_be_served_is_refused_by_name() {
    let stand = Stand::without_repository();
    stand.ground.git(&["init", "--quiet", "--object-format=sha256", "."]);
    stand.ground.write("a.txt", b"one\n");
    stand.ground.commit("first");
    Refusal {
        words: &["box", "create", "a"],
        code: 4,
        kind: "unavailable",
        says: &["SHA-256"],
        hint: "--clone",
    }
    .check(&stand);
    let stand = Stand::new();
    stand.ground.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", stand.repo().display());
    git(
        stand.path(),
        &["clone", "--quiet", "--filter=blob:none", "--no-checkout", &url, "partial"],
    );
    let partial = stand.path().join("partial");
    let words = ["box", "create", "a"];
    let run = |words: &[&str]| {
        Said::of(stand.command().current_dir(&partial).args(words).output().unwrap())
    };
    Refusal { words: &words, code: 4, kind: "unavailable", says: &["partial clone"], hint: "git" }
        .check_said(&run(&["box", "create", "a", "--json"]), &run(&words));
    // The twin: the same clone with its objects.
    git(stand.path(), &["clone", "--quiet", &url, "whole"]);
    at(&stand, &stand.path().join("whole"), &words);
}
