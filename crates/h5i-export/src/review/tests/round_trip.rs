//! The patch of any tree, applied to the base by git itself, gives that tree.

use proptest::prelude::*;

use crate::fixture::{Fixture, Tree};
use crate::review::ChangeKind;

fn full(tree: &Tree) {
    tree.file("a.txt", "one\ntwo\nthree\n")
        .file("crlf.txt", "one\r\ntwo\r\n")
        .file("bin", [0_u8, 1, 2, 255, 254, 0, 7])
        .file("empty", "")
        .file("no-newline", "x")
        .file("run.sh", "#!/bin/sh\n")
        .file("dir/deep/file", "deep\n")
        .file("dir/other", "other\n")
        .file(b"latin\xe9.txt", b"caf\xe9\n")
        .file("with \"quotes\" and spaces", "q\n")
        .link("link", "a.txt")
        .file("long", (0..200).map(|n| format!("line {n}\n")).collect::<String>());
}

/// A name, a change of the tree, and what the review must find.
type Case<'a> = (&'a str, fn(&Tree), &'a [(ChangeKind, &'a str)]);

fn kinds(fixture: &Fixture) -> Vec<(ChangeKind, String)> {
    let reviewed = fixture.accepted();
    let name = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    reviewed.changes.iter().map(|change| (change.kind, name(&change.path))).collect()
}

#[test]
fn an_unchanged_tree_gives_an_empty_patch() {
    let fixture = Fixture::new(full);
    let reviewed = fixture.accepted();
    assert!(reviewed.patch.is_empty() && reviewed.changes.is_empty());
    assert_eq!(reviewed.tree, fixture.base.tree);
}

