//! A1 to A5: what the box writes for Git to read moves nothing on the host.

use std::fs;

use crate::stand::Stand;
use crate::support::git;

on_both_back_ends!(
    Stand:
    no_program_that_the_boxs_git_would_run_is_run_on_the_host,
    an_export_compares_with_the_pinned_base_whatever_stands_as_git_directory,
    a_box_goes_on_and_is_exported_whatever_git_did_in_it,
);

/// Names a program that leaves a mark in every setting, attribute and hook that Git runs one from.
fn trap(mark: &str) -> String {
    let settings = [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "alias.status",
        "alias.diff",
        "diff.external",
        "diff.trap.textconv",
        "diff.trap.command",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "merge.trap.driver",
        "uploadpack.packObjectsHook",
        "credential.helper",
    ];
    let run = format!("touch {mark}; cat");
    let mut script = String::from("set -e\n");
    for setting in settings {
        script.push_str(&format!("git config --file .git/config {setting} '{run}'\n"));
    }
    let hooks =
        "post-index-change post-checkout reference-transaction pre-commit fsmonitor-watchman";
    script.push_str(&format!(
        "mkdir -p .git/hooks .git/info elsewhere
         for hook in {hooks}; do
             printf '#!/bin/sh\\ntouch {mark}\\n' | tee .git/hooks/$hook > elsewhere/$hook
             chmod +x .git/hooks/$hook elsewhere/$hook
         done
         git config --file .git/config core.hooksPath \"$PWD/elsewhere\"
         echo '* filter=trap diff=trap merge=trap text' | tee .git/info/attributes > .gitattributes
         echo changed > a.txt; printf 'a\\r\\nb\\r\\n' > lines
        "
    ));
    script
}

fn no_program_that_the_boxs_git_would_run_is_run_on_the_host(stand: &Stand) {
    // Of the home of the box and the host's as well: where it is run it leaves its mark.
    let mark = stand.home().join("ran");
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", &trap(mark.to_str().unwrap()));
    let before = stand.traces();
    let out = stand.path().join("out");
    for words in [
        &["box", "status", "a"][..],
        &["box", "diff", "a"],
        &["box", "export", "a", "-o", out.to_str().unwrap()],
        &["receipt", "verify", out.to_str().unwrap()],
        &["box", "explain", "a"],
        &["box", "ls"],
        &["box", "rm", "--force", "a"],
    ] {
        stand.ok(words);
        let after = stand.traces();
        assert_eq!((&after.repo, &after.home), (&before.repo, &before.home), "{words:?}");
    }
    let patch = fs::read_to_string(out.join("patch.diff")).unwrap();
    assert!(patch.contains("+changed") && patch.contains("elsewhere/post-checkout"), "{patch}");
    assert!(!patch.contains(".git/hooks"), "{patch}");
    // The twin: where the box's own git reads the same, it does run them.
    stand.ok(&["box", "create", "b"]);
    stand.sh("b", &trap("/tmp/ran"));
    let run = "git config --file .git/config --unset filter.trap.process; rm -f /tmp/ran
               git -c user.name=x -c user.email=x@example.com add a.txt 2>&1; ls /tmp/ran";
    assert!(stand.sh("b", &format!("{}\n{run}", trap("/tmp/ran"))).ends_with("/tmp/ran"));
}

fn an_export_compares_with_the_pinned_base_whatever_stands_as_git_directory(stand: &Stand) {
    let other = stand.path().join("other");
    git(stand.path(), &["init", "--quiet", "other"]);
    let there = other.display();
    for (number, replace) in [
        format!("rm -rf .git; echo 'gitdir: {there}/.git' > .git"),
        format!("rm -rf .git; ln -s {there}/.git .git"),
        "mv .git .other; git init -q; git add a.txt".to_owned(),
        format!("echo {there}/.git > .git/commondir; echo {there} > .git/gitdir"),
        format!("echo {there}/.git/objects > .git/objects/info/alternates"),
        "git config --file .git/config extensions.worktreeConfig true; \
         printf '[core]\\n\\tworktree = /\\n' > .git/config.worktree"
            .to_owned(),
        "git config --file .git/config core.worktree /etc; echo '* -diff' > .git/info/attributes"
            .to_owned(),
        "rm -f .git/index .git/HEAD; mkfifo .git/index .git/HEAD".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("b{number}");
        stand.ok(&["box", "create", &name]);
        // What is not the task's is kept where the gate does not look for it.
        stand.sh(
            &name,
            &format!("echo more >> a.txt; mkdir -p .git/info; {replace}; rm -rf .other"),
        );
        let diff = stand.ok(&["box", "diff", &name]);
        let lines: Vec<&str> =
            diff.text().lines().filter(|line| line.starts_with(['+', '-'])).collect();
        assert_eq!(lines, ["--- a/a.txt", "+++ b/a.txt", "+more"], "{replace}");
        stand.ok(&["box", "rm", "--force", &name]);
    }
}

fn a_box_goes_on_and_is_exported_whatever_git_did_in_it(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", "git config user.name x; git config user.email x@example.com");
    for script in [
        "git checkout -q --detach HEAD~1",
        "git checkout -q main; echo more >> a.txt; git commit -qam more; git branch -f side HEAD~1",
        "git gc -q --prune=now; git repack -qadl; git pack-refs --all",
        "git worktree add -q /tmp/tree; git stash list",
        "rm -rf .git/objects .git/refs",
        "rm -rf .git",
    ] {
        stand.sh("a", script);
        assert!(stand.ok(&["box", "log", "a"]).text().contains(script), "{script}");
    }
    let diff = stand.ok(&["box", "diff", "a", "--name-only"]);
    assert_eq!(diff.text(), "a.txt\n");
    let out = stand.path().join("out");
    stand.ok(&["box", "export", "a", "-o", out.to_str().unwrap()]);
    // The twin of what is still found: what the host's git makes of the patch.
    git(&stand.repo(), &["apply", "--check", out.join("patch.diff").to_str().unwrap()]);
    stand.ground.write("a.txt", b"another\n");
    let fails = crate::support::try_git(
        &stand.repo(),
        &["apply", "--check", out.join("patch.diff").to_str().unwrap()],
    );
    assert!(!fails.status.success());
}
