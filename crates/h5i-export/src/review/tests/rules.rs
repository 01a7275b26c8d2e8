//! Each rule refuses what it names, and its twin leaves.

use std::os::unix::fs::symlink;

use h5i_policy::{Bytes, Executables, ExportPolicy};

use crate::fixture::{Fixture, git};
use crate::review::{Export, FlagKind, LeftBehind, MachineCode, RefusalRule, ReviewError, Secrets};
use crate::{PathRule, PlantedValues, Refusal};

fn small() -> Fixture {
    Fixture::new(|tree| {
        tree.file("a", "a\n").file("dir/b", "b\n");
    })
}

#[test]
fn a_link_that_leaves_the_tree_is_refused_and_one_that_stays_is_exported() {
    for target in [
        "/etc/passwd",
        "..",
        "../x",
        "dir/../../x",
        ".git/config",
        "dir/x/../../../y",
        "absent/../a",
        "c:\\x",
        "../box/a",
    ] {
        let fixture = small();
        fixture.tree().link("l", target);
        let (path, rule) = fixture.refused();
        assert_eq!(path, "l");
        assert_eq!(rule, RefusalRule::LinkEscapes { target: target.into() });
    }
    for (path, target) in [
        ("l", "a"),
        ("dir/l", "../a"),
        ("l", "dir/../a"),
        ("l", "absent"),
        ("l", "."),
        ("dir/l", ".."),
    ] {
        let fixture = small();
        fixture.tree().link(path, target);
        assert_eq!(fixture.accepted().changes.len(), 1, "{path} -> {target}");
    }
}

#[test]
fn a_patch_that_gives_another_tree_than_the_reviewed_one_is_refused() {
    let fixture = small();
    fixture.tree().file("a", "b\n");
    let reviewed = fixture.accepted();
    let store = crate::store::Store::open(&fixture.base, fixture.path()).expect("opens");
    let base = fixture.base.tree;
    let prove = |tree, patch: &[u8]| crate::review::reviewed::prove(&store, base, tree, patch);
    let patch = reviewed.patch.to_vec().expect("reads");
    prove(reviewed.tree, &patch).expect("the twin: the patch of this tree");
    let error = prove(base, &patch).expect_err("another tree");
    assert!(matches!(error, ReviewError::PatchDiffers { reviewed, .. } if reviewed == base));
    let error = prove(reviewed.tree, b"").expect_err("no patch at all");
    assert!(matches!(error, ReviewError::PatchDiffers { applied, .. } if applied == base));
}

#[test]
fn a_link_that_leaves_through_another_link_is_refused() {
    let fixture = small();
    fixture.tree().link("dir/up", "..").link("out", "dir/up/../x");
    let (path, rule) = fixture.refused();
    assert_eq!(
        (path.as_str(), rule),
        ("out", RefusalRule::LinkEscapes { target: b"dir/up/../x".into() })
    );
    let twin = small();
    twin.tree().link("dir/up", "..").link("in", "dir/up/a");
    assert_eq!(twin.accepted().changes.len(), 2);
}

#[test]
fn a_link_of_the_base_that_led_outside_stays_and_a_new_one_through_it_is_refused() {
    let fixture = Fixture::new(|tree| {
        tree.link("abs", "/opt/sdk");
    });
    fixture.tree().link("a", "b").file("b", "x\n");
    fixture.accepted();
    fixture.tree().link("through", "abs/bin");
    assert_eq!(fixture.refused().0, "through");
}

#[test]
fn an_old_link_that_a_new_one_turns_outwards_is_refused() {
    let fixture = Fixture::new(|tree| {
        tree.file("d/x", "x\n").link("l", "d/../a").file("a", "a\n");
    });
    fixture.accepted();
    fixture.tree().remove("d").link("d", ".");
    assert_eq!(fixture.refused().0, "l");
}

#[test]
fn links_in_the_place_of_rules_are_refused() {
    let fixture = small();
    fixture.tree().link(".gitmodules", "a");
    assert_eq!(fixture.refused(), (".gitmodules".into(), RefusalRule::LinkedRules));
    let twin = small();
    twin.tree().file(".gitmodules", "# none\n");
    twin.accepted();
}

