//! The host's working tree as a base, against what `git add --all` makes of it.

#![allow(clippy::unwrap_used, reason = "a broken ground is a failed test")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use h5i::workspace::BaseSpec;
use h5i_policy::History;
use support::{Ground, git, make};

/// The tree that `git add --all` makes, in a copy so that the host stays as it is.
fn expected(ground: &Ground) -> String {
    let copy = ground.path().join("copy");
    git(ground.path(), &["clone", "--quiet", "--no-checkout", "repo", "copy"]);
    let work_tree = format!("--work-tree={}", ground.repo().display());
    fs::copy(ground.repo().join(".git/index"), copy.join(".git/index")).unwrap();
    fs::copy(ground.repo().join(".git/info/exclude"), copy.join(".git/info/exclude")).unwrap();
    let objects = ground.repo().join(".git/objects");
    fs::write(copy.join(".git/objects/info/alternates"), format!("{}\n", objects.display()))
        .unwrap();
    git(&copy, &[&work_tree, "add", "--all"]);
    git(&copy, &["write-tree"])
}

#[test]
fn every_kind_of_change_is_taken() {
    let ground = Ground::new();
    ground.write(".gitignore", b"*.log\n/build/\n");
    ground.write("gone", b"gone\n");
    ground.write("gone-staged", b"gone\n");
    ground.write("kind", b"a file\n");
    ground.write("mode", b"#!/bin/sh\n");
    ground.commit("ground");
    ground.write("staged", b"staged\n");
    ground.git(&["add", "staged"]);
    ground.write("both", b"staged\n");
    ground.git(&["add", "both"]);
    ground.write("both", b"staged and changed\n");
    ground.write("a.txt", b"unstaged\n");
    ground.write("new/untracked", b"untracked\n");
    ground.write("noise.log", b"ignored\n");
    ground.write("build/out", b"ignored\n");
    ground.write("excluded", b"ignored\n");
    fs::write(ground.repo().join(".git/info/exclude"), "excluded\n").unwrap();
    ground.write("forced.log", b"tracked though ignored\n");
    ground.git(&["add", "--force", "forced.log"]);
    fs::remove_file(ground.repo().join("gone")).unwrap();
    ground.git(&["rm", "--quiet", "gone-staged"]);
    fs::remove_file(ground.repo().join("kind")).unwrap();
    symlink("a.txt", ground.repo().join("kind")).unwrap();
    fs::set_permissions(ground.repo().join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    let made = make(&ground, &BaseSpec::WorkingTree, History::Full);
    assert_eq!(made.objects.tree.to_string(), expected(&ground));
    assert_eq!(made.git(&["rev-parse", "HEAD~1"]), ground.git(&["rev-parse", "HEAD"]));
    assert_eq!(made.git(&["status", "--porcelain"]), "");
    assert!(!made.work().join("noise.log").try_exists().unwrap());
    made.git(&["fsck"]);
}

#[test]
fn a_change_that_only_the_age_of_the_index_gives_away_is_taken() {
    let ground = Ground::new();
    // Size, inode and time stay as they are in the index, which is no younger than the file: Git
    // then compares bytes.
    ground.git(&["config", "core.trustctime", "false"]);
    let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let set_time = |name: &str| {
        let file = fs::File::options().append(true).open(ground.repo().join(name)).unwrap();
        file.set_modified(past).unwrap();
    };
    ground.write("quick", b"before\n");
    set_time("quick");
    ground.git(&["add", "quick"]);
    ground.write("quick", b"after!\n");
    set_time("quick");
    set_time(".git/index");
    let made = make(&ground, &BaseSpec::WorkingTree, History::Full);
    assert_eq!(fs::read(made.work().join("quick")).unwrap(), b"after!\n");
}

#[test]
fn a_clean_working_tree_has_the_tree_of_its_commit() {
    let ground = Ground::new();
    let made = make(&ground, &BaseSpec::WorkingTree, History::Full);
    assert_eq!(Some(made.objects.tree), made.base.tree);
}

#[test]
fn files_left_out_by_a_sparse_checkout_are_not_deleted() {
    let ground = Ground::new();
    ground.git(&["sparse-checkout", "set", "--no-cone", "/a.txt"]);
    assert!(!ground.repo().join("dir/b.txt").try_exists().unwrap());
    ground.write("a.txt", b"dirty\n");
    let made = make(&ground, &BaseSpec::WorkingTree, History::Full);
    assert_eq!(fs::read(made.work().join("dir/b.txt")).unwrap(), b"two\n");
    assert_eq!(fs::read(made.work().join("a.txt")).unwrap(), b"dirty\n");
}

#[test]
fn a_linked_worktree_gives_its_own_files() {
    let ground = Ground::new();
    ground.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    fs::write(ground.path().join("side/side-file"), b"side\n").unwrap();
    let host = h5i::workspace::HostRepository::discover(&ground.path().join("side/dir")).unwrap();
    assert_eq!(host.scope(), ground.host().scope());
    let base = host.pin(&BaseSpec::WorkingTree).unwrap();
    assert_eq!(base.branch, "side");
    let request = h5i::workspace::ObjectsRequest { history: History::Full, hidden: None };
    let made = support::make_from(&ground, Some(&host), &host.scope(), base, &request);
    assert_eq!(fs::read(made.work().join("side-file")).unwrap(), b"side\n");
}
