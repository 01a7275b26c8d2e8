//! A1 to A4 for the verbs of the gate: whatever the box writes for git to run, none of them runs it.

use std::fs;

use crate::stand::Stand;

/// A script that names a program which leaves a mark wherever git looks for programs.
fn trap(mark: &str) -> String {
    let run = format!("touch {mark}; cat");
    let mut script = String::new();
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.hooksPath",
        "diff.external",
        "diff.x.textconv",
        "diff.x.command",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "merge.x.driver",
        "alias.status",
        "alias.apply",
        "gpg.program",
        "commit.template",
    ] {
        script.push_str(&format!("git config --file .git/config {key} '{run}'\n"));
    }
    script.push_str(&format!(
        "git config --file .git/config core.hooksPath \"$PWD/hooks\"
         mkdir -p hooks .git/hooks .git/info
         for h in pre-commit post-commit post-checkout post-merge reference-transaction post-index-change; do
             printf '#!/bin/sh\\ntouch {mark}\\n' | tee .git/hooks/$h > hooks/$h
             chmod +x .git/hooks/$h hooks/$h
         done
         echo '* filter=x diff=x merge=x text eol=crlf ident' | tee .git/info/attributes > .gitattributes
         printf '[alias]\\n st = !touch {mark}\\n' > .gitconfig
         echo more >> a.txt"
    ));
    script
}

#[test]
fn no_verb_of_the_gate_runs_what_the_box_named() {
    let stand = Stand::with_identity();
    let mark = stand.home().join("ran");
    let script = trap(mark.to_str().unwrap());
    let out = stand.exported("a", &script);
    let out = out.to_str().unwrap();
    let head = stand.ground.git(&["rev-parse", "HEAD"]);
    let config = fs::read(stand.repo().join(".git/config")).unwrap();
    for words in [
        &["box", "diff", "a"][..],
        &["box", "diff", "a", "--stat"],
        &["receipt", "verify", out],
        &["box", "apply", "a", "--yes", "--bundle", out],
        &["box", "apply", "a", "--yes", "--bundle", out, "--worktree"],
        &["box", "create", "b", "--from-bundle", out],
        &["box", "log", "a"],
        &["box", "rm", "--force", "a", "b"],
        &["receipt", "ls"],
        &["receipt", "show", "a"],
        &["receipt", "purge", "a", "b"],
    ] {
        stand.ok(words);
        assert!(!mark.try_exists().unwrap(), "{words:?}");
    }
    // Hooks and configuration of the box's git directory did not come along.
    assert_eq!(stand.ground.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(fs::read(stand.repo().join(".git/config")).unwrap(), config);
    let hooks = fs::read_dir(stand.repo().join(".git/hooks")).unwrap();
    assert!(
        hooks
            .map(|e| e.unwrap().file_name())
            .all(|name| name.to_string_lossy().ends_with(".sample"))
    );
    // They are named first in the report.
    stand.ground.git(&["reset", "--quiet", "--hard"]);
    let report = fs::read_to_string(stand.path().join("a.out/report.md")).unwrap();
    let first = report.split("\n## ").nth(1).unwrap();
    for name in [".gitattributes", ".gitconfig", "hooks/post-checkout"] {
        assert!(first.contains(name), "{name}: {first}");
    }
    // The twin: where git itself reads them, they run.
    stand.ok(&["box", "create", "c"]);
    stand.sh("c", &trap("/tmp/ran"));
    let run = "git config --file .git/config --unset filter.x.process
               git -c user.name=x -c user.email=x@example.com add a.txt 2>&1; ls /tmp/ran";
    assert!(stand.sh("c", &format!("{}\n{run}", trap("/tmp/ran"))).ends_with("/tmp/ran"));
}

#[test]
fn a_bundle_lands_whatever_became_of_the_boxs_git_directory() {
    let stand = Stand::with_identity();
    for (number, replace) in [
        "rm -rf .git",
        "rm -rf .git; echo 'gitdir: /etc' > .git",
        "rm -rf .git; ln -s / .git",
        "rm -rf .git/objects .git/refs .git/HEAD",
        "git checkout -q --detach; git branch -f main HEAD~1; git gc -q --prune=now",
        "echo / > .git/commondir; echo /etc > .git/objects/info/alternates",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("b{number}");
        stand.exported(&name, &format!("echo more >> a.txt; {replace}"));
        stand.applied(&name, &[]);
        let branch = format!("h5i/{name}");
        assert_eq!(stand.ground.git(&["show", &format!("{branch}:a.txt")]), "one and more\nmore");
        assert_eq!(
            stand.ground.git(&["diff", "--name-only", "main", &branch]),
            "a.txt",
            "{replace}"
        );
    }
}

#[test]
fn names_and_arguments_of_the_box_are_inert_wherever_they_are_shown() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let evil = "\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}\u{9b}31m";
    stand.ok(&[
        "box",
        "run",
        "a",
        "--",
        "sh",
        "-c",
        "printf x > \"$1\"",
        "sh",
        &format!("n{}", evil.replace('/', "_")),
    ]);
    let inert = |text: &str| {
        text.chars()
            .all(|c| c == '\n' || !(c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)))
    };
    for words in [
        &["box", "log", "a"][..],
        &["box", "status", "a"],
        &["box", "diff", "a", "--stat"],
        &["box", "diff", "a", "--name-only"],
        &["box", "ls"],
        &["box", "export", "a"],
        &["box", "rm", "a"],
        &["receipt", "show", "a"],
    ] {
        let said = stand.h5i(words);
        assert!(inert(said.text()) && inert(&said.err), "{words:?}: {said:?}");
    }
}
