//! What people and tools do with Git, in the box as at home.

use std::fs;

use crate::stand::Stand;
use crate::support::{NO_UPKEEP, git, picture, raw_name};

on_both_back_ends!(
    Stand:
    the_everyday_commands_do_what_they_do_at_home,
    a_sparse_checkout_and_a_worktree_can_be_made_in_the_box,
    files_stand_as_committed_whatever_line_ends_or_case_are_configured,
    names_that_differ_in_case_or_are_no_utf8_stand_beside_each_other,
    a_file_of_100_mb_and_one_of_no_byte_are_there,
    submodules_and_large_file_pointers_stand_as_themselves,
);

/// With a person's name, so that commits can be made.
fn named(stand: &Stand) {
    stand.ground.git(&["config", "user.name", "Ann Author"]);
    stand.ground.git(&["config", "user.email", "ann@example.com"]);
}

/// Runs the same script in the box and in a clone on the host, and compares all that it prints.
fn same_as_at_home(stand: &Stand, name: &str, script: &str) -> String {
    let home = stand.path().join(format!("clone-{name}"));
    git(stand.path(), &["init", "--quiet", "--initial-branch=main", home.to_str().unwrap()]);
    git(&home, &["fetch", "--quiet", "../repo", "main"]);
    git(&home, &["reset", "--quiet", "--hard", "FETCH_HEAD"]);
    fs::remove_file(home.join(".git/FETCH_HEAD")).unwrap();
    for (key, value) in [("user.name", "Ann Author"), ("user.email", "ann@example.com")] {
        git(&home, &["config", key, value]);
    }
    let dated = format!(
        "export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z \\
         GIT_PAGER=cat LC_ALL=C\n set -e\n exec 2>&1\n{script}"
    );
    let mut there = stand.program("sh");
    there.current_dir(&home).env("GIT_CONFIG_NOSYSTEM", "1").envs(NO_UPKEEP);
    there.args(["-c", &dated]);
    let there = there.output().unwrap();
    let printed = String::from_utf8(there.stdout).unwrap();
    assert!(there.status.success(), "at home: {printed}");
    let here = stand.sh(name, &dated);
    assert_eq!(here, printed.trim_end(), "{script}");
    here
}

fn the_everyday_commands_do_what_they_do_at_home(stand: &Stand) {
    named(stand);
    for number in 0..6 {
        stand.ground.write("lines", format!("{}\n", "line\n".repeat(number)).as_bytes());
        stand.ground.commit(&format!("lines {number}"));
    }
    let before = picture(&stand.repo());
    stand.ok(&["box", "create", "a"]);
    for script in [
        "git status; git log --format='%h %an %s' --stat; git branch -a; git diff --stat HEAD~2",
        "echo new > new; echo more >> a.txt; git status --short; git diff; git add -p < /dev/null; \
         git add new; git diff --cached; git commit -qam 'in the box'; git log -1 --format=%H",
        "echo stash >> a.txt; echo u > untracked; git stash push -qu; git status --short; \
         git stash list; git stash pop -q; git status --short; git checkout -q a.txt; rm untracked",
        "git switch -qc side HEAD~2; echo side > side; git add side; git commit -qm side; \
         git rebase -q main; git log --format='%h %s' -3; git switch -q main; git merge -q side; \
         git log --graph --format=%h -4; git branch -d side",
        "git blame -s lines; git blame -s a.txt; git shortlog -sn HEAD; git describe --always",
        "git bisect start HEAD HEAD~5; git bisect run sh -c 'test $(wc -l < lines) -lt 4'; \
         git bisect reset; git status --short",
        "git rm -q dir/b.txt; git mv a.txt renamed; git commit -qm moved; git show --stat HEAD; \
         git revert --no-edit HEAD | head -1; git reset -q --hard HEAD~2; git status --short; ls",
        "git reset -q --hard; \
         git clean -fdxq; git tag v1; git notes add -m note; git log -1 --notes; git archive HEAD | tar t",
        "git format-patch -q -1 --stdout | git apply -R --index; git status --short; git checkout -qf HEAD .; \
         git gc -q; git fsck --strict; git count-objects | wc -l; git rev-list --count HEAD",
    ] {
        same_as_at_home(stand, "a", script);
        // Each script goes on from where the box is; the clone is made anew.
        stand.ok(&["box", "rm", "--force", "a"]);
        fs::remove_dir_all(stand.path().join("clone-a")).unwrap();
        stand.ok(&["box", "create", "a"]);
    }
    stand.ok(&["box", "rm", "--force", "a"]);
    assert_eq!(picture(&stand.repo()), before);
}

