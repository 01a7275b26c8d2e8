use std::fs;
use std::path::Path;

use git2::Repository;
use h5i_policy::{ResolvedPolicy, Tier};

use super::{LandError, Landing};
use crate::bundle::{BundleInput, Existing, Verified, WholeLog, verify_bundle, write_bundle};
use crate::fixture::Fixture;
use crate::report::ReportInput;
use crate::{Digest, PatchText, PathRule};

/// The bundle of what the fixture's box changed, verified.
fn bundle(fixture: &Fixture) -> Verified {
    let reviewed = fixture.accepted();
    let manifest = Digest::of(b"manifest");
    let policy = ResolvedPolicy::default();
    let log = tempfile::tempfile().expect("a file");
    let log = WholeLog::read(log, 0, manifest).expect("a log without a record");
    let report = ReportInput {
        name: "a",
        base_name: "main",
        tier: Tier::Process,
        profile: "default",
        policy: &policy.digest().to_string(),
        purpose: None,
        network: "nothing",
        home: &[],
        history: log.history(),
        enforcement: &[],
        not_enforced: &[],
        reviewed: &reviewed,
    };
    let out = fixture.path().join("out");
    let input =
        BundleInput { report, log: &log, policy_text: &policy.to_toml(), payloads: fixture.path() };
    write_bundle(&out, &input, Existing::Replace).expect("writes");
    verify_bundle(&out, &fixture.path().join("scratch"), None).expect("as written")
}

fn text(verified: &Verified) -> String {
    String::from_utf8(verified.patch.to_vec().expect("reads")).expect("text")
}

fn kept(patch: &[u8]) -> PatchText {
    PatchText::keep(patch, Path::new("/nowhere")).expect("small enough for memory")
}

fn host(fixture: &Fixture) -> Repository {
    Repository::open(fixture.path().join("host")).expect("opens")
}

fn land(fixture: &Fixture, verified: &Verified) -> Result<Landing, LandError> {
    Landing::new(verified, &fixture.base, &host(fixture), &fixture.path().join("scratch"))
}

#[test]
fn onto_the_recorded_base_the_result_is_the_reviewed_tree() {
    let fixture = Fixture::new(|tree| {
        tree.file("a", "a\n").file("d/x", "x\n").link("l", "a");
    });
    fixture.tree().remove("a").file("a/b", "now a directory\n").remove("d").file("d", "and back\n");
    fixture.tree().remove("l").file("l", "l\n");
    let verified = bundle(&fixture);
    let landing = land(&fixture, &verified).expect("lands");
    assert_eq!(landing.tree().to_string(), verified.index.tree);
    let mut merged = landing.merge(Some(fixture.base.tree)).expect("merges");
    assert!(merged.conflicts().expect("lists").is_empty());
    let tree = merged.index.write_tree_to(&landing.store.repo).expect("writes");
    assert_eq!(tree, landing.tree());
}

#[test]
fn a_bundle_that_fits_another_base_or_names_another_tree_does_not_land() {
    let fixture = Fixture::new(|tree| {
        tree.file("a", "a\n");
    });
    fixture.tree().file("a", "b\n");
    let good = bundle(&fixture);
    land(&fixture, &good).expect("the twin lands");
    let mut other = good.clone();
    other.index.base_tree = "0".repeat(40);
    assert!(matches!(land(&fixture, &other), Err(LandError::OtherBase { .. })));
    let mut other = good.clone();
    other.index.tree = "0".repeat(40);
    assert!(matches!(land(&fixture, &other), Err(LandError::Tree { .. })));
    let mut other = good;
    let text = other.patch.to_vec().expect("reads");
    other.patch = kept(&text[..text.len() / 2]);
    assert!(matches!(land(&fixture, &other), Err(LandError::Patch(_))));
}