#[test]
fn a_directory_that_became_a_link_hides_no_write_behind_it() {
    // What was below the directory is deleted; nothing is read through the link.
    let fixture = small();
    let outside = fixture.path().join("outside");
    std::fs::create_dir(&outside).expect("makes");
    std::fs::write(outside.join("b"), "secret").expect("writes");
    fixture.tree().remove("dir");
    symlink(&outside, fixture.tree().at("dir")).expect("links");
    let (path, rule) = fixture.refused();
    assert_eq!(path, "dir");
    assert!(matches!(rule, RefusalRule::LinkEscapes { .. }));
}

#[test]
fn bad_names_are_refused_by_name_and_those_of_the_base_may_change() {
    for (name, rule) in [
        (&b"a\x1b[2J"[..], PathRule::Control),
        (b"aux.c", PathRule::Device),
        (b"back\\slash", PathRule::Backslash),
        (b"dot.", PathRule::TrailingDotOrSpace),
        (b"c:x", PathRule::Drive),
        ("x\u{202e}y".as_bytes(), PathRule::Bidi),
    ] {
        let fixture = small();
        fixture.tree().file(name, "x\n");
        assert_eq!(fixture.refused().1, RefusalRule::Path(rule));
    }
    let twin = Fixture::new(|tree| {
        tree.file("aux.c", "x\n");
    });
    twin.tree().file("aux.c", "y\n");
    twin.accepted();
}

#[test]
fn names_that_fold_to_one_are_refused_and_those_of_the_base_stay() {
    for new in ["A", "dir/B"] {
        let fixture = small();
        fixture.tree().file(new, "x\n");
        assert!(matches!(fixture.refused().1, RefusalRule::Clash(_)), "{new}");
    }
    let directory = small();
    directory.tree().file("DIR/c", "x\n");
    let error = directory.review().expect_err("the directory's name folds");
    assert!(matches!(&error, ReviewError::Refused { refusals }
        if refusals.iter().all(|refusal| matches!(refusal.rule, RefusalRule::Clash(_)))));
    let wide = small();
    wide.tree().file("\u{ff21}", "a wide letter is another one\n");
    wide.accepted();
    let fixture = small();
    fixture.tree().file("caf\u{e9}", "x\n").file("cafe\u{301}", "y\n");
    assert!(matches!(fixture.refused().1, RefusalRule::Clash(_)));
    let twin = Fixture::new(|tree| {
        tree.file("x", "1\n").file("X", "2\n");
    });
    twin.tree().file("X", "3\n").file("y", "4\n");
    twin.accepted();
    let renamed = small();
    renamed.tree().rename("a", "A");
    renamed.accepted();
}

#[test]
fn repositories_in_the_tree_and_changed_submodules_are_refused() {
    for name in ["sub/.git/config", "sub/.GIT/x", "sub/.git", "sub/git~1/x", ".GIT/x"] {
        let fixture = small();
        fixture.tree().file(name, "x\n").file("sub/code", "x\n");
        assert_eq!(fixture.refused().1, RefusalRule::NestedRepository, "{name}");
    }
    let module = Fixture::new(|tree| {
        let at = tree.at("");
        tree.file("a", "a\n");
        let info = "160000,4c1d9e04c1d9e04c1d9e04c1d9e04c1d9e04c1d9,sub";
        git(&at, &["update-index", "--add", "--cacheinfo", info], b"");
        std::fs::create_dir(tree.at("sub")).expect("makes");
    });
    module.tree().file("a", "b\n");
    assert_eq!(module.review().expect("an empty submodule is unchanged").changes.len(), 1);
    module.tree().file("sub/code", "x\n");
    let reviewed = module.review().expect("its content stays in the box");
    assert_eq!(reviewed.left[&b"sub"[..]], LeftBehind::Submodule { files: 1 });
    module.tree().remove("sub");
    assert_eq!(module.review().expect("a missing one is unchanged").changes.len(), 1);
    module.tree().file("sub", "x\n");
    assert_eq!(module.refused(), ("sub".into(), RefusalRule::Submodule));
}

