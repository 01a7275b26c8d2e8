//! The workspace of a box, made from real repositories and judged by the real `git`.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use h5i::store::{BoxName, Scope};
use h5i::workspace::{
    BaseObjects, BaseSpec, HostRepository, Making, Note, ObjectsAt, ObjectsError, ObjectsRequest,
    PinnedBase, Workspace,
};
use h5i_policy::History;
use support::{
    Ground, Made, git, host_git, make, make_from, make_hidden, objects_of, packs, picture,
    raw_name, reachable, try_git,
};

/// Whether the box's git can read an object.
fn has(made: &Made, object: &str) -> bool {
    try_git(&made.work(), &["cat-file", "-e", object]).status.success()
}

#[test]
fn the_box_has_the_base_and_its_git_works() {
    let ground = Ground::new();
    let made = make(&ground, &BaseSpec::Head, History::Full);
    assert_eq!(fs::read(made.work().join("a.txt")).unwrap(), b"one and more\n");
    assert_eq!(fs::read(made.work().join("dir/b.txt")).unwrap(), b"two\n");
    assert_eq!(made.git(&["status", "--porcelain", "--branch"]), "## main");
    assert_eq!(made.git(&["log", "--format=%s"]), "second\nfirst");
    assert_eq!(made.git(&["rev-parse", "HEAD"]), ground.git(&["rev-parse", "HEAD"]));
    made.git(&["fsck", "--strict"]);
    fs::write(made.work().join("a.txt"), b"changed\n").unwrap();
    fs::write(made.work().join("new"), b"new\n").unwrap();
    assert_eq!(made.git(&["status", "--porcelain"]), " M a.txt\n?? new");
    made.git(&["add", "--all"]);
    made.git(&["commit", "--quiet", "-m", "in the box"]);
    assert_eq!(made.git(&["diff", "--stat", "HEAD~1", "--", "new"]).lines().count(), 2);
    assert_eq!(made.git(&["status", "--porcelain"]), "");
}

