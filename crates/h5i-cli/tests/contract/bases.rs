//! What a box starts from, what of it works in the box, and what stays between runs.

use std::fs;

use crate::shapes::CreatedBox;
use crate::stand::Stand;
use crate::support::git;

on_both_back_ends!(
    Stand:
    git_works_in_the_box,
    each_base_gives_its_own_tree,
    work_and_home_stay_between_runs_and_the_rest_does_not,
);

fn git_works_in_the_box(stand: &Stand) {
    stand.ground.git(&["config", "user.name", "Ann Author"]);
    stand.ground.git(&["config", "user.email", "ann@example.com"]);
    stand.ok(&["box", "create", "a"]);
    assert_eq!(stand.sh("a", "git status --porcelain --branch"), "## main");
    assert_eq!(stand.sh("a", "git log --format=%s"), "second\nfirst");
    stand.sh("a", "echo more >> a.txt; echo new > new; git add --all; git commit -qm 'in the box'");
    assert_eq!(stand.sh("a", "git status --porcelain"), "");
    assert_eq!(
        stand.sh("a", "git log -1 --format='%an %ae %s'"),
        "Ann Author ann@example.com in the box"
    );
    let diff = stand.sh("a", "git diff HEAD~1 -- a.txt new");
    assert!(diff.contains("+more") && diff.contains("+new"), "{diff}");
    stand.sh("a", "git checkout -qb side; git stash list; git gc -q; git fsck --strict");
    // The host has none of it.
    assert_eq!(stand.ground.git(&["log", "--all", "--format=%s"]), "second\nfirst");
}

fn each_base_gives_its_own_tree(stand: &Stand) {
    stand.ground.git(&["tag", "v1", "HEAD~1"]);
    stand.ground.write("a.txt", b"dirty\n");
    stand.ground.write("untracked", b"new\n");
    let made: CreatedBox = stand.ok(&["box", "create", "head", "--json"]).data();
    let head = stand.ground.git(&["rev-parse", "HEAD"]);
    assert_eq!(
        (made.base.host_commit.as_ref(), made.base.commit.as_str()),
        (Some(&head), head.as_str())
    );
    assert_eq!(made.base.tree, stand.ground.git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(stand.sh("head", "cat a.txt; ls"), "one and more\na.txt\ndir");
    let made: CreatedBox = stand.ok(&["box", "create", "v1", "--base", "v1", "--json"]).data();
    assert_eq!(made.base.commit, stand.ground.git(&["rev-parse", "v1"]));
    assert_eq!(stand.sh("v1", "cat a.txt"), "one");
    let made: CreatedBox = stand.ok(&["box", "create", "dirty", "--dirty", "--json"]).data();
    assert_eq!(made.base.host_commit, Some(head));
    assert_eq!(stand.sh("dirty", "cat a.txt untracked; git status --porcelain"), "dirty\nnew");
    assert_eq!(stand.sh("dirty", "git log --format=%s | tail -n 2"), "second\nfirst");
    let made: CreatedBox = stand.ok(&["box", "create", "empty", "--empty", "--json"]).data();
    assert_eq!(made.base.host_commit, None);
    assert_eq!(stand.sh("empty", "ls; git status --porcelain"), "");
    git(stand.path(), &["init", "--quiet", "--initial-branch=other", "other"]);
    let other = stand.path().join("other");
    fs::write(other.join("theirs"), "theirs\n").unwrap();
    git(&other, &["add", "."]);
    git(&other, &["commit", "--quiet", "-m", "theirs"]);
    let made: CreatedBox =
        stand.ok(&["box", "create", "clone", "--clone", "../other", "--json"]).data();
    assert_eq!(made.base.branch, "other");
    assert_eq!(stand.sh("clone", "cat theirs; git log --format=%s"), "theirs\ntheirs");
}

fn work_and_home_stay_between_runs_and_the_rest_does_not(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    let places = "/work/x ~/x ~/.config/x /tmp/x /run/x /dev/shm/x /var/tmp/x";
    stand.sh("a", "mkdir -p ~/.config; for f in /work/x ~/x ~/.config/x /tmp/x /run/x /dev/shm/x; do echo kept > $f; done");
    let left = stand.sh("a", &format!("ls {places} 2>/dev/null; true"));
    assert_eq!(left, "/home/box/.config/x\n/home/box/x\n/work/x");
    // The twin: within one run each of them is there.
    let script = "for f in /tmp/x /run/x /dev/shm/x; do echo kept > $f; cat $f; done";
    assert_eq!(stand.sh("a", script), "kept\nkept\nkept");
    // No process of a run outlives it, also not one in a session of its own.
    let leave = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & n=0; \
         until grep -qsx sleep /proc/[0-9]*/comm || [ $n -ge 1000 ]; do n=$((n + 1)); done; \
         grep -lsx sleep /proc/[0-9]*/comm | wc -l";
    assert_eq!(stand.sh("a", leave), "1");
    let alive = stand.sh("a", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert!(!alive.contains("sleep 1000"), "{alive}");
}
