//! J0: what the task does not need stays outside, and no git command of the box can read it.

use crate::stand::Stand;

on_both_back_ends!(
    Stand:
    other_branches_stashes_and_unreachable_commits_are_not_in_the_box,
    a_hidden_file_is_neither_in_the_tree_nor_in_the_history,
);

/// Which of the objects the box's git can read.
fn readable(stand: &Stand, name: &str, objects: &[String]) -> Vec<String> {
    let script = format!(
        "for o in {}; do git cat-file -e $o 2>/dev/null && echo $o; done; true",
        objects.join(" ")
    );
    stand.sh(name, &script).lines().map(str::to_owned).collect()
}

fn other_branches_stashes_and_unreachable_commits_are_not_in_the_box(stand: &Stand) {
    let ground = &stand.ground;
    ground.git(&["checkout", "--quiet", "-b", "other"]);
    ground.write("canary", b"canary of a branch\n");
    let branch = ground.commit("other");
    ground.git(&["checkout", "--quiet", "main"]);
    ground.write("canary", b"canary that was reset away\n");
    let reset = ground.commit("reset away");
    ground.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    ground.write("a.txt", b"canary of a stash\n");
    ground.git(&["stash", "--quiet"]);
    let stash = ground.git(&["rev-parse", "stash@{0}"]);
    let blob = |spec: String| ground.git(&["rev-parse", &spec]);
    let objects = [
        blob(format!("{branch}:canary")),
        blob(format!("{reset}:canary")),
        blob(format!("{stash}:a.txt")),
        branch,
        reset,
        stash,
    ];
    stand.ok(&["box", "create", "a"]);
    assert_eq!(readable(stand, "a", &objects), [""; 0]);
    let everything = "git log --all --reflog -p; git stash list; git fsck --lost-found --unreachable; \
                      git for-each-ref; git cat-file --batch-all-objects --batch; \
                      cat .git/packed-refs .git/logs/HEAD; true";
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", everything]);
    assert!(!String::from_utf8_lossy(&said.out).contains("canary"), "{said:?}");
    // The twin: a box that borrows the host's objects, said aloud, reads every one of them.
    stand.ok(&["box", "create", "b", "--set", "history=\"borrow\""]);
    assert_eq!(readable(stand, "b", &objects), objects);
}

fn a_hidden_file_is_neither_in_the_tree_nor_in_the_history(stand: &Stand) {
    stand.ground.write("secrets/token", b"canary of a tracked file\n");
    stand.ground.commit("a secret");
    let object = stand.ground.git(&["rev-parse", "HEAD:secrets/token"]);
    let objects = [object];
    stand.ok(&["box", "create", "a", "--set", "fs.hide=[\"secrets/**\"]"]);
    assert_eq!(readable(stand, "a", &objects), [""; 0]);
    let script =
        "ls; git log --all -p; git cat-file --batch-all-objects --batch; git status --porcelain";
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", script]);
    let text = String::from_utf8_lossy(&said.out);
    assert!(!text.contains("canary") && text.contains("one and more"), "{text}");
    stand.ok(&["box", "create", "b"]);
    assert_eq!(readable(stand, "b", &objects), objects);
    assert_eq!(stand.sh("b", "cat secrets/token"), "canary of a tracked file");
}