#[test]
fn every_kind_of_change_comes_through() {
    let change: &[Case] = &[
        (
            "text",
            |t| {
                t.file("a.txt", "one\n2\nthree\n");
            },
            &[(ChangeKind::Modified, "a.txt")],
        ),
        (
            "crlf",
            |t| {
                t.file("crlf.txt", "one\r\nzwei\r\n");
            },
            &[(ChangeKind::Modified, "crlf.txt")],
        ),
        (
            "lf",
            |t| {
                t.file("crlf.txt", "one\ntwo\n");
            },
            &[(ChangeKind::Modified, "crlf.txt")],
        ),
        (
            "binary",
            |t| {
                t.file("bin", [0_u8, 9, 9, 255, 13, 10, 0]);
            },
            &[(ChangeKind::Modified, "bin")],
        ),
        (
            "new binary",
            |t| {
                t.file("bin2", (0..=255).collect::<Vec<u8>>());
            },
            &[(ChangeKind::Added, "bin2")],
        ),
        (
            "new empty",
            |t| {
                t.file("empty2", "");
            },
            &[(ChangeKind::Added, "empty2")],
        ),
        (
            "emptied",
            |t| {
                t.file("a.txt", "");
            },
            &[(ChangeKind::Modified, "a.txt")],
        ),
        (
            "filled",
            |t| {
                t.file("empty", "x\n");
            },
            &[(ChangeKind::Modified, "empty")],
        ),
        (
            "no newline",
            |t| {
                t.file("no-newline", "y");
            },
            &[(ChangeKind::Modified, "no-newline")],
        ),
        (
            "newline added",
            |t| {
                t.file("no-newline", "x\n");
            },
            &[(ChangeKind::Modified, "no-newline")],
        ),
        (
            "newline lost",
            |t| {
                t.file("a.txt", "one\ntwo\nthree");
            },
            &[(ChangeKind::Modified, "a.txt")],
        ),
        (
            "mode",
            |t| {
                t.mode("run.sh", 0o755);
            },
            &[(ChangeKind::Mode, "run.sh")],
        ),
        (
            "mode and text",
            |t| {
                t.file("run.sh", "#!/bin/sh\ntrue\n").mode("run.sh", 0o755);
            },
            &[(ChangeKind::Modified, "run.sh")],
        ),
        (
            "mode of an empty file",
            |t| {
                t.mode("empty", 0o755);
            },
            &[(ChangeKind::Mode, "empty")],
        ),
        (
            "deleted",
            |t| {
                t.remove("a.txt").remove("bin").remove("empty");
            },
            &[
                (ChangeKind::Deleted, "a.txt"),
                (ChangeKind::Deleted, "bin"),
                (ChangeKind::Deleted, "empty"),
            ],
        ),
        (
            "directory deleted",
            |t| {
                t.remove("dir");
            },
            &[(ChangeKind::Deleted, "dir/deep/file"), (ChangeKind::Deleted, "dir/other")],
        ),
        (
            "renamed",
            |t| {
                t.rename("long", "sub/longer");
            },
            &[(ChangeKind::Renamed, "sub/longer")],
        ),
        (
            "link",
            |t| {
                t.link("sub/new", "../dir/other");
            },
            &[(ChangeKind::Added, "sub/new")],
        ),
        (
            "link changed",
            |t| {
                t.remove("link").link("link", "dir");
            },
            &[(ChangeKind::Modified, "link")],
        ),
        (
            "link deleted",
            |t| {
                t.remove("link");
            },
            &[(ChangeKind::Deleted, "link")],
        ),
        (
            "non-UTF-8 content",
            |t| {
                t.file(b"latin\xe9.txt", b"th\xe9\n");
            },
            &[(ChangeKind::Modified, "latin\u{fffd}.txt")],
        ),
        (
            "non-UTF-8 name",
            |t| {
                t.file(b"n\xff", "x\n");
            },
            &[(ChangeKind::Added, "n\u{fffd}")],
        ),
        (
            "quoted name",
            |t| {
                t.file("with \"quotes\" and spaces", "r\n");
            },
            &[(ChangeKind::Modified, "with \"quotes\" and spaces")],
        ),
        (
            "umlaut",
            |t| {
                t.file("gr\u{f6}\u{df}e", "x\n");
            },
            &[(ChangeKind::Added, "gr\u{f6}\u{df}e")],
        ),
        (
            "file with a patch in it",
            |t| {
                t.file("p", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-- \n");
            },
            &[(ChangeKind::Added, "p")],
        ),
    ];
    for (what, change, expected) in change {
        let fixture = Fixture::new(full);
        change(&fixture.tree());
        let found = kinds(&fixture);
        let found: Vec<(ChangeKind, &str)> =
            found.iter().map(|(kind, path)| (*kind, &path[..])).collect();
        assert_eq!(&found[..], *expected, "{what}");
    }
}

#[test]
fn files_links_and_directories_can_replace_each_other() {
    let fixture = Fixture::new(full);
    let tree = fixture.tree();
    tree.remove("a.txt").file("a.txt/now/a/directory", "x\n");
    tree.remove("dir").file("dir", "now a file\n");
    tree.remove("link").file("link", "now a file\n");
    tree.remove("bin").link("bin", "empty");
    fixture.accepted();
}

#[test]
fn a_file_replaced_by_an_empty_directory_is_deleted() {
    let fixture = Fixture::new(full);
    fixture.tree().remove("a.txt");
    std::fs::create_dir(fixture.tree().at("a.txt")).expect("makes");
    assert_eq!(kinds(&fixture), [(ChangeKind::Deleted, "a.txt".to_owned())]);
}

#[test]
fn attributes_in_the_tree_change_neither_content_nor_patch() {
    let fixture = Fixture::new(|tree| {
        tree.file("a.txt", "one\r\n");
    });
    fixture
        .tree()
        .file(".gitattributes", "* text eol=lf filter=evil diff=evil\n*.txt -diff\n")
        .file("b.txt", "two\r\n");
    let reviewed = fixture.accepted();
    let text = String::from_utf8(reviewed.patch.to_vec().expect("reads")).expect("text");
    assert!(text.contains("+two\r\n"), "{text}");
}

#[test]
fn an_export_from_an_empty_tree_works() {
    let fixture = Fixture::new(|_| ());
    fixture.tree().file("a/b", "x\n").file("c", "y\n");
    assert_eq!(fixture.accepted().changes.len(), 2);
}

/// One random step on a tree; steps that do not fit are left out.
#[derive(Clone, Debug)]
enum Change {
    Write(String, Vec<u8>),
    Remove(String),
    Executable(String),
    Link(String, String),
}

fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d e", "\u{e4}"]), 1..4)
        .prop_map(|names| names.join("/"))
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(vec!["a\n", "b\n", "c\r\n", "\n", "d"]), 0..12)
            .prop_map(|lines| lines.concat().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..80),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (name(), content()).prop_map(|(name, content)| Change::Write(name, content)),
        2 => name().prop_map(Change::Remove),
        1 => name().prop_map(Change::Executable),
        1 => (name(), prop::sample::select(vec!["nowhere", "down/there"]))
            .prop_map(|(name, target)| Change::Link(name, target.to_owned())),
    ]
}