#[test]
fn the_first_status_finds_every_file_unchanged_without_reading_it() {
    let ground = Ground::new();
    let made = make(&ground, &BaseSpec::Head, History::Full);
    let index = made.work().join(".git/index");
    // Git reads a file again that is as young as the index, by the second.
    let second = |path: &Path| fs::metadata(path).unwrap().mtime();
    for file in ["a.txt", "dir/b.txt"] {
        assert!(second(&made.work().join(file)) < second(&index), "{file}");
    }
    let before = fs::read(&index).unwrap();
    made.git(&["status"]);
    assert_eq!(fs::read(&index).unwrap(), before, "git refreshed entries");
    // The twin: a file with another time is read again, and the index says so afterwards.
    let file = fs::File::options().append(true).open(made.work().join("a.txt")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    made.git(&["status"]);
    assert_ne!(fs::read(&index).unwrap(), before);
}

#[test]
fn a_change_of_equal_size_right_after_creation_is_seen() {
    let ground = Ground::new();
    let made = make(&ground, &BaseSpec::Head, History::Full);
    fs::write(made.work().join("dir/b.txt"), b"TWO\n").unwrap();
    assert_eq!(made.git(&["status", "--porcelain"]), " M dir/b.txt");
}

#[test]
fn other_branches_stashes_and_reset_commits_do_not_come_along() {
    let ground = Ground::new();
    ground.git(&["checkout", "--quiet", "-b", "other"]);
    ground.write("canary-branch", b"branch canary\n");
    let branch = ground.commit("on another branch");
    ground.git(&["checkout", "--quiet", "main"]);
    ground.write("canary-reset", b"reset canary\n");
    let reset = ground.commit("reset away");
    ground.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    ground.write("a.txt", b"stash canary\n");
    ground.git(&["stash", "--quiet"]);
    let stash = ground.git(&["rev-parse", "stash@{0}"]);
    ground.git(&["tag", "-a", "-m", "tag", "canary-tag", "other"]);
    let tag = ground.git(&["rev-parse", "canary-tag"]);
    let made = make(&ground, &BaseSpec::Head, History::Full);
    // The twin: the host borrowed whole has every one of them.
    let borrowed = make(&ground, &BaseSpec::Head, History::Borrow);
    let blob = |spec: &str| ground.git(&["rev-parse", spec]);
    let blobs = [
        blob("other:canary-branch"),
        blob(&format!("{reset}:canary-reset")),
        blob(&format!("{stash}:a.txt")),
    ];
    for object in [branch, reset, stash, tag].iter().chain(&blobs) {
        assert!(!has(&made, object), "{object} is readable in the box");
        assert!(has(&borrowed, object), "{object} is not in the host");
    }
    assert_eq!(made.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    assert_eq!(made.git(&["remote"]), "");
    assert!(!made.work().join(".git/hooks").try_exists().unwrap());
    borrowed.git(&["status"]);
}

#[test]
fn exactly_what_is_reachable_is_in_the_pack() {
    let ground = Ground::new();
    ground.git(&["checkout", "--quiet", "-b", "other"]);
    ground.write("other", b"other\n");
    ground.commit("other");
    ground.git(&["checkout", "--quiet", "main"]);
    let made = make(&ground, &BaseSpec::Head, History::Full);
    assert_eq!(objects_of(&made), reachable(&ground, "main"));
}

#[test]
fn a_later_base_shares_the_packs_of_an_earlier_one_and_has_no_more_than_its_own() {
    let ground = Ground::new();
    let earlier = make(&ground, &BaseSpec::Head, History::Full);
    ground.git(&["branch", "side"]);
    for message in ["third", "fourth"] {
        ground.write("a.txt", message.as_bytes());
        ground.commit(message);
    }
    let later = make(&ground, &BaseSpec::Head, History::Full);
    assert_eq!(packs(&later).len(), 2);
    assert!(packs(&later).contains(&packs(&earlier)[0]));
    assert_eq!(objects_of(&later), reachable(&ground, "main"));
    // Who is no ancestor has objects that are not this one's.
    ground.git(&["checkout", "--quiet", "side"]);
    ground.write("a.txt", b"aside");
    ground.commit("aside");
    let side = make(&ground, &BaseSpec::Head, History::Full);
    assert_eq!(packs(&side).len(), 2, "of the base that both have");
    assert_eq!(objects_of(&side), reachable(&ground, "side"));
    let first = make(&ground, &BaseSpec::Revision("main~3".into()), History::Full);
    assert_eq!(packs(&first).len(), 1);
    assert_eq!(objects_of(&first), reachable(&ground, "main~3"));
    // The earlier one's objects go.
    fs::remove_dir_all(&earlier.objects.path).unwrap();
    later.git(&["fsck", "--full", "--strict"]);
    side.git(&["fsck", "--full", "--strict"]);
    // A past that is cut short is packed by itself.
    let cut = make(&ground, &BaseSpec::Head, History::Depth(1));
    assert_eq!((packs(&cut).len(), cut.git(&["rev-list", "--count", "HEAD"])), (1, "1".to_owned()));
}

#[test]
fn damaged_objects_of_an_earlier_base_are_not_shared() {
    let ground = Ground::new();
    for damage in ["pack", "idx"] {
        let earlier = make(&ground, &BaseSpec::Head, History::Full);
        for entry in fs::read_dir(earlier.objects.path.join("objects/pack")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == damage) {
                fs::remove_file(path).unwrap();
            }
        }
        ground.write("a.txt", damage.as_bytes());
        ground.commit(damage);
        let later = make(&ground, &BaseSpec::Head, History::Full);
        assert_eq!((packs(&later).len(), objects_of(&later)), (1, reachable(&ground, "main")));
        later.git(&["fsck", "--full", "--strict"]);
    }
}

#[test]
fn packs_do_not_grow_in_number_without_end() {
    let ground = Ground::new();
    let mut made = Vec::new();
    for number in 0..10 {
        ground.write("a.txt", format!("{number}").as_bytes());
        ground.commit("more");
        made.push(make(&ground, &BaseSpec::Head, History::Full));
    }
    let counts: Vec<usize> = made.iter().map(|made| packs(made).len()).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]);
    assert_eq!(objects_of(&made[9]), reachable(&ground, "main"));
}

