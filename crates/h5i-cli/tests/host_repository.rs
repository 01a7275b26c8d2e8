//! Finding and pinning: every thing that stands in the way has its name.

mod support;

use h5i::workspace::{BaseSpec, DiscoverError, HostRepository, PinError};
use support::{Ground, git};

#[test]
fn the_repository_is_found_from_below() {
    let ground = Ground::new();
    let host = HostRepository::discover(&ground.repo().join("dir")).unwrap();
    assert_eq!(host.workdir(), Some(ground.repo().as_path()));
    assert_eq!(host.scope(), ground.host().scope());
}

#[test]
fn no_repository_is_said() {
    let ground = Ground::bare_ground();
    let refused = HostRepository::discover(&ground.repo()).unwrap_err();
    assert!(matches!(refused, DiscoverError::NotFound { .. }), "{refused:?}");
}

#[test]
fn a_git_file_that_leads_nowhere_is_a_broken_repository() {
    let ground = Ground::bare_ground();
    ground.write(".git", b"gitdir: /nonexistent/x\n");
    let refused = HostRepository::discover(&ground.repo()).unwrap_err();
    assert!(matches!(refused, DiscoverError::Git { .. }), "{refused:?}");
}

#[test]
fn an_unborn_branch_is_named() {
    let ground = Ground::bare_ground();
    ground.git(&["init", "--quiet", "--initial-branch=trunk", "."]);
    for spec in [BaseSpec::Head, BaseSpec::WorkingTree, BaseSpec::Revision("HEAD".into())] {
        match ground.host().pin(&spec) {
            Err(PinError::Unborn { branch }) => assert_eq!(branch, "trunk"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unknown_revision_names_the_nearest() {
    let ground = Ground::new();
    ground.git(&["branch", "feature/login"]);
    match ground.host().pin(&BaseSpec::Revision("feature/logn".into())) {
        Err(PinError::UnknownRevision { nearest, .. }) => {
            assert_eq!(nearest.as_deref(), Some("feature/login"));
        }
        other => panic!("{other:?}"),
    }
    let odd = ground.host().pin(&BaseSpec::Revision("\x1b[2J..".into())).unwrap_err();
    assert!(!odd.to_string().contains('\x1b'), "{odd}");
}

#[test]
fn a_revision_that_is_no_commit_says_what_it_is() {
    let ground = Ground::new();
    let refused = ground.host().pin(&BaseSpec::Revision("HEAD:a.txt".into())).unwrap_err();
    assert_eq!(refused.to_string(), "`HEAD:a.txt` is a blob, not a commit");
}

#[test]
fn branches_tags_and_expressions_are_pinned() {
    let ground = Ground::new();
    ground.git(&["tag", "-a", "-m", "v", "v1", "HEAD~1"]);
    let first = ground.git(&["rev-parse", "HEAD~1"]);
    for (revision, branch) in [("v1", "main"), ("main~1", "main"), (first.as_str(), "main")] {
        let base = ground.host().pin(&BaseSpec::Revision(revision.into())).unwrap();
        assert_eq!(base.commit.unwrap().to_string(), first, "{revision}");
        assert_eq!(base.branch, branch);
    }
    ground.git(&["branch", "feature/x"]);
    let base = ground.host().pin(&BaseSpec::Revision("feature/x".into())).unwrap();
    assert_eq!(base.branch, "feature/x");
    ground.git(&["checkout", "--quiet", "--detach"]);
    let base = ground.host().pin(&BaseSpec::Head).unwrap();
    assert_eq!((base.branch.as_str(), base.described.as_str()), ("main", "detached HEAD"));
}

#[test]
fn a_bare_repository_has_commits_but_no_working_tree() {
    let ground = Ground::new();
    git(ground.path(), &["clone", "--quiet", "--bare", "repo", "bare.git"]);
    let host = HostRepository::discover(&ground.path().join("bare.git")).unwrap();
    assert!(host.pin(&BaseSpec::Head).unwrap().commit.is_some());
    let refused = host.pin(&BaseSpec::WorkingTree).unwrap_err();
    assert!(matches!(refused, PinError::NoWorkingTree), "{refused:?}");
}

#[test]
fn sha256_and_unknown_extensions_are_named() {
    let ground = Ground::bare_ground();
    ground.git(&["init", "--quiet", "--object-format=sha256", "."]);
    let refused = HostRepository::open(&ground.repo()).unwrap_err();
    assert!(matches!(refused, DiscoverError::Sha256 { .. }), "{refused:?}");
    let ground = Ground::new();
    ground.git(&["config", "core.repositoryformatversion", "1"]);
    ground.git(&["config", "extensions.refStorage", "reftable"]);
    match HostRepository::open(&ground.repo()) {
        Err(DiscoverError::Extension { extension, .. }) => assert_eq!(extension, "refstorage"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_of_the_base_is_read_from_the_commit_and_not_from_the_disk() {
    let ground = Ground::new();
    let host = ground.host();
    let base = host.pin(&BaseSpec::Head).unwrap();
    ground.write("a.txt", b"on disk\n");
    let read = |name: &str, most| host.read_base_file(&base, name.as_ref(), most).unwrap();
    assert_eq!(read("a.txt", 100).unwrap(), b"one and more\n");
    assert_eq!(read("a.txt", 3), None);
    assert_eq!(read("dir", 100), None);
    assert_eq!(read("absent", 100), None);
}
