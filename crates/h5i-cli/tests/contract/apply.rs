//! A reviewed bundle in the repository: as a commit on a new branch, and in the working tree.

use std::fs;
use std::path::PathBuf;

use crate::shapes::{AppliedBundle, Bytes};
use crate::stand::{Said, Stand};

impl Stand {
    /// With a name to commit under, as a person has it.
    pub(crate) fn with_identity() -> Self {
        let stand = Self::new();
        let config = "[user]\n name = Hal Host\n email = hal@example.com\n";
        fs::write(stand.home().join(".gitconfig"), config).unwrap();
        stand
    }

    /// Box `name` in which a script ran, exported.
    pub(crate) fn exported(&self, name: &str, script: &str) -> PathBuf {
        self.ok(&["box", "create", name]);
        self.sh(name, script);
        self.export(name)
    }

    pub(crate) fn export(&self, name: &str) -> PathBuf {
        let out = self.path().join(format!("{name}.out"));
        self.ok(&["box", "export", name, "--force", "-o", out.to_str().unwrap()]);
        out
    }

    /// Applies the bundle of `exported`.
    pub(crate) fn apply(&self, name: &str, more: &[&str]) -> Said {
        let out = self.path().join(format!("{name}.out"));
        let words = ["box", "apply", name, "--bundle", out.to_str().unwrap(), "--yes", "--json"];
        self.h5i(&[&words[..], more].concat())
    }

    pub(crate) fn applied(&self, name: &str, more: &[&str]) -> AppliedBundle {
        let said = self.apply(name, more);
        assert_eq!(said.code, 0, "{} {}", said.err, said.text());
        said.data()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.repo().join(name)).unwrap()
    }
}

/// One of each kind of change.
const CHANGES: &str = "echo more >> a.txt; printf '\\0\\1' > blob; ln -s a.txt link; \
                       git mv dir/b.txt dir/c.txt; chmod +x dir/c.txt; printf 'a\\r\\n' > crlf";

#[test]
fn a_bundle_becomes_one_commit_on_a_new_branch_with_the_reviewed_tree() {
    let stand = Stand::with_identity();
    let out = stand.exported("a", CHANGES);
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("bundle.json")).unwrap()).unwrap();
    let head = stand.ground.git(&["rev-parse", "HEAD"]);
    let status = stand.ground.git(&["status", "--porcelain"]);
    let done = stand.applied("a", &[]);
    assert_eq!((done.name.as_str(), done.branch.as_deref()), ("a", Some("h5i/a")));
    assert_eq!(done.tree.as_deref(), index["tree"].as_str());
    assert_eq!(done.onto.as_deref(), Some(head.as_str()));
    assert!(done.conflicts.is_empty());
    let git = |args: &[&str]| stand.ground.git(args);
    assert_eq!(git(&["rev-parse", "h5i/a"]), done.commit.unwrap());
    assert_eq!(git(&["rev-parse", "h5i/a^{tree}"]), done.tree.unwrap());
    assert_eq!(git(&["rev-parse", "h5i/a^"]), head);
    assert_eq!(
        git(&["log", "-1", "--format=%an <%ae> %cn", "h5i/a"]),
        "Hal Host <hal@example.com> Hal Host"
    );
    let trailers = git(&["log", "-1", "--format=%(trailers)", "h5i/a"]);
    assert!(trailers.contains(&format!("H5i-Bundle: {}", done.bundle)), "{trailers}");
    assert!(trailers.contains("H5i-Box: a ("), "{trailers}");
    assert!(trailers.contains(&format!("H5i-Base: {head}")), "{trailers}");
    // Nothing else of the repository moved.
    assert_eq!(git(&["rev-parse", "HEAD"]), head);
    assert_eq!(git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(git(&["status", "--porcelain"]), status);
    git(&["fsck", "--strict"]);
    // It is on record in the box.
    let log = stand.ok(&["box", "log", "a"]);
    assert!(log.text().contains(&format!("applied {} to h5i/a", done.bundle)), "{}", log.text());
}

#[test]
fn a_branch_that_went_on_keeps_its_changes_beside_those_of_the_box() {
    let stand = Stand::with_identity();
    stand.exported("a", CHANGES);
    stand.ground.write("new-here.txt", b"here\n");
    let head = stand.ground.commit("third");
    let done = stand.applied("a", &["--branch", "topic/x"]);
    assert_eq!(done.branch.as_deref(), Some("topic/x"));
    let git = |args: &[&str]| stand.ground.git(args);
    assert_eq!(git(&["rev-parse", "topic/x^"]), head);
    assert_eq!(git(&["show", "topic/x:new-here.txt"]), "here");
    assert_eq!(git(&["show", "topic/x:a.txt"]), "one and more\nmore");
    let names = git(&["ls-tree", "-r", "--name-only", "topic/x"]);
    assert_eq!(names, "a.txt\nblob\ncrlf\ndir/c.txt\nlink\nnew-here.txt");
    git(&["fsck", "--strict"]);
}