#[test]
fn a_patch_with_a_name_or_a_link_that_no_export_has_does_not_land() {
    let fixture = Fixture::new(|tree| {
        tree.file("a", "a\n");
    });
    fixture.tree().file("x-name", "x\n").link("x-link", "a");
    let good = bundle(&fixture);
    land(&fixture, &good).expect("the twin lands");
    // As somebody would who can write every digest anew. The tree that results is asked of the
    // landing itself, so that nothing but the check stands in the way.
    let forged = |from: &str, to: &str| {
        let mut bad = good.clone();
        bad.patch = kept(text(&bad).replace(from, to).as_bytes());
        match land(&fixture, &bad) {
            Err(LandError::Tree { found, .. }) => bad.index.tree = found.to_string(),
            other => panic!("{other:?}"),
        }
        land(&fixture, &bad)
    };
    match forged("x-name", "x/con.txt") {
        Err(LandError::Path(error)) => assert_eq!(error.rule, PathRule::Device),
        other => panic!("{other:?}"),
    }
    let id = |content: &[u8]| {
        git2::Oid::hash_object(git2::ObjectType::Blob, content).expect("hashes").to_string()
    };
    let mut bad = good.clone();
    let forged = text(&bad).replace("+a\n\\", "+..\n\\").replace(&id(b"a"), &id(b".."));
    bad.patch = kept(forged.as_bytes());
    match land(&fixture, &bad) {
        Err(LandError::Tree { found, .. }) => bad.index.tree = found.to_string(),
        other => panic!("{other:?}"),
    }
    match land(&fixture, &bad) {
        Err(LandError::LinkEscapes { path }) => assert_eq!(path, b"x-link"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_link_is_not_taken_without_what_keeps_it_inside() {
    let fixture = Fixture::new(|tree| {
        tree.link("out", "/etc").file("a", "a\n");
    });
    fixture.tree().remove("out").file("out/passwd", "x\n").link("way", "out/passwd");
    let verified = bundle(&fixture);
    let alone = land(&fixture, &verified).expect("lands").only(&[b"way".to_vec()]);
    assert!(matches!(alone, Err(LandError::LinkEscapes { path }) if path == b"way"));
    let both = [b"way".to_vec(), b"out".to_vec()];
    let all = land(&fixture, &verified).expect("lands").only(&both).expect("the twin");
    assert_eq!(all.tree().to_string(), verified.index.tree);
}

#[test]
fn objects_reach_the_host_before_what_refers_to_them_and_only_those_it_lacks() {
    let fixture = Fixture::new(|tree| {
        tree.file("a", "a\n").file("d/e/f", "f\n");
    });
    fixture.tree().file("d/e/g", "g\n");
    let verified = bundle(&fixture);
    let landing = land(&fixture, &verified).expect("lands");
    let host = host(&fixture);
    let odb = host.odb().expect("opens");
    let count = || {
        let mut all = 0;
        odb.foreach(|_| {
            all += 1;
            true
        })
        .expect("lists");
        all
    };
    let before = count();
    assert_eq!(landing.deposit(&host).expect("writes"), landing.tree());
    // g, e, d and the root.
    assert_eq!(count(), before + 4);
    drop(landing);
    assert_eq!(fs::read_dir(fixture.path().join("scratch")).expect("lists").count(), 0);
}

/// A tree of the host: the base's with files renamed or added.
fn went_on(fixture: &Fixture, edit: impl Fn(&Repository, &mut git2::TreeBuilder<'_>)) -> git2::Oid {
    let host = host(fixture);
    let base = host.find_tree(fixture.base.tree).expect("the base");
    let mut tree = host.treebuilder(Some(&base)).expect("a tree");
    edit(&host, &mut tree);
    tree.write().expect("writes")
}

fn put(name: &'static str) -> impl Fn(&Repository, &mut git2::TreeBuilder<'_>) {
    move |host, tree| {
        let blob = host.blob(b"the host's\n").expect("writes");
        tree.insert(name, blob, 0o100_644).expect("inserts");
    }
}

#[test]
fn a_new_name_never_lands_beside_one_of_the_host_that_folds_to_it() {
    let fixture = Fixture::new(|tree| {
        tree.file("a", "a\n");
    });
    fixture.tree().file("readme", "the box's\n").file("d/x", "x\n");
    let verified = bundle(&fixture);
    let landing = land(&fixture, &verified).expect("lands");
    for name in ["README", "ReadMe", "D"] {
        let error = landing.merge(Some(went_on(&fixture, put(name)))).expect_err(name);
        assert!(matches!(error, LandError::Clash(_)), "{name}: {error:?}");
    }
    // The twin: names that fold to nothing of the box's.
    let merged = landing.merge(Some(went_on(&fixture, put("README.md")))).expect("merges");
    assert!(merged.conflicts().expect("lists").is_empty());
}

#[test]
fn what_was_reviewed_of_one_file_does_not_land_in_the_one_it_was_renamed_to() {
    let fixture = Fixture::new(|tree| {
        tree.file("lib.sh", "one\ntwo\nthree\nfour\nfive\nsix\n");
    });
    fixture.tree().file("lib.sh", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    let verified = bundle(&fixture);
    let landing = land(&fixture, &verified).expect("lands");
    let renamed = went_on(&fixture, |_, tree| {
        let old = tree.get("lib.sh").expect("reads").expect("is there").id();
        tree.remove("lib.sh").expect("removes");
        tree.insert(".envrc", old, 0o100_644).expect("inserts");
    });
    let merged = landing.merge(Some(renamed)).expect("merges");
    assert_eq!(merged.conflicts().expect("lists"), [b"lib.sh".to_vec()]);
    // The twin: beside another change of the host's it lands.
    let merged = landing.merge(Some(went_on(&fixture, put("other")))).expect("merges");
    assert!(merged.conflicts().expect("lists").is_empty());
}
