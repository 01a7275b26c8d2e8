//! The upper layer of an overlay gives the same review as a whole tree with the same edits.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use h5i_testkit::{Need, have};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};

use crate::fixture::{Fixture, Tree};
use crate::review::{LeftBehind, ReviewError, Reviewed};
use crate::tree::{TreeError, TreeSource};

fn base(tree: &Tree) {
    tree.file(".gitignore", "ignored/\n*.log\n")
        .file("a", "one\ntwo\n")
        .file("d/e/f", "deep\n")
        .file("d/e/g", "other\n")
        .file("d/b", [0_u8, 1, 2])
        .file("run", "#!/bin/sh\n")
        .mode("run", 0o755)
        .file("x/y/z", "z\n")
        .link("l", "a")
        .link("d/up", "../a");
}

/// A mounted overlay over the base, edited by a shell script.
struct Layered {
    dir: PathBuf,
}

impl Layered {
    fn new(fixture: &Fixture) -> Self {
        let dir = fixture.path().join("layered");
        for name in ["upper", "work", "merged"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        crate::fixture::git(fixture.path(), &["clone", "-q", "host", "layered/lower"], b"");
        fs::remove_dir_all(dir.join("lower/.git")).unwrap();
        Self { dir }
    }

    fn edit(&self, script: &str) {
        let options = "userxattr,lowerdir=lower,upperdir=upper,workdir=work";
        let script =
            format!("mount -t overlay overlay -o {options} merged && cd merged && {script}");
        #[expect(clippy::disallowed_methods, reason = "the kernel's own overlay is the reference")]
        let status = Command::new("unshare")
            .args(["-Urm", "sh", "-c", &script])
            .current_dir(&self.dir)
            .status()
            .unwrap();
        assert!(status.success(), "{script}");
    }

    fn upper(&self) -> PathBuf {
        self.dir.join("upper")
    }

    fn review(&self, fixture: &Fixture) -> Result<Reviewed, ReviewError> {
        fixture.export().read(TreeSource::overlay(&self.upper()).unwrap())?.review()
    }
}

/// The shell of one place after the other, each in its own tree.
fn edit_checkout(fixture: &Fixture, script: &str) {
    #[expect(clippy::disallowed_methods, reason = "the same shell as in the overlay")]
    let status =
        Command::new("sh").args(["-c", script]).current_dir(fixture.path().join("box")).status();
    assert!(status.unwrap().success(), "{script}");
}

/// What a review says, without directories of which nothing is left behind.
fn told(review: Result<Reviewed, ReviewError>) -> String {
    match review {
        Ok(reviewed) => {
            let left: BTreeMap<_, _> = reviewed
                .left
                .into_iter()
                .filter(|(_, why)| {
                    !matches!(
                        why,
                        LeftBehind::Ignored { files: 0 } | LeftBehind::Submodule { files: 0 }
                    )
                })
                .collect();
            let patch =
                String::from_utf8_lossy(&reviewed.patch.to_vec().expect("reads")).into_owned();
            format!("{}\n{patch}\n{:?}\n{left:?}", reviewed.tree, reviewed.flags)
        }
        Err(error) => format!("{error:?}"),
    }
}

fn places() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "d",
        "d/e",
        "d/e/f",
        "d/b",
        "run",
        "x",
        "x/y",
        "x/y/z",
        "l",
        "d/up",
        "new",
        "d/new",
        "new/below",
        "ignored",
        "ignored/i",
        "x.log",
    ])
}

