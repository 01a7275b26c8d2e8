//! What keeps a bundle out of the repository. Each refusal leaves the repository as it was.

use std::fs;

use crate::stand::Stand;

/// Refused with these words, and not a byte of the repository differs.
#[track_caller]
fn refused(stand: &Stand, more: &[&str], code: i32, kind: &str, says: &str) {
    let before = stand.traces().repo;
    let said = stand.apply("a", more);
    let told = said.failure();
    assert_eq!((said.code, told.kind.as_str()), (code, kind), "{told:?}");
    assert!(told.message.contains(says), "{told:?}");
    assert!(told.hint.is_some(), "{told:?}");
    assert!(stand.traces().repo == before, "{more:?} left something behind");
}

const CHANGE: &str = "echo more >> a.txt; echo new > new";

#[test]
fn a_bundle_that_changed_after_its_export_is_refused() {
    let stand = Stand::with_identity();
    let out = stand.exported("a", CHANGE);
    let keep = |name: &str| fs::read(out.join(name)).unwrap();
    for name in ["patch.diff", "report.md", "report.html", "receipt.json"] {
        let original = keep(name);
        fs::write(out.join(name), [&original[..], b" "].concat()).unwrap();
        refused(&stand, &[], 1, "corrupt", name);
        fs::write(out.join(name), original).unwrap();
    }
    // With every digest in the bundle covered, the log does not know the result.
    let original = keep("bundle.json");
    fs::write(out.join("bundle.json"), [&original[..], b"\n"].concat()).unwrap();
    refused(&stand, &[], 4, "refused", "does not know the bundle");
    fs::write(out.join("bundle.json"), original).unwrap();
    stand.applied("a", &[]);
}

#[test]
fn a_bundle_of_another_box_or_with_another_digest_is_refused() {
    let stand = Stand::with_identity();
    let out = stand.exported("a", CHANGE);
    stand.exported("b", "echo b > b");
    let aside = stand.path().join("aside");
    fs::rename(&out, &aside).unwrap();
    fs::rename(stand.path().join("b.out"), &out).unwrap();
    refused(&stand, &[], 4, "refused", "does not know the bundle");
    fs::rename(&out, stand.path().join("b.out")).unwrap();
    fs::rename(&aside, &out).unwrap();
    let other = format!("sha256:{}", "0".repeat(64));
    refused(&stand, &["--digest", &other], 4, "refused", "not the one named");
    let done = stand.applied("a", &[]);
    stand.applied("a", &["--branch", "again", "--digest", &done.bundle]);
}

#[test]
fn a_log_that_was_changed_vouches_for_nothing() {
    let stand = Stand::with_identity();
    stand.exported("a", CHANGE);
    let log = stand.box_dir("a").join("host/receipt.jsonl");
    let original = fs::read_to_string(&log).unwrap();
    fs::write(&log, original.replacen("\"exit_code\":0", "\"exit_code\":9", 1)).unwrap();
    refused(&stand, &[], 1, "corrupt", "it was changed after it was written");
    fs::write(&log, original).unwrap();
    stand.applied("a", &[]);
}

#[test]
fn a_bundle_of_a_run_that_was_stopped_is_marked_and_wants_a_word() {
    let stand = Stand::with_identity();
    stand.ok(&["box", "create", "a"]);
    let words =
        ["box", "run", "a", "--timeout", "4s", "--", "sh", "-c", "echo half > half; exec sleep 60"];
    assert_eq!(stand.h5i(&words).code, 124);
    let out = stand.export("a");
    let index = fs::read_to_string(out.join("bundle.json")).unwrap();
    assert!(index.contains("\"completeness\": \"incomplete\""), "{index}");
    refused(&stand, &[], 4, "refused", "may be half done");
    stand.applied("a", &["--incomplete"]);
    // The twin: a run that ended by itself needs no word.
    let index = fs::read_to_string(stand.exported("b", CHANGE).join("bundle.json")).unwrap();
    assert!(index.contains("\"completeness\": \"complete\""), "{index}");
    stand.applied("b", &[]);
}

