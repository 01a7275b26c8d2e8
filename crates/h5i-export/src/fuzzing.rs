//! What a fuzzer asks of this crate. Not part of its interface.
//!
//! Each function takes any bytes and must return. It panics when a claim of this crate does not hold
//! for them, and when the ground that it stands on can't be made.
#![expect(
    clippy::expect_used,
    reason = "a fuzzer's ground that can't be made has to be seen, and so has a claim that fails"
)]

mod ground;
mod tree_script;

use h5i_policy::ExportPolicy;

use crate::apply::{Keep, apply};
use crate::digest::Digest;
use crate::escape::is_unprintable;
use crate::review::{ReviewError, patch};
use crate::{
    Escaped, Export, ExportPath, MAX_DEPTH, MAX_NAME, MAX_PATH, NameSet, Record, Secrets,
    TreeSource, find_secrets, redact, verify_chain, verify_receipt,
};

use ground::{Ground, with_ground};

/// The path validator: an accepted path stays inside whatever the host makes of its names, and what
/// is said of a refused one is inert.
///
/// # Panics
/// When it does not hold.
pub fn export_path(data: &[u8]) {
    let shown = Escaped::new(data).to_string();
    assert!(!shown.chars().any(is_unprintable), "{shown:?}");
    let path = match ExportPath::new(data) {
        Ok(path) => path,
        Err(error) => return assert!(!error.to_string().chars().any(is_unprintable), "{error}"),
    };
    assert_eq!(path.as_bytes(), data);
    assert!(data.len() <= MAX_PATH && path.components().count() <= MAX_DEPTH);
    for name in path.components() {
        assert!(!name.is_empty() && name.len() <= MAX_NAME && name != b"." && name != b"..");
        assert!(!name.contains(&0) && !name.contains(&b'\\') && !name.contains(&b'/'));
        assert!(!crate::path::is_dot_git(name), "{path:?}");
        assert!(ExportPath::new(name).is_ok(), "{path:?}");
    }
    let mut names = NameSet::new();
    assert!(names.add(&path).is_ok(), "{path:?} clashes with nothing");
}

/// The second reader of patches: it answers whatever it is given, and the patch that is made of a
/// tree it gave leads to that tree again.
///
/// # Panics
/// When it does not hold.
pub fn patch_apply(data: &[u8]) {
    with_ground(|Ground { base, store, .. }| {
        let named = apply(store, base.tree, data, Keep::Ids);
        let Ok(tree) = apply(store, base.tree, data, Keep::Objects) else { return };
        assert!(named.is_ok_and(|named| named == tree), "named and written differ");
        // libgit2 has no patch for some trees that a patch can give, such as names that it refuses.
        let mut again = Vec::new();
        if patch::make(store, (base.tree, tree), patch::Where::All, &mut again).is_err() {
            return;
        }
        let applied =
            apply(store, base.tree, &again[..], Keep::Ids).expect("the patch of a tree applies");
        assert_eq!(applied, tree);
    });
}

/// Reading a hostile tree, which the bytes describe: whatever stands there, the review ends, and a
/// patch that passes it gives the reviewed tree and names only what may leave.
///
/// # Panics
/// When it does not hold.
pub fn tree_reading(data: &[u8]) {
    with_ground(|Ground { base, scratch, .. }| {
        let box_tree = tempfile::tempdir_in(scratch).expect("makes a directory");
        tree_script::perform(box_tree.path(), data);
        let source = TreeSource::checkout(box_tree.path()).expect("opens the tree");
        let reviewed = Export::new(base.clone(), ExportPolicy::default(), scratch)
            .secrets(Secrets::Flag)
            .read(source)
            .and_then(crate::Proposal::review);
        match reviewed {
            Ok(reviewed) => {
                for change in reviewed.changes.iter().filter(|change| change.old_mode == 0) {
                    assert!(
                        ExportPath::new(&change.path).is_ok(),
                        "{}",
                        Escaped::new(&change.path)
                    );
                }
            }
            Err(ReviewError::PatchDiffers { reviewed, applied }) => {
                assert_eq!(reviewed, applied, "the patch gives another tree");
            }
            Err(ReviewError::PatchFails(error)) => {
                assert_eq!(error.to_string(), "", "the patch does not apply");
            }
            Err(error) => assert!(!error.to_string().chars().any(is_unprintable), "{error}"),
        }
    });
}

/// Receipts, logs and records: reading ends, what is accepted has one spelling, and nothing that is
/// redacted is found again.
///
/// # Panics
/// When it does not hold.
pub fn receipt(data: &[u8]) {
    let mut log = Vec::new();
    let keep = |record: &Record| {
        log.extend(record.to_line().expect("json").into_bytes());
        log.push(b'\n');
    };
    if let Ok(receipt) = verify_receipt(data, keep) {
        let mut written = Vec::new();
        receipt.write(&log[..], &mut written).expect("memory");
        let again = verify_receipt(&written[..], |_| ());
        assert_eq!(again.expect("an accepted receipt is accepted again"), receipt);
    }
    for line in data.split(|&byte| byte == b'\n') {
        if let Ok(record) = Record::from_line(line) {
            assert_eq!(record.to_line().expect("json").as_bytes(), line);
        }
    }
    let mut seen = 0;
    let whole = verify_chain(data, Digest::of(b""), None, |_| seen += 1);
    assert!(whole.is_err() || whole.is_ok_and(|head| head.records == seen));
    let clean = redact(data);
    assert_eq!(find_secrets(&clean).count(), 0, "{}", Escaped::new(&clean));
}
