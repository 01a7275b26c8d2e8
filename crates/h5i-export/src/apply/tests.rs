use super::{Keep, PatchError, PatchFault, apply};
use crate::fixture::Fixture;
use crate::store::Store;

/// The fixture's real patch, and what applying `edit` of it gives.
fn applied(edit: impl FnOnce(String) -> String) -> Result<bool, PatchError> {
    let fixture = Fixture::new(|tree| {
        tree.file("a.txt", "one\ntwo\nthree\n");
    });
    fixture.tree().file("a.txt", "one\n2\nthree\n");
    let reviewed = fixture.accepted();
    let patch = edit(String::from_utf8(reviewed.patch.to_vec().expect("reads")).expect("text"));
    let store = Store::open(&fixture.base, fixture.path()).expect("opens");
    let written = apply(&store, fixture.base.tree, patch.as_bytes(), Keep::Objects)?;
    let named = apply(&store, fixture.base.tree, patch.as_bytes(), Keep::Ids)?;
    assert_eq!(named, written);
    Ok(written == reviewed.tree)
}

fn fault(edit: impl FnOnce(String) -> String) -> (u64, PatchFault) {
    match applied(edit) {
        Err(PatchError::Line { line, fault, .. }) => (line, fault),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_patch_as_made_applies_and_each_edit_of_it_is_refused_at_its_line() {
    assert!(applied(|patch| patch).expect("as made"));
    assert_eq!(fault(|patch| patch.replace("-two", "-zwei")), (8, PatchFault::Context));
    assert_eq!(fault(|patch| patch.replace("+2", "+3")).1, PatchFault::Result);
    assert_eq!(fault(|patch| patch.replace("@@ -1,3", "@@ -2,3")).1, PatchFault::Context);
    assert_eq!(fault(|patch| patch.replace("+1,3 @@", "+1,9 @@")).1, PatchFault::Hunk);
    assert_eq!(fault(|patch| patch.replace("+++ b/a.txt", "+++ b/b.txt")).1, PatchFault::Header);
    assert_eq!(fault(|patch| patch.replace("a.txt", "b.txt")).1, PatchFault::Absent);
    assert_eq!(fault(|patch| patch.replace("index ", "index 0")).1, PatchFault::Header);
    assert_eq!(fault(|patch| format!("{patch}{patch}")), (10, PatchFault::Twice));
    assert_eq!(fault(|patch| format!("hello\n{patch}")), (1, PatchFault::NoHeader));
    assert_eq!(fault(|patch| patch.replace("100644", "100755")).1, PatchFault::Preimage);
}

#[test]
fn a_preimage_that_the_patch_was_not_made_from_is_refused() {
    // The id of the old content, replaced by that of the empty file.
    let other = |patch: String| {
        let start = patch.find("index ").expect("an index line") + "index ".len();
        format!(
            "{}e69de29bb2d1d6434b8b29ae775ad8c2e48c5391{}",
            &patch[..start],
            &patch[start + 40..]
        )
    };
    assert_eq!(fault(other), (1, PatchFault::Preimage));
}

#[test]
fn a_new_file_over_one_of_the_base_is_refused() {
    let patch = "diff --git a/a.txt b/a.txt\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n";
    assert_eq!(fault(|_| patch.to_owned()).1, PatchFault::Exists);
    let twin = patch.replace("a.txt", "b.txt");
    assert!(
        !applied(|_| twin).expect("another name"),
        "it gives another tree than the reviewed one"
    );
}

/// The patch of a new empty file.
fn empty(path: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"
    )
}

#[test]
fn a_new_file_needs_a_free_place_wherever_in_the_patch_it_is_made_free() {
    let fixture = Fixture::new(|tree| {
        tree.file("f", "f\n").file("d/x", "").file("d/y", "");
    });
    let store = Store::open(&fixture.base, fixture.path()).expect("opens");
    let result = |patches: &[String]| match apply(
        &store,
        fixture.base.tree,
        patches.concat().as_bytes(),
        Keep::Objects,
    ) {
        Ok(_) => None,
        Err(PatchError::Line { fault, .. }) => Some(fault),
        Err(other) => panic!("{other:?}"),
    };
    let gone = |path: &str| {
        format!(
            "diff --git a/{path} b/{path}\ndeleted file mode 100644\nindex e69de29bb2d1d6434b8b29ae775ad8c2e48c5391..0000000000000000000000000000000000000000\n"
        )
    };
    let moved = |from: &str, to: &str| {
        format!(
            "diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n"
        )
    };
    let taken = Some(PatchFault::Exists);
    assert_eq!(result(&[empty("f/below")]), taken);
    assert_eq!(result(&[empty("f/below"), moved("f", "g")]), None);
    assert_eq!(result(&[empty("d")]), taken);
    assert_eq!(result(&[empty("d"), gone("d/x")]), taken);
    assert_eq!(result(&[empty("d"), gone("d/x"), moved("d/y", "e")]), None);
    assert_eq!(result(&[empty("n"), empty("n/below")]), taken);
    assert_eq!(result(&[moved("d/x", "f")]), taken);
    assert_eq!(result(&[moved("d/x", "g"), empty("d/x")]), None);
}

#[test]
fn a_renamed_file_whose_old_name_became_a_link_comes_through() {
    let fixture = Fixture::new(|tree| {
        tree.file("b", "");
    });
    fixture.tree().rename("b", "c").link("b", "nowhere");
    fixture.accepted();
}

#[test]
fn a_path_that_no_tree_can_have_is_refused_in_the_header() {
    let fixture = Fixture::new(|tree| {
        tree.file("a", "a\n");
    });
    let store = Store::open(&fixture.base, fixture.path()).expect("opens");
    let patch = |name: &str| format!("diff --git a/{name} b/{name}\nnew file mode 100644\n");
    let applied = |name: &str| apply(&store, fixture.base.tree, patch(name).as_bytes(), Keep::Ids);
    for name in ["b\0", "b/", "/b", "b//c", "b/./c", "../b", "b/..", ".git", "b/.GIT"] {
        match applied(name) {
            Err(PatchError::Line { fault, .. }) => {
                assert_eq!(fault, PatchFault::Header, "{name:?}")
            }
            other => panic!("{name:?}: {other:?}"),
        }
    }
    applied("b/c").expect("the twin");
}