#[test]
fn set_id_bits_are_refused_and_executables_are_as_the_policy_says() {
    for mode in [0o4755, 0o2755, 0o1644] {
        let fixture = small();
        fixture.tree().mode("a", mode);
        assert_eq!(fixture.refused().1, RefusalRule::SetId { mode });
    }
    let fixture = small();
    fixture.tree().mode("a", 0o755);
    let flags = fixture.accepted().flags;
    assert_eq!(flags.iter().map(|flag| flag.kind).collect::<Vec<_>>(), [FlagKind::Executable]);
    let mut policy = ExportPolicy::default();
    policy.executables = Executables::Refuse;
    let refused = review(&fixture, policy.clone());
    assert!(
        matches!(&refused, Err(ReviewError::Refused { refusals }) if refusals[0].rule == RefusalRule::Executable)
    );
    policy.executables = Executables::Allow;
    assert!(review(&fixture, policy).expect("allowed").flags.is_empty());
}

fn review(fixture: &Fixture, policy: ExportPolicy) -> Result<crate::Reviewed, ReviewError> {
    Export::new(fixture.base.clone(), policy, &fixture.path().join("scratch"))
        .read(fixture.source())?
        .review()
}

#[test]
fn machine_code_is_refused_unless_named() {
    let fixture = small();
    fixture.tree().file("bin/tool", b"\x7fELF\x02\x01\x01");
    assert_eq!(fixture.refused().1, RefusalRule::MachineCode(MachineCode::Elf));
    let named = |path: &[u8]| path.starts_with(b"bin/");
    let reviewed = fixture
        .export()
        .binaries(&named)
        .read(fixture.source())
        .expect("reads")
        .review()
        .expect("named");
    assert_eq!(reviewed.flags[0].kind, FlagKind::MachineCode(MachineCode::Elf));
    fixture.prove(&reviewed);
}

#[test]
fn new_secrets_are_refused_unless_flagged_and_those_of_the_base_are_not_new() {
    let secret = format!("ghp_{}", "A1b2".repeat(9));
    let fixture = Fixture::new(|tree| {
        tree.file("old", format!("token {secret}\n"));
    });
    fixture.tree().file("old", format!("line\ntoken {secret}\n"));
    fixture.accepted();
    fixture.tree().file("new", format!("x\ny = {secret}\n"));
    assert_eq!(
        fixture.refused(),
        ("new".into(), RefusalRule::Secret { shape: "code host token", line: 2 })
    );
    let reviewed = fixture
        .export()
        .secrets(Secrets::Flag)
        .read(fixture.source())
        .expect("reads")
        .review()
        .expect("asked for");
    assert_eq!(reviewed.flags[0].kind, FlagKind::Secret { shape: "code host token", line: 2 });
}

#[test]
fn what_was_planted_is_refused_unless_flagged_and_nothing_else_is() {
    let value = "AbCdEfGhIjKlMnOpQrStUvWx";
    let planted = PlantedValues::new([value]).expect("one");
    let fixture = small();
    fixture.tree().file("near", value[1..].to_owned() + "\n");
    let review = |secrets| {
        fixture.export().planted(&planted).secrets(secrets).read(fixture.source())?.review()
    };
    review(Secrets::Refuse).expect("not quite");
    fixture.tree().file("new", format!("x\nkey={value}\n"));
    let refused = review(Secrets::Refuse).expect_err("planted");
    let rule = RefusalRule::Secret { shape: "planted credential", line: 2 };
    assert!(matches!(refused, ReviewError::Refused { refusals }
        if refusals[..] == [Refusal { path: b"new".into(), rule }]));
    let kind = FlagKind::Secret { shape: "planted credential", line: 2 };
    assert_eq!(review(Secrets::Flag).expect("asked for").flags[0].kind, kind);
    // Without being looked for it is a word like any other.
    fixture.accepted();
}

