use std::io;

use h5i_export::{ReviewError, StoreError, TreeError};
use rustix::io::Errno;

use super::review_failure;
use crate::failure::Kind;
use crate::store::BoxName;

fn told(error: &ReviewError) -> (Kind, u8, String) {
    let failure = review_failure(&BoxName::new("a").unwrap(), error);
    (failure.kind, failure.kind.exit_code(), failure.hint.unwrap_or_default())
}

fn write(errno: Errno) -> StoreError {
    StoreError::Io { operation: "write", path: "/s/HEAD".into(), source: errno.into() }
}

#[test]
fn a_full_disk_is_no_damage() {
    for errno in [Errno::NOSPC, Errno::DQUOT] {
        let errors: [ReviewError; 4] = [
            write(errno).into(),
            TreeError::Store(write(errno)).into(),
            StoreError::Patch(errno.into()).into(),
            StoreError::Git {
                operation: "write an object into the quarantine",
                source: git2::Error::new(
                    git2::ErrorCode::GenericError,
                    git2::ErrorClass::Os,
                    "failed to write: No space left on device",
                ),
            }
            .into(),
        ];
        for error in errors {
            let (kind, code, hint) = told(&error);
            assert_eq!((kind, code), (Kind::Io, 70), "{error:?}");
            assert!(hint.contains("make room"), "{error:?}: {hint}");
        }
    }
}

#[test]
fn other_failures_of_the_host_are_its_own_with_a_remedy() {
    for errno in [Errno::IO, Errno::ROFS, Errno::NOMEM, Errno::MFILE] {
        let tree = TreeError::Io { operation: "read", path: b"x".to_vec(), source: errno.into() };
        for error in [write(errno).into(), ReviewError::Tree(tree)] {
            let (kind, code, hint) = told(&error);
            assert_eq!((kind, code), (Kind::Io, 70), "{error:?}");
            assert!(!hint.is_empty(), "{error:?}");
        }
    }
}

#[test]
fn damage_and_what_the_box_brings_about_stay_what_they_are() {
    let class = git2::ErrorClass::Odb;
    let source = git2::Error::new(git2::ErrorCode::NotFound, class, "object not found");
    let (kind, code, hint) =
        told(&StoreError::Git { operation: "read a tree of the base", source }.into());
    assert_eq!((kind, code), (Kind::Corrupt, 1));
    assert!(hint.contains("h5i box rm --force a"), "{hint}");
    assert_eq!(told(&StoreError::TooManyAlternates.into()).0, Kind::Corrupt);
    let source = io::Error::from(Errno::LOOP);
    let tree = TreeError::Io { operation: "open", path: b"x".to_vec(), source };
    assert_eq!(told(&tree.into()).0, Kind::Refused);
}
