//! By a grant to fetch.

use h5i_testkit::git;

use crate::world::{FETCH, PUSH, WAYS, Way, World};

#[test]
fn a_repository_is_cloned_and_fetched_and_nothing_is_pushed() {
    let world = World::new();
    for way in WAYS {
        let into = format!("{way:?}");
        world.ok(FETCH, way, &["clone", "-q", "URL", &into]);
        assert_eq!(world.read(format!("{into}/a")), b"one\n");
        world.ok(FETCH, way, &["clone", "-q", "--depth=1", "--no-local", "URL", "shallow"]);
        std::fs::remove_dir_all(world.directory.path().join("shallow")).unwrap();
        world.ok(FETCH, way, &["-C", &into, "-c", "protocol.version=0", "fetch", "-q", "URL"]);
        world.ok(FETCH, way, &["ls-remote", "URL"]);

        let main = world.service.tip("refs/heads/main");
        world.commit(format!("{way:?}").as_bytes());
        world.forget();
        let said = world.fails(FETCH, way, &["-C", "work", "push", "URL", "HEAD:refs/heads/main"]);
        let sentence = "remote: h5i refused this request to the grant";
        assert!(said.contains(sentence), "{said}");
        assert!(said.contains("it would push; the grant lets git fetch.\n"), "{said}");
        assert!(said.contains("The requested URL returned error: 403"), "{said}");
        assert_eq!(world.asked(), []);
        assert_eq!(world.service.tip("refs/heads/main"), main);
        // The twin: the same push by the other grant.
        let args = ["-C", "work", "push", "URL", "+HEAD:refs/heads/agent"];
        world.ok(PUSH, way, &args);
    }
    let told = world.told();
    let is_told = |line: &str| told.iter().any(|one| one == line);
    assert!(is_told("passed GET /repo.git/info/refs git-upload-pack"), "{told:#?}");
    assert!(is_told("passed POST /repo.git/git-upload-pack"), "{told:#?}");
    assert!(is_told("git GET /repo.git/info/refs git-receive-pack"), "{told:#?}");
}

#[test]
fn what_git_asks_with_is_all_that_passes() {
    let world = World::new();
    // Without the smart protocol git asks for files.
    for way in WAYS {
        let mut command = git(world.directory.path());
        command.env("GIT_SMART_HTTP", "0");
        let said = world.with(command, FETCH, way, &["clone", "-q", "URL", "dumb"]);
        let err = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.status.success() && err.contains("none of those that git makes"), "{err}");
        // Another repository of the service.
        let url = world.url(FETCH, way).replace("repo.git", "other.git");
        let err = world.fails(FETCH, way, &["ls-remote", &url]);
        assert!(err.contains("remote: h5i refused") && err.contains("`paths`"), "{err}");
    }
    assert_eq!(world.asked(), []);
    world.ok(FETCH, Way::Reverse, &["ls-remote", "URL"]);
}

#[test]
fn the_token_may_be_a_password() {
    let world = World::new();
    let url = world.url(FETCH, Way::Reverse);
    let with = |password: &str| url.replace("http://", &format!("http://box:{password}@"));
    let ask = |url: &str| git(world.directory.path()).args(["ls-remote", url]).output().unwrap();
    let said = ask(&with(world.token(FETCH)));
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(!ask(&with(world.token(PUSH))).status.success());
    assert!(!ask(&url).status.success());
}