#[test]
fn the_bounds_of_the_policy_hold_and_one_less_passes() {
    let mut policy = ExportPolicy::default();
    policy.max_file = Bytes::new(4);
    policy.max_total = Bytes::new(6);
    policy.max_files = 2;
    let case = |files: &[(&str, &str)]| {
        let fixture = small();
        for (path, content) in files {
            fixture.tree().file(path, content);
        }
        review(&fixture, policy.clone())
    };
    assert_eq!(case(&[("x", "1234"), ("y", "12")]).expect("within").changes.len(), 2);
    assert!(matches!(case(&[("x", "12345")]),
        Err(ReviewError::Refused { refusals }) if refusals[0].rule == RefusalRule::TooLarge { bytes: 5, limit: 4 }));
    assert!(matches!(
        case(&[("x", "1234"), ("y", "123")]),
        Err(ReviewError::TooManyBytes { found: 7, limit: 6 })
    ));
    assert!(matches!(
        case(&[("x", ""), ("y", ""), ("z", "")]),
        Err(ReviewError::TooManyFiles { found: 3, limit: 2 })
    ));
}

#[test]
fn a_large_file_of_the_base_that_did_not_change_is_no_reason_to_refuse() {
    let large = vec![b'x'; 9 << 20];
    let fixture = Fixture::new(|tree| {
        tree.file("large", &large);
    });
    fixture.tree().file("a", "a\n");
    assert_eq!(fixture.accepted().changes.len(), 1);
    let mut other = large;
    other[5] = b'y';
    fixture.tree().file("large", &other);
    assert!(matches!(fixture.refused().1, RefusalRule::TooLarge { .. }));
}

#[test]
fn ignored_files_stay_and_are_counted_by_the_rules_of_the_base_only() {
    let fixture = Fixture::new(|tree| {
        tree.file(".gitignore", "target/\n*.log\n!kept.log\n")
            .file("a", "a\n")
            .file("target/tracked", "t\n");
    });
    let tree = fixture.tree();
    tree.file("target/x/y", "1").file("target/z", "2").file("e.log", "3").file("kept.log", "4\n");
    tree.file("target/tracked", "changed\n");
    tree.file(".gitignore", "target/\n*.log\nhidden.rs\n").file("hidden.rs", "evil\n");
    let reviewed = fixture.accepted();
    let paths: Vec<_> =
        reviewed.changes.iter().map(|change| String::from_utf8_lossy(&change.path)).collect();
    assert_eq!(paths, [".gitignore", "hidden.rs", "kept.log", "target/tracked"]);
    let left: Vec<_> = reviewed
        .left
        .iter()
        .map(|(path, left)| (String::from_utf8_lossy(path), left.files()))
        .collect();
    assert_eq!(left, [("e.log".into(), 1), ("target/x".into(), 1), ("target/z".into(), 1)]);
}

#[test]
fn hidden_paths_of_the_base_count_as_unchanged_and_may_not_come_back() {
    let fixture = Fixture::new(|tree| {
        tree.file("secrets/key", "k\n").file("a", "a\n").file(".env", "e\n");
    });
    fixture.tree().remove("secrets").remove(".env").file("a", "b\n");
    let hidden = |path: &[u8]| path == b"secrets" || path.ends_with(b".env");
    let review = || fixture.export().hidden(&hidden).read(fixture.source())?.review();
    assert_eq!(review().expect("nothing hidden is touched").changes.len(), 1);
    fixture.tree().file("sub/.env", "the box's own\n");
    let reviewed = review().expect("what the base does not have is the box's own");
    assert_eq!(reviewed.left[&b"sub/.env"[..]], LeftBehind::Hidden { files: 1 });
    fixture.tree().file(".env", "over it\n");
    let refused = review().expect_err("what the base has may not change");
    assert!(matches!(refused, ReviewError::Refused { refusals }
        if refusals[..] == [Refusal { path: b".env".into(), rule: RefusalRule::Hidden }]));
}
