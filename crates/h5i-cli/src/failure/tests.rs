use std::path::Path;

use super::{Failure, Kind};
use crate::store::{BoxName, DraftError, FindError, LockError};
use crate::workspace::{DiscoverError, HostGit, PinError};
use crate::{Action, PathError};

#[test]
fn exit_codes_are_those_of_the_contract() {
    let codes = [
        (Kind::Usage, 2),
        (Kind::NotFound, 3),
        (Kind::Refused, 4),
        (Kind::Unavailable, 4),
        (Kind::Exists, 4),
        (Kind::Busy, 5),
        (Kind::Corrupt, 1),
        (Kind::Internal, 70),
    ];
    for (kind, code) in codes {
        assert_eq!(kind.exit_code(), code, "{kind:?}");
    }
}

#[test]
fn a_full_disk_is_said_with_its_path_and_a_way_out() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let failure = Failure::from(PathError::at(Action::Write, Path::new("/s/\x1b[2Jx"))(full));
    assert_eq!(failure.kind, Kind::Io);
    assert_eq!(failure.message, "cannot write `/s/\\u{1b}[2Jx`: no storage space");
    assert!(failure.hint.unwrap().contains("XDG_STATE_HOME"));
}

#[test]
fn every_refusal_says_what_to_do() {
    let name = BoxName::new("fix-auth").unwrap();
    let failures: [Failure; 7] = [
        DraftError::Exists { name: name.clone() }.into(),
        FindError::NotFound { name: name.clone(), names: vec![BoxName::new("fix-auht").unwrap()] }
            .into(),
        LockError::Busy.into(),
        DiscoverError::NotFound { start: "/x".into() }.into(),
        DiscoverError::Foreign { path: "/x/.git/".into(), owner: 7 }.into(),
        PinError::Unborn { branch: "main".into() }.into(),
        HostGit::find(&[]).unwrap_err().into(),
    ];
    for failure in &failures {
        assert!(failure.hint.is_some(), "{failure:?}");
        assert!(!failure.message.ends_with('.'), "{failure:?}");
    }
    assert_eq!(failures[1].hint.as_deref(), Some("did you mean fix-auht? h5i box ls shows all"));
    assert_eq!(failures[4].hint.as_deref(), Some("git config --global --add safe.directory /x"));
    assert_eq!(
        failures[0].to_string(),
        "error: box `fix-auth` exists\n  try       another name, or h5i box rm fix-auth"
    );
}