#[test]
fn branches_that_are_there_or_can_not_be_are_refused() {
    let stand = Stand::with_identity();
    stand.exported("a", CHANGE);
    stand.ground.git(&["branch", "there/deep"]);
    refused(&stand, &["--branch", "main"], 4, "exists", "`main`");
    refused(&stand, &["--branch", "there"], 4, "exists", "`there/deep`");
    refused(&stand, &["--branch", "main/x"], 4, "exists", "`main`");
    for name in ["a..b", "-x", "x.lock", "a b", "HEAD", "x/", "@{u}"] {
        let asked = format!("--branch={name}");
        refused(&stand, &[&asked], 2, "usage", &format!("`{name}`"));
    }
    stand.applied("a", &["--branch", "there/too"]);
}

#[test]
fn a_working_tree_that_has_something_to_lose_is_left_alone() {
    let stand = Stand::with_identity();
    stand.exported("a", CHANGE);
    let worktree = &["--worktree"];
    stand.ground.write("dir/b.txt", b"mine\n");
    refused(&stand, worktree, 4, "refused", "`dir/b.txt`");
    stand.ground.git(&["add", "dir/b.txt"]);
    refused(&stand, worktree, 4, "refused", "`dir/b.txt`");
    stand.ground.git(&["reset", "--quiet", "--hard"]);
    stand.ground.write("new", b"mine\n");
    refused(&stand, worktree, 4, "refused", "`new`");
    // An ignored file is somebody's as well.
    fs::write(stand.repo().join(".git/info/exclude"), "new\n").unwrap();
    refused(&stand, worktree, 4, "refused", "`new`");
    fs::remove_file(stand.repo().join("new")).unwrap();
    let head = stand.ground.git(&["rev-parse", "HEAD"]);
    fs::write(stand.repo().join(".git/MERGE_HEAD"), format!("{head}\n")).unwrap();
    refused(&stand, worktree, 4, "refused", "in the middle of another operation");
    fs::remove_file(stand.repo().join(".git/MERGE_HEAD")).unwrap();
    stand.applied("a", worktree);
}

#[test]
fn nobody_commits_without_a_name() {
    let stand = Stand::new();
    stand.exported("a", CHANGE);
    refused(&stand, &[], 4, "refused", "user.name and user.email");
    // What was refused is not on record as done.
    assert!(!stand.ok(&["box", "log", "a"]).text().contains("applied"));
    stand.ground.git(&["config", "user.name", "Ann"]);
    stand.ground.git(&["config", "user.email", "ann@example.com"]);
    stand.applied("a", &[]);
    assert!(stand.ok(&["box", "log", "a"]).text().contains("applied"));
}

#[test]
fn a_box_in_use_is_applied_and_one_that_is_none_is_named() {
    let stand = Stand::with_identity();
    stand.exported("a", CHANGE);
    let mut run = stand.command();
    run.args(["box", "run", "a", "--", "cat"]);
    run.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut stdin = run.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"x").unwrap();
    std::io::Read::read_exact(&mut run.stdout.take().unwrap(), &mut [0]).unwrap();
    // The holder of its session puts it on record.
    stand.applied("a", &[]);
    let log = stand.ok(&["box", "log", "a"]);
    assert!(log.text().contains("to h5i/a\n"), "{}", log.text());
    drop(stdin);
    run.wait().unwrap();
    let out = stand.path().join("a.out");
    let words = ["box", "apply", "zz", "--yes", "--json", "--bundle", out.to_str().unwrap()];
    assert_eq!(stand.h5i(&words).failure().kind, "not-found");
    let words = ["box", "apply", "a", "--yes", "--json", "--bundle", "nowhere"];
    assert_eq!(stand.h5i(&words).failure().kind, "not-found");
}