#[test]
fn the_host_repository_stays_byte_for_byte_the_same() {
    let ground = Ground::new();
    ground.write("staged", b"staged\n");
    ground.git(&["add", "staged"]);
    ground.write("untracked", b"untracked\n");
    ground.write("a.txt", b"unstaged\n");
    let before = picture(&ground.repo());
    for (spec, history) in [
        (BaseSpec::Head, History::Full),
        (BaseSpec::WorkingTree, History::Full),
        (BaseSpec::WorkingTree, History::None),
        (BaseSpec::Head, History::Depth(1)),
        (BaseSpec::Head, History::Borrow),
    ] {
        drop(make(&ground, &spec, history));
    }
    let after = picture(&ground.repo());
    let changed: Vec<_> = after.iter().filter(|f| !before.contains(f)).map(|f| &f.0).collect();
    assert!(changed.is_empty(), "{changed:?}");
    assert_eq!(after.len(), before.len());
}

#[test]
fn the_box_works_on_when_the_host_repository_is_gone() {
    let ground = Ground::new();
    let made = make(&ground, &BaseSpec::WorkingTree, History::Full);
    fs::remove_dir_all(ground.repo()).unwrap();
    assert_eq!(made.git(&["log", "--format=%s"]), "Working tree\nsecond\nfirst");
    made.git(&["fsck"]);
}

#[test]
fn depth_cuts_history_and_log_works() {
    let ground = Ground::new();
    ground.write("c", b"three\n");
    let third = ground.commit("third");
    let first = ground.git(&["rev-parse", "HEAD~2"]);
    let made = make(&ground, &BaseSpec::Head, History::Depth(2));
    assert_eq!(made.git(&["log", "--format=%s"]), "third\nsecond");
    assert!(!has(&made, &first));
    made.git(&["fsck"]);
    assert_eq!(made.git(&["status", "--porcelain"]), "");
    let deep = make(&ground, &BaseSpec::Head, History::Depth(50));
    assert_eq!(deep.objects.key.as_str(), third);
    assert!(has(&deep, &first));
}

#[test]
fn no_history_is_one_commit_that_depends_on_the_tree_alone() {
    let ground = Ground::new();
    let made = make(&ground, &BaseSpec::Head, History::None);
    assert_eq!(
        made.git(&["log", "--format=%an %ad %s", "--date=iso-strict"]),
        "h5i 2000-01-01T00:00:00Z Base"
    );
    assert_eq!(made.git(&["rev-parse", "HEAD^{tree}"]), ground.git(&["rev-parse", "HEAD^{tree}"]));
    assert!(!has(&made, &ground.git(&["rev-parse", "HEAD"])));
    assert!(!has(&made, &ground.git(&["rev-parse", "HEAD~1:a.txt"])));
    ground.commit("another commit of the same tree");
    let again = make(&ground, &BaseSpec::Head, History::None);
    assert_eq!(again.objects.tip, made.objects.tip);
    assert_eq!(again.objects.making, Making::Found);
}

#[test]
fn a_shallow_host_gives_what_it_has() {
    let ground = Ground::new();
    let url = format!("file://{}", ground.repo().display());
    git(ground.path(), &["clone", "--quiet", "--depth", "1", &url, "shallow"]);
    let host = HostRepository::open(&ground.path().join("shallow")).unwrap();
    let base = host.pin(&BaseSpec::Head).unwrap();
    let request = ObjectsRequest { history: History::Full, hidden: None };
    let made = make_from(&ground, Some(&host), &Scope::None, base, &request);
    assert_eq!(made.git(&["log", "--format=%s"]), "second");
    made.git(&["fsck"]);
}