#[test]
fn where_both_sides_changed_a_branch_is_refused_and_the_working_tree_gets_markers() {
    let stand = Stand::with_identity();
    stand.exported("a", "echo theirs > a.txt; echo free > free");
    stand.ground.write("a.txt", b"ours\n");
    stand.ground.commit("third");
    let refs = stand.ground.git(&["for-each-ref"]);
    let said = stand.apply("a", &[]);
    let told = said.failure();
    assert_eq!((said.code, told.kind.as_str()), (4, "refused"), "{told:?}");
    assert_eq!(told.details["paths"], serde_json::json!(["a.txt"]));
    assert!(told.hint.unwrap().contains("--worktree"));
    assert_eq!(stand.ground.git(&["for-each-ref"]), refs);
    // The twin.
    let said = stand.apply("a", &["--worktree"]);
    assert_eq!(said.code, 1, "{} {}", said.err, said.text());
    let done: AppliedBundle = said.data();
    assert_eq!(done.conflicts, [Bytes::Text("a.txt".to_owned())]);
    assert_eq!((done.branch, done.commit, done.tree), (None, None, None));
    assert_eq!(stand.read("a.txt"), "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> box a\n");
    assert_eq!(stand.ground.git(&["status", "--porcelain"]), "UU a.txt\nA  free");
    assert_eq!(stand.ground.git(&["show", ":1:a.txt"]), "one and more");
}

#[test]
fn a_clean_working_tree_gets_the_reviewed_files_and_the_index_their_tree() {
    let stand = Stand::with_identity();
    let out = stand.exported("a", CHANGES);
    let head = stand.ground.git(&["rev-parse", "HEAD"]);
    stand.ground.write("untracked", b"mine\n");
    let done = stand.applied("a", &["--worktree"]);
    assert_eq!((done.branch, done.onto.as_deref()), (None, Some(head.as_str())));
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("bundle.json")).unwrap()).unwrap();
    assert_eq!(stand.ground.git(&["write-tree"]), index["tree"].as_str().unwrap());
    assert_eq!(stand.ground.git(&["diff", "--name-only"]), "");
    assert_eq!(stand.read("crlf"), "a\r\n");
    assert_eq!(fs::read_link(stand.repo().join("link")).unwrap().to_str(), Some("a.txt"));
    assert_eq!(stand.read("untracked"), "mine\n");
    assert_eq!(stand.ground.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(stand.ground.git(&["for-each-ref", "refs/heads/h5i"]), "");
}

#[test]
fn some_files_are_taken_and_the_others_stay() {
    let stand = Stand::with_identity();
    stand.exported("a", CHANGES);
    stand.applied("a", &["--only", "dir", "blob"]);
    let names = stand.ground.git(&["ls-tree", "-r", "--name-only", "h5i/a"]);
    assert_eq!(names, "a.txt\nblob\ndir/c.txt");
    assert_eq!(stand.ground.git(&["show", "h5i/a:a.txt"]), "one and more");
    // A renamed file is taken by its old name as well.
    stand.applied("a", &["--branch", "b", "--only", "dir/b.txt"]);
    assert_eq!(stand.ground.git(&["ls-tree", "-r", "--name-only", "b"]), "a.txt\ndir/c.txt");
    let said = stand.apply("a", &["--branch", "c", "--only", "dir/b", "a.txt"]);
    let told = said.failure();
    assert_eq!((said.code, told.kind.as_str()), (3, "not-found"), "{told:?}");
    assert!(told.message.contains("`dir/b`"), "{told:?}");
}

#[test]
fn a_removed_box_still_vouches_for_its_bundle() {
    let stand = Stand::with_identity();
    stand.exported("a", CHANGES);
    stand.ok(&["box", "rm", "a"]);
    stand.ok(&["box", "gc"]);
    let done = stand.applied("a", &[]);
    assert_eq!(done.tree.unwrap(), stand.ground.git(&["rev-parse", "h5i/a^{tree}"]));
    // Without its receipt nobody vouches for it.
    stand.exported("b", CHANGES);
    stand.ok(&["box", "rm", "--purge", "b"]);
    let said = stand.apply("b", &[]);
    assert_eq!((said.code, said.failure().kind.as_str()), (3, "not-found"));
}

