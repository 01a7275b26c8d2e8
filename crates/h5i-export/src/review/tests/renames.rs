//! Looking for renamed files is bounded by what is deleted and by what is added.

use crate::fixture::Fixture;
use crate::review::{ChangeKind, Renames, Reviewed};

/// A file of twenty lines of its own.
fn text(seed: usize) -> String {
    (0..20)
        .map(|line| format!("{seed} {line} {}\n", seed.wrapping_mul(2_654_435_761) ^ line))
        .collect()
}

/// Deletes `deleted` files and adds as many others as `added`; two files get another name, one of
/// them with a change.
fn moved(deleted: usize, added: usize) -> Reviewed {
    let fixture = Fixture::new(|tree| {
        tree.file("same", text(1)).file("near", text(2));
        for n in 0..deleted {
            tree.file(format!("old/{n}"), text(1000 + n));
        }
    });
    let tree = fixture.tree();
    tree.rename("same", "moved/same").remove("near").file("moved/near", text(2) + "more\n");
    if deleted > 0 {
        tree.remove("old");
    }
    for n in 0..added {
        tree.file(format!("new/{n}"), text(1_000_000 + n));
    }
    fixture.accepted()
}

fn kind_of(reviewed: &Reviewed, path: &str) -> Option<ChangeKind> {
    let mut changes = reviewed.changes.iter();
    changes.find(|change| change.path == path.as_bytes()).map(|change| change.kind)
}

#[test]
fn beyond_the_bound_only_files_that_kept_their_content_are_renamed() {
    let reviewed = moved(400, 400);
    assert_eq!(reviewed.renames, Renames::Unchanged);
    assert_eq!(kind_of(&reviewed, "moved/same"), Some(ChangeKind::Renamed));
    assert_eq!(kind_of(&reviewed, "moved/near"), Some(ChangeKind::Added));
    assert_eq!(kind_of(&reviewed, "near"), Some(ChangeKind::Deleted));
}

#[test]
fn within_the_bound_files_that_changed_as_well_are_renamed() {
    for reviewed in [moved(0, 0), moved(3, 500)] {
        assert_eq!(reviewed.renames, Renames::ByContent);
        assert_eq!(kind_of(&reviewed, "moved/same"), Some(ChangeKind::Renamed));
        assert_eq!(kind_of(&reviewed, "moved/near"), Some(ChangeKind::Renamed));
        assert_eq!(kind_of(&reviewed, "near"), None);
    }
}

#[test]
fn large_files_are_not_compared_and_those_that_kept_their_content_are_renamed() {
    let large = |byte: u8| vec![byte; 4_500_000];
    let fixture = Fixture::new(|tree| {
        tree.file("a", large(b'a')).file("b", large(b'b'));
    });
    fixture.tree().rename("a", "c").rename("b", "d");
    let reviewed = fixture.review().expect("may leave");
    // Nothing is left that a comparison could find.
    assert_eq!(reviewed.renames, Renames::ByContent);
    assert_eq!(kind_of(&reviewed, "c"), Some(ChangeKind::Renamed));
    fixture.tree().file("d", [large(b'b'), b"x".to_vec()].concat());
    let reviewed = fixture.review().expect("may leave");
    assert_eq!(reviewed.renames, Renames::Unchanged);
    assert_eq!(kind_of(&reviewed, "c"), Some(ChangeKind::Renamed));
    assert_eq!(kind_of(&reviewed, "d"), Some(ChangeKind::Added));
}