fn a_sparse_checkout_and_a_worktree_can_be_made_in_the_box(stand: &Stand) {
    named(stand);
    stand.ok(&["box", "create", "a"]);
    let script = "git sparse-checkout set --no-cone '/a.txt'; ls; git status --short; \
                  git sparse-checkout disable; ls; \
                  git worktree add -q ../tmp/tree HEAD~1 2>/dev/null || git worktree add -q /tmp/tree HEAD~1; \
                  cat /tmp/tree/a.txt; cd /tmp/tree; echo x > x; git add x; git commit -qm x; \
                  cd - >/dev/null; git worktree remove --force /tmp/tree; git worktree prune; \
                  git config extensions.worktreeConfig true; git config --worktree core.sparseCheckout false; \
                  git status --short; git worktree list | wc -l";
    assert_eq!(stand.sh("a", script), "a.txt\na.txt\ndir\none\n1");
    // What the sparse checkout took away for a while is not gone.
    assert_eq!(stand.ok(&["box", "diff", "a", "--name-only"]).text(), "");
}

fn files_stand_as_committed_whatever_line_ends_or_case_are_configured(stand: &Stand) {
    stand.ground.write("crlf", b"one\r\ntwo\r\n");
    stand.ground.write("lf", b"one\ntwo\n");
    stand.ground.commit("line ends");
    stand.ground.git(&["config", "core.autocrlf", "true"]);
    stand.ground.git(&["config", "core.ignorecase", "true"]);
    stand.ok(&["box", "create", "a"]);
    assert_eq!(stand.sh("a", "git status --porcelain; od -An -c crlf lf | tr -d ' \n'"), {
        "one\\r\\ntwo\\r\\none\\ntwo\\n"
    });
    stand.sh("a", "printf 'three\r\n' >> crlf; printf 'three\n' >> lf");
    let patch = stand.ok(&["box", "diff", "a"]);
    assert!(patch.text().contains("+three\r\n") && patch.text().contains("+three\n"));
}

fn names_that_differ_in_case_or_are_no_utf8_stand_beside_each_other(stand: &Stand) {
    for name in ["Readme", "README", "readme", "dir/Case", "DIR/case"] {
        stand.ground.write(name, name.as_bytes());
    }
    fs::write(stand.repo().join(raw_name(b"caf\xe9")), "latin\n").unwrap();
    fs::write(stand.repo().join(" \ttab \"quote\" \n"), "odd\n").unwrap();
    stand.ground.commit("names");
    stand.ok(&["box", "create", "a"]);
    assert_eq!(
        stand.sh(
            "a",
            "git status --porcelain; cat Readme README readme dir/Case DIR/case; ls | wc -l"
        ),
        "ReadmeREADMEreadmedir/CaseDIR/case9"
    );
    stand.sh("a", "for f in caf*; do echo more >> \"$f\"; done");
    assert_eq!(stand.ok(&["box", "diff", "a", "--name-only"]).text().lines().count(), 1);
}

fn a_file_of_100_mb_and_one_of_no_byte_are_there(stand: &Stand) {
    stand.ground.write("large", &vec![b'x'; 100 << 20]);
    stand.ground.write("empty", b"");
    stand.ground.commit("large");
    stand.ok(&["box", "create", "a"]);
    let said = stand.sh("a", "git status --porcelain; stat -c %s large empty; git diff-files");
    assert_eq!(said, "104857600\n0");
    stand.sh("a", "echo more >> empty");
    assert_eq!(stand.ok(&["box", "diff", "a", "--name-only"]).text(), "empty\n");
}

fn submodules_and_large_file_pointers_stand_as_themselves(stand: &Stand) {
    git(stand.path(), &["clone", "--quiet", "repo", "other"]);
    let other = stand.path().join("other");
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    stand.ground.git(&[&add[..], &[other.to_str().unwrap(), "sub"]].concat());
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    stand.ground.write("large.bin", pointer.as_bytes());
    stand.ground.write(".gitattributes", b"*.bin filter=lfs diff=lfs merge=lfs -text\n");
    stand.ground.commit("modules");
    let said = stand.ok(&["box", "create", "a"]);
    assert!(said.err.contains("submodule") && said.err.contains("LFS"), "{}", said.err);
    let script = "git submodule status | cut -c1; git status --porcelain; ls -A sub; cat large.bin";
    assert_eq!(stand.sh("a", script), format!("-\n{}", pointer.trim_end()));
    stand.sh("a", "echo x > a.txt");
    assert_eq!(stand.ok(&["box", "diff", "a", "--name-only"]).text(), "a.txt\n");
}