#[test]
fn a_box_of_the_working_tree_or_of_nothing_lands_as_well() {
    let stand = Stand::with_identity();
    stand.ground.write("a.txt", b"dirty\n");
    stand.ok(&["box", "create", "d", "--dirty"]);
    stand.sh("d", "echo new > new");
    stand.export("d");
    // What the box did not change stays what it is on the branch.
    stand.applied("d", &[]);
    assert_eq!(stand.ground.git(&["diff", "--name-only", "main", "h5i/d"]), "new");
    stand.ok(&["box", "create", "e", "--empty"]);
    stand.sh("e", "echo e > e");
    stand.export("e");
    stand.applied("e", &[]);
    assert_eq!(stand.ground.git(&["diff", "--name-only", "main", "h5i/e"]), "e");
}

#[test]
fn a_branch_without_a_commit_gets_its_first_beside_it() {
    let stand = Stand::with_identity();
    stand.ok(&["box", "create", "e", "--empty"]);
    stand.sh("e", "echo e > e");
    stand.export("e");
    let other = stand.path().join("unborn");
    crate::support::git(stand.path(), &["init", "--quiet", "unborn"]);
    let out = stand.path().join("e.out");
    let words = ["box", "apply", "e", "--yes", "--bundle", out.to_str().unwrap()];
    let said = Said::of(stand.command().current_dir(&other).args(words).output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(crate::support::git(&other, &["show", "h5i/e:e"]), "e");
    assert_eq!(crate::support::git(&other, &["rev-list", "--count", "h5i/e"]), "1");
}

#[test]
fn nothing_that_the_repository_is_configured_to_run_runs() {
    let stand = Stand::with_identity();
    // The box names drivers that the host has.
    let attributes = "echo '* filter=x merge=x diff=x text eol=crlf' > .gitattributes";
    stand.exported("a", &format!("echo more >> a.txt; echo x > x.txt; {attributes}"));
    let canary = stand.path().join("ran");
    let script = format!("#!/bin/sh\ntouch {}\nexec cat\n", canary.display());
    let program = stand.path().join("program");
    fs::write(&program, &script).unwrap();
    let executable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(&program, executable.clone()).unwrap();
    for hook in
        ["pre-commit", "post-checkout", "post-commit", "reference-transaction", "post-index-change"]
    {
        let path = stand.repo().join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &script).unwrap();
        fs::set_permissions(&path, executable.clone()).unwrap();
    }
    let program = program.to_str().unwrap();
    for key in
        ["core.fsmonitor", "filter.x.clean", "filter.x.smudge", "merge.x.driver", "diff.x.textconv"]
    {
        stand.ground.git(&["config", key, program]);
    }
    fs::write(stand.repo().join(".git/info/attributes"), "*.txt filter=x merge=x diff=x\n")
        .unwrap();
    stand.applied("a", &[]);
    stand.applied("a", &["--worktree"]);
    assert_eq!(stand.read("x.txt"), "x\n");
    assert!(!canary.try_exists().unwrap());
    // The twin: git itself runs them.
    stand.ground.git(&["update-ref", "refs/heads/other", "HEAD"]);
    assert!(canary.try_exists().unwrap());
}

#[test]
fn a_linked_worktree_and_a_directory_below_are_places_to_apply_in() {
    let stand = Stand::with_identity();
    let linked = stand.path().join("linked");
    stand.ground.git(&["worktree", "add", "--quiet", "-b", "side", linked.to_str().unwrap()]);
    let in_linked = |directory: &std::path::Path, words: &[&str]| {
        let said = Said::of(stand.command().current_dir(directory).args(words).output().unwrap());
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
    };
    in_linked(&linked, &["box", "create", "a"]);
    stand.sh("a", CHANGES);
    let out = stand.export("a");
    let words = ["box", "apply", "a", "--yes", "--bundle", out.to_str().unwrap(), "--worktree"];
    in_linked(&linked.join("dir"), &words);
    let git = |args: &[&str]| crate::support::git(&linked, args);
    assert_eq!(git(&["diff", "--cached", "--name-only"]), "a.txt\nblob\ncrlf\ndir/c.txt\nlink");
    assert_eq!(git(&["diff", "--name-only"]), "");
    // The main one is untouched.
    assert_eq!(stand.ground.git(&["status", "--porcelain"]), "");
    git(&["reset", "--quiet", "--hard"]);
    in_linked(&linked, &words[..6]);
    assert_eq!(git(&["rev-parse", "h5i/a^"]), git(&["rev-parse", "side"]));
}