fn edit() -> impl Strategy<Value = String> {
    prop_oneof![
        places().prop_map(|p| format!("rm -rf {p}")),
        places().prop_map(|p| format!("rm -rf {p}; mkdir {p}; echo in > {p}/in")),
        places().prop_map(|p| format!("mkdir -p {p}")),
        // The same names again below a directory that was replaced.
        places().prop_map(|p| format!("rm -rf {p}; mkdir -p {p}/e {p}/y; echo in > {p}/e/in")),
        places().prop_map(|p| format!("cp -r {p} t; rm -rf {p}; rm -f t/b t/e/f; mv -T t {p}")),
        places().prop_map(|p| format!("rm -f {p}; echo new > {p}")),
        places().prop_map(|p| format!("echo more >> {p}")),
        places().prop_map(|p| format!("chmod +x {p}")),
        places().prop_map(|p| format!("chmod -x+X {p}")),
        places().prop_map(|p| format!("ln -sfn run {p}")),
        (places(), places()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        // What `cp` makes of a directory that is copied into itself depends on the file system.
        (places(), places())
            .prop_filter("into itself", |(from, to)| !Path::new(to).starts_with(from))
            .prop_map(|(from, to)| format!("cp -r {from} {to}")),
        places().prop_map(|p| format!("cp -p {p} t; mv t {p}; touch {p}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn any_edits_give_the_same_review_on_both(edits in prop::collection::vec(edit(), 1..8)) {
        if !have("any_edits_give_the_same_review_on_both", Need::UserNamespaces) {
            return Ok(());
        }
        let fixture = Fixture::new(base);
        let layered = Layered::new(&fixture);
        let script = format!("{{ {}; }} 2> /dev/null; true", edits.join("; "));
        edit_checkout(&fixture, &script);
        // Two sessions: the second meets what the first left.
        let (first, second) = edits.split_at(edits.len() / 2);
        for part in [first, second] {
            layered.edit(&format!("{{ {}; }} 2> /dev/null; true", [&["true".to_owned()], part].concat().join("; ")));
        }
        prop_assert_eq!(told(layered.review(&fixture)), told(fixture.review()), "{}", script);
    }
}

fn hand_made() -> (Fixture, Layered) {
    let fixture = Fixture::new(base);
    let layered = Layered::new(&fixture);
    (fixture, layered)
}

fn attribute(path: &Path, name: &str, value: &[u8]) {
    setxattr(path, name, value, XattrFlags::empty()).unwrap();
}

#[test]
fn an_empty_upper_layer_changes_nothing() {
    let (fixture, layered) = hand_made();
    let reviewed = layered.review(&fixture).unwrap();
    assert!(reviewed.patch.is_empty());
    assert_eq!(reviewed.tree, fixture.base.tree);
}

#[test]
fn a_whiteout_of_either_kind_removes_and_an_empty_file_does_not() {
    let (fixture, layered) = hand_made();
    let upper = layered.upper();
    mknodat(CWD, upper.join("a"), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    fs::write(upper.join("run"), b"").unwrap();
    attribute(&upper.join("run"), "user.overlay.whiteout", b"");
    fs::create_dir(upper.join("x")).unwrap();
    mknodat(CWD, upper.join("x/y"), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    fs::write(upper.join("l"), b"").unwrap();
    let reviewed = layered.review(&fixture).unwrap();
    fixture.prove(&reviewed);
    edit_checkout(&fixture, "rm -r a run x l; : > l");
    assert_eq!(reviewed.tree, fixture.accepted().tree);
}

#[test]
fn an_opaque_directory_hides_the_bases_files_and_a_plain_one_keeps_them() {
    let (fixture, layered) = hand_made();
    fs::create_dir_all(layered.upper().join("d/e")).unwrap();
    fs::write(layered.upper().join("d/e/h"), b"h").unwrap();
    let plain = layered.review(&fixture).unwrap();
    assert_eq!(plain.changes.len(), 1);
    attribute(&layered.upper().join("d/e"), "user.overlay.opaque", b"y");
    let opaque = layered.review(&fixture).unwrap();
    edit_checkout(&fixture, "rm -r d/e; mkdir d/e; printf h > d/e/h");
    assert_eq!(opaque.tree, fixture.accepted().tree);
}

#[test]
fn nothing_of_the_base_shows_below_a_directory_that_was_replaced() {
    if !have("nothing_of_the_base_shows_below_a_directory_that_was_replaced", Need::UserNamespaces)
    {
        return;
    }
    for script in [
        "rm -rf d; mkdir -p d/e; echo q > d/e/other",
        "cp -r d t; rm t/e/g; rm -rf d; mv t d",
        "rm -rf d; mkdir -p d/e",
        "rm -rf d x; mkdir -p d/e; mv d x; mkdir -p x/y",
        // The twin: a directory that was not replaced keeps what it does not name.
        "echo q > d/e/other",
    ] {
        let fixture = Fixture::new(base);
        let layered = Layered::new(&fixture);
        layered.edit(script);
        edit_checkout(&fixture, script);
        assert_eq!(told(layered.review(&fixture)), told(fixture.review()), "{script}");
    }
}

#[test]
fn content_that_lies_elsewhere_is_refused() {
    for (name, attributed) in [("d", "user.overlay.redirect"), ("a", "user.overlay.metacopy")] {
        let (fixture, layered) = hand_made();
        let path = layered.upper().join(name);
        if name == "d" {
            fs::create_dir(&path).unwrap();
        } else {
            fs::write(&path, b"text").unwrap();
        }
        layered.review(&fixture).expect("the twin: without the attribute");
        attribute(&path, attributed, b"/x");
        match layered.review(&fixture) {
            Err(ReviewError::Tree(TreeError::Indirect { attribute, .. })) => {
                assert_eq!(attribute, attributed);
            }
            other => panic!("not refused: {other:?}"),
        }
    }
}

#[test]
fn a_device_that_is_no_whiteout_a_pipe_and_a_set_id_file_are_refused_as_in_a_checkout() {
    let (fixture, layered) = hand_made();
    let upper = layered.upper();
    rustix::fs::mknodat(CWD, upper.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    fs::write(upper.join("suid"), b"").unwrap();
    fs::set_permissions(upper.join("suid"), fs::Permissions::from_mode(0o4755)).unwrap();
    match layered.review(&fixture) {
        Err(ReviewError::Refused { refusals }) => assert_eq!(refusals.len(), 2),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_new_link_that_turns_one_of_the_base_outward_is_refused() {
    let turned = |layers: bool| {
        let fixture = Fixture::new(|tree| {
            tree.file("p/q/file", "x").link("way", "p/q").link("over", "way/../file");
        });
        let layered = Layered::new(&fixture);
        let script = "ln -sfn . way";
        if layers {
            layered.edit(script);
            layered.review(&fixture).map(|_| ()).map_err(|e| format!("{e:?}"))
        } else {
            edit_checkout(&fixture, script);
            fixture.review().map(|_| ()).map_err(|e| format!("{e:?}"))
        }
    };
    let checkout = turned(false).expect_err("leads above the root");
    if have("a_new_link_that_turns_one_of_the_base_outward_is_refused", Need::UserNamespaces) {
        assert_eq!(turned(true).expect_err("leads above the root"), checkout);
    }
}