fn perform(tree: &Tree, change: &Change) {
    use std::os::unix::fs::PermissionsExt as _;
    let (Change::Write(name, _)
    | Change::Remove(name)
    | Change::Executable(name)
    | Change::Link(name, _)) = change;
    let path = tree.at(name);
    // Never through a link, and never where a file is a parent.
    let mut parent = tree.at("");
    let names: Vec<&str> = name.split('/').collect();
    for name in &names[..names.len() - 1] {
        parent.push(name);
        match std::fs::symlink_metadata(&parent) {
            Ok(found) if !found.is_dir() => std::fs::remove_file(&parent).expect("removes"),
            _ => {}
        }
    }
    let found = std::fs::symlink_metadata(&path);
    match (change, found) {
        (Change::Executable(_), Ok(found)) if found.is_file() => {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                .expect("changes");
        }
        (Change::Executable(_), _) | (Change::Remove(_), Err(_)) => {}
        (Change::Remove(_), Ok(_)) => {
            tree.remove(name);
        }
        (Change::Write(name, content), found) => {
            if found.is_ok() {
                tree.remove(name);
            }
            tree.file(name, content);
        }
        (Change::Link(name, target), found) => {
            if found.is_ok() {
                tree.remove(name);
            }
            tree.link(name, target);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_tree_exported_and_applied_is_the_same_tree(
        before in prop::collection::vec(change(), 0..12),
        after in prop::collection::vec(change(), 0..12),
    ) {
        let fixture = Fixture::new(|tree| before.iter().for_each(|change| perform(tree, change)));
        after.iter().for_each(|change| perform(&fixture.tree(), change));
        match fixture.review() {
            Ok(reviewed) => {
                fixture.prove(&reviewed);
                // And it is what git itself sees in the box's checkout.
                let seen = crate::fixture::git(&fixture.tree().at(""), &["add", "-A"], b"");
                prop_assert!(seen.is_empty());
                let tree = crate::fixture::git(&fixture.tree().at(""), &["write-tree"], b"");
                let tree = String::from_utf8_lossy(&tree).trim().to_owned();
                prop_assert_eq!(tree, reviewed.tree.to_string());
            }
            // Random bytes may look like a compressed stream.
            Err(crate::ReviewError::Refused { refusals }) => {
                for refusal in refusals {
                    prop_assert!(matches!(refusal.rule, crate::RefusalRule::MachineCode(_)), "{}", refusal);
                }
            }
            Err(error) => prop_assert!(false, "{:?}", error),
        }
    }
}

#[test]
fn a_binary_file_that_only_became_executable_or_was_only_renamed_comes_through() {
    let fixture = Fixture::new(|tree| {
        tree.file("d e/bin", [0_u8]).file("d e/other", [0_u8, 1, 2, 3]);
    });
    fixture.tree().mode("d e/bin", 0o755).rename("d e/other", "d e/moved");
    assert_eq!(
        kinds(&fixture),
        [(ChangeKind::Mode, "d e/bin".to_owned()), (ChangeKind::Renamed, "d e/moved".to_owned())]
    );
}

#[test]
fn large_binaries_come_through_whether_new_changed_or_gone() {
    // Past the size up to which a patch says only what differs.
    let large = |seed: u8| [vec![0], vec![seed; 9 << 19]].concat();
    // Below it, and nothing packs it.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[4]
    };
    let mut small: Vec<u8> = [0].into_iter().chain((0..100_000).map(|_| next())).collect();
    let fixture = Fixture::new(|tree| {
        tree.file("gone", large(1)).file("kept", large(2)).file("small", &small);
    });
    let mut kept = large(2);
    kept[77] ^= 1;
    small[77] ^= 1;
    fixture.tree().remove("gone").file("kept", kept).file("small", small).file("new", large(4));
    let changed = ["gone", "kept", "new", "small"];
    let expected =
        [ChangeKind::Deleted, ChangeKind::Modified, ChangeKind::Added, ChangeKind::Modified];
    let expected: Vec<_> = expected.into_iter().zip(changed.map(str::to_owned)).collect();
    assert_eq!(kinds(&fixture), expected);
    let patch = fixture.accepted().patch.to_vec().expect("reads");
    assert_eq!(patch.windows(9).filter(|window| window == b"\nliteral ").count(), 6);
    assert_eq!(patch.windows(7).filter(|window| window == b"\ndelta ").count(), 2);
}

#[test]
fn a_file_renamed_over_a_link_or_into_its_own_place_comes_through() {
    let over = Fixture::new(|tree| {
        tree.file("long", "1\n2\n3\n4\n").link("b", "nowhere");
    });
    over.tree().remove("b").rename("long", "b");
    over.accepted();
    let beside = Fixture::new(|tree| {
        tree.file("d", "").link("c", "nowhere");
    });
    beside.tree().rename("d", "a").remove("c").file("c", "");
    beside.accepted();
    let below = Fixture::new(|tree| {
        tree.file("a", "1\n2\n3\n4\n");
    });
    below.tree().rename("a", "t").rename("t", "a/b");
    below.accepted();
    let above = Fixture::new(|tree| {
        tree.file("a/b", "1\n2\n3\n4\n");
    });
    above.tree().rename("a/b", "t").remove("a").rename("t", "a");
    above.accepted();
}