#[test]
fn a_partial_clone_is_named_when_it_lacks_objects() {
    let ground = Ground::new();
    ground.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", ground.repo().display());
    git(
        ground.path(),
        &["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "partial"],
    );
    let host = HostRepository::open(&ground.path().join("partial")).unwrap();
    let base = host.pin(&BaseSpec::Head).unwrap();
    let store = ground.store();
    let mut draft = store.draft(&Scope::None, &BoxName::new("a").unwrap(), None).unwrap();
    let request = ObjectsRequest { history: History::Full, hidden: None };
    let refused =
        BaseObjects::make(&mut draft, Some(&host), &base, &request, &host_git()).unwrap_err();
    assert!(matches!(refused, ObjectsError::PartialClone(_)), "{refused:?}");
    drop(draft);
    let left: Vec<_> =
        fs::read_dir(store.objects_dir()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn hidden_paths_are_neither_files_nor_objects() {
    let ground = Ground::new();
    ground.write("secrets/key", b"old canary\n");
    ground.commit("a secret");
    ground.write("secrets/key", b"canary\n");
    ground.write("deep/only/.env", b"env canary\n");
    ground.commit("another secret");
    let hidden = |path: &[u8]| path == b"secrets" || path.ends_with(b".env");
    let made = make_hidden(&ground, &BaseSpec::Head, History::Full, Some(&hidden));
    let open = make(&ground, &BaseSpec::Head, History::Full);
    for canary in ["HEAD:secrets/key", "HEAD~1:secrets/key", "HEAD:deep/only/.env"] {
        let object = ground.git(&["rev-parse", canary]);
        assert!(!has(&made, &object), "{canary}");
        assert!(has(&open, &object), "{canary}");
    }
    assert!(!made.work().join("secrets").try_exists().unwrap());
    assert!(!made.work().join("deep").try_exists().unwrap());
    assert_eq!(made.git(&["status", "--porcelain"]), "");
    assert_eq!(made.git(&["log", "--format=%s"]), "Base");
}

#[test]
fn all_hidden_leaves_an_empty_tree() {
    let ground = Ground::new();
    let made = make_hidden(&ground, &BaseSpec::Head, History::Full, Some(&|_| true));
    assert_eq!(made.git(&["ls-files"]), "");
    assert_eq!(made.git(&["status", "--porcelain"]), "");
}

#[test]
fn borrowing_while_hiding_is_refused() {
    let ground = Ground::new();
    let host = ground.host();
    let base = host.pin(&BaseSpec::Head).unwrap();
    let request = ObjectsRequest { history: History::Borrow, hidden: Some(&|_| false) };
    let mut draft = ground.store().draft(&host.scope(), &BoxName::new("a").unwrap(), None).unwrap();
    let refused = BaseObjects::make(&mut draft, Some(&host), &base, &request, &host_git());
    assert!(matches!(refused, Err(ObjectsError::BorrowHidden)), "{refused:?}");
}

#[test]
fn links_modes_and_raw_names_are_as_committed() {
    let ground = Ground::new();
    ground.write_executable("run.sh", b"#!/bin/sh\n");
    symlink("dir/b.txt", ground.repo().join("link")).unwrap();
    symlink("/etc/passwd", ground.repo().join("out")).unwrap();
    fs::write(ground.repo().join(raw_name(b"caf\xe9")), b"latin\n").unwrap();
    ground.write("empty", b"");
    ground.commit("kinds");
    let made = make(&ground, &BaseSpec::Head, History::Full);
    assert_eq!(made.git(&["status", "--porcelain"]), "");
    let mode = |name: &str| fs::metadata(made.work().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("run.sh") & 0o111, 0o111);
    assert_eq!(mode("a.txt") & 0o111, 0);
    assert_eq!(fs::read_link(made.work().join("link")).unwrap(), Path::new("dir/b.txt"));
    assert_eq!(fs::read_link(made.work().join("out")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(fs::read(made.work().join(raw_name(b"caf\xe9"))).unwrap(), b"latin\n");
}

#[test]
fn files_have_the_committed_bytes_whatever_attributes_say() {
    let ground = Ground::new();
    ground.write(".gitattributes", b"*.bat text eol=crlf\n*.id ident\n*.f filter=evil\n");
    ground.write("x.bat", b"echo\r\n");
    ground.write("x.id", b"$Id$\n");
    ground.write("x.f", b"plain\n");
    ground.commit("attributes");
    let made = make(&ground, &BaseSpec::Head, History::Full);
    assert_eq!(fs::read(made.work().join("x.bat")).unwrap(), b"echo\n");
    assert_eq!(fs::read(made.work().join("x.id")).unwrap(), b"$Id$\n");
    assert_eq!(made.git(&["status", "--porcelain"]), "");
    // Also when git reads every file again.
    fs::remove_file(made.work().join(".git/index")).unwrap();
    made.git(&["reset", "--quiet"]);
    assert_eq!(made.git(&["status", "--porcelain"]), "");
}

#[test]
fn submodules_and_lfs_pointers_are_named() {
    let ground = Ground::new();
    let head = ground.git(&["rev-parse", "HEAD"]);
    ground.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},sub")]);
    ground.write("big.bin", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    ground.git(&["add", "big.bin"]);
    ground.git(&["commit", "--quiet", "-m", "both"]);
    let made = make(&ground, &BaseSpec::Head, History::Full);
    assert_eq!(
        made.prepared.notes,
        [Note::LfsPointer { path: b"big.bin".to_vec() }, Note::Submodule { path: b"sub".to_vec() }]
    );
    assert_eq!(made.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_moved_branch_does_not_change_an_existing_box() {
    let ground = Ground::new();
    let base = ground.host().pin(&BaseSpec::Head).unwrap();
    ground.write("a.txt", b"later\n");
    ground.commit("third");
    let host = ground.host();
    let request = ObjectsRequest { history: History::Full, hidden: None };
    let made = make_from(&ground, Some(&host), &host.scope(), base, &request);
    assert_eq!(made.git(&["log", "-1", "--format=%s"]), "second");
}

#[test]
fn the_second_box_of_a_base_finds_its_objects() {
    let ground = Ground::new();
    let first = make(&ground, &BaseSpec::Head, History::Full);
    let second = make(&ground, &BaseSpec::Revision("main".into()), History::Full);
    assert_eq!(first.objects.making, Making::Made);
    assert_eq!(second.objects.making, Making::Found);
    assert_eq!(first.objects.path, second.objects.path);
}

#[test]
fn an_empty_box_has_a_repository_with_an_empty_base() {
    let ground = Ground::bare_ground();
    let request = ObjectsRequest { history: History::Full, hidden: None };
    let made = make_from(&ground, None, &Scope::None, PinnedBase::empty(), &request);
    assert_eq!(made.git(&["status", "--porcelain", "--branch"]), "## main");
    fs::write(made.work().join("x"), b"x").unwrap();
    made.git(&["add", "x"]);
    made.git(&["commit", "--quiet", "-m", "x"]);
    assert_eq!(made.git(&["diff", "--name-only", "HEAD~1"]), "x");
}

#[test]
fn only_name_and_address_come_from_the_host_configuration() {
    let ground = Ground::new();
    ground.git(&["config", "user.name", "Ann \"A\" Author # 1"]);
    ground.git(&["config", "user.email", "ann@example.com"]);
    ground.git(&["config", "core.fsmonitor", "/bin/evil"]);
    ground.git(&["config", "alias.st", "!evil"]);
    ground.git(&["remote", "add", "origin", "https://token@example.com/x"]);
    let made = make(&ground, &BaseSpec::Head, History::Full);
    let names = made.git(&["config", "--local", "--list", "--name-only"]);
    assert_eq!(
        names,
        "core.repositoryformatversion\ncore.filemode\ncore.bare\ncore.logallrefupdates\nuser.name\nuser.email"
    );
    assert_eq!(made.git(&["config", "user.name"]), "Ann \"A\" Author # 1");
}

#[test]
fn in_a_confined_box_objects_are_seen_below_run() {
    let ground = Ground::new();
    let made = make(&ground, &BaseSpec::Head, History::Borrow);
    let mounts = Workspace::mounts(&made.objects, &ObjectsAt::InBox("/run/h5i/objects".into()));
    let at: Vec<_> = mounts.iter().map(|mount| mount.at.to_str().unwrap()).collect();
    assert_eq!(at, ["/run/h5i/objects/0", "/run/h5i/objects/1"]);
    assert_eq!(mounts[1].host, ground.repo().join(".git/objects"));
}
