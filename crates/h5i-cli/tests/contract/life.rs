//! J2, J4 and A6: what stays of a box, what can change it, and what a box's life changes.

use std::fs;
use std::path::Path;

use crate::shapes::{CreatedBox, RemovedBoxes};
use crate::stand::Stand;
use crate::support::{git, picture};

on_both_back_ends!(
    Stand:
    nothing_of_a_removed_box_remains_but_its_receipt,
    base_objects_go_with_the_last_box_that_borrows_them,
    what_changes_on_the_host_does_not_change_a_box,
    no_verb_changes_a_byte_of_the_host,
);

/// Paths below `dir` whose name or bytes have the canary.
fn holding(dir: &Path, canary: &str) -> Vec<String> {
    let found = picture(dir).into_iter().filter(|(path, bytes, ..)| {
        path.to_string_lossy().contains(canary)
            || bytes.windows(canary.len()).any(|part| part == canary.as_bytes())
    });
    found.map(|(path, ..)| path.display().to_string()).collect()
}

fn nothing_of_a_removed_box_remains_but_its_receipt(stand: &Stand) {
    let first: CreatedBox = stand.ok(&["box", "create", "a", "--json"]).data();
    stand.sh("a", "for d in /work ~ /tmp /dev/shm; do echo canary-bytes > $d/canary-name; done");
    assert_eq!(holding(&stand.state(), "canary-name").len(), 3, "work, home and the receipt");
    // What nobody may open or list is removed as well.
    stand.sh("a", "chmod 000 ~/canary-name; mkdir -p ~/closed/x; chmod 000 ~/closed");
    let removed: RemovedBoxes = stand.ok(&["box", "rm", "--force", "a", "--json"]).data();
    assert_eq!(removed.removed[0].name, "a");
    let archive = removed.removed[0].archive.clone().unwrap();
    assert!(archive.ends_with(&format!("archive/a-{}", first.id)), "{archive}");
    let left = holding(&stand.state(), "canary-name");
    assert_eq!(left, [format!("{archive}/receipt.jsonl")]);
    assert_eq!(stand.box_directories(), [""; 0]);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(stand.path().to_str().unwrap()), "{mounts}");
    // One of the same name starts clean.
    let second: CreatedBox = stand.ok(&["box", "create", "a", "--json"]).data();
    assert_ne!(first.id, second.id);
    let there = stand.sh("a", "ls -A /work ~ /tmp /dev/shm; git status --porcelain");
    assert!(!there.contains("canary"), "{there}");
    assert!(!stand.ok(&["box", "log", "a"]).text().contains("canary"));
    stand.ok(&["box", "rm", "--force", "--purge", "a"]);
    let archive = stand.state().join("h5i/archive");
    assert_eq!(fs::read_dir(archive).unwrap().count(), 1, "the purged one's receipt stayed");
}

fn base_objects_go_with_the_last_box_that_borrows_them(stand: &Stand) {
    let objects = || {
        let names = fs::read_dir(stand.state().join("h5i/objects")).unwrap();
        names
            .filter(|n| !n.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'))
            .count()
    };
    stand.ok(&["box", "create", "a"]);
    stand.ok(&["box", "create", "b"]);
    stand.ok(&["box", "rm", "a"]);
    stand.ok(&["box", "gc"]);
    assert_eq!(objects(), 1);
    stand.sh("b", "git fsck --strict");
    stand.ok(&["box", "rm", "b"]);
    stand.ok(&["box", "gc"]);
    assert_eq!(objects(), 0);
}

fn what_changes_on_the_host_does_not_change_a_box(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    let seen = "cat a.txt; git log --format='%H %s'; git status --porcelain; ls -A";
    let (before, status) =
        (stand.sh("a", seen), stand.ok(&["box", "status", "a", "--json"]).json());
    stand.user_policy("version = 1\n[profile.default.net]\nmode = \"host\"\n[profile.default.limits]\nwall = \"1ms\"\n");
    stand.ground.write("a.txt", b"changed\n");
    stand.ground.write("b.txt", b"new\n");
    stand.ground.commit("third");
    stand.ground.write("a.txt", b"changed again\n");
    stand.ground.git(&["branch", "--force", "side", "HEAD~2"]);
    stand.ground.git(&["reset", "--quiet", "--soft", "HEAD~2"]);
    stand.ground.git(&["reflog", "expire", "--expire=now", "--all"]);
    stand.ground.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(stand.sh("a", seen), before);
    let after = stand.ok(&["box", "status", "a", "--json"]).json();
    for field in ["policy", "base", "network", "enforcement", "tier", "id"] {
        assert_eq!(after["data"][field], status["data"][field], "{field}");
    }
    assert_eq!(stand.h5i(&["policy", "diff", "a"]).code, 1);
    // The twin: a new box is made from what there is now, and its deadline is a millisecond.
    let made: CreatedBox = stand.ok(&["box", "create", "b", "--dirty", "--json"]).data();
    assert_eq!(made.network, "host");
    assert_eq!(stand.h5i(&["box", "run", "b", "--", "sleep", "1000"]).code, 124);
    // The repository itself may go: the box's objects are h5i's own.
    fs::remove_dir_all(stand.repo().join(".git/objects")).unwrap();
    assert_eq!(stand.sh("a", seen), before);
}

fn no_verb_changes_a_byte_of_the_host(stand: &Stand) {
    stand.ground.git(&["config", "user.name", "Ann Author"]);
    stand.ground.write("a.txt", b"dirty\n");
    // Were a hook run, on either side, its mark would stand in the host's home.
    let mark = format!("touch {}", stand.home().join("ran").display());
    let hook = format!("#!/bin/sh\n{mark}\n");
    for name in ["post-checkout", "post-index-change", "reference-transaction"] {
        stand.ground.write_executable(&format!(".git/hooks/{name}"), hook.as_bytes());
    }
    stand.ground.write_executable(".git/hooks/pre-commit", b"#!/bin/sh\nexit 1\n");
    fs::write(stand.home().join(".profile"), "# mine\n").unwrap();
    let before = stand.traces();
    let fsck = git(&stand.repo(), &["fsck", "--full"]);
    assert_eq!(stand.traces(), before);
    stand.ok(&["box", "create", "a"]);
    stand.ok(&["box", "create", "d", "--dirty"]);
    let hostile = format!(
        "rm -rf .git/refs; echo x > a.txt; git config -f .git/config core.fsmonitor '{mark}'; \
         git config -f .git/config core.pager '{mark}'; mkdir -p .git/hooks; \
         for h in post-index-change post-checkout reference-transaction; do \
         printf '#!/bin/sh\\n{mark}\\n' > .git/hooks/$h; done; chmod +x .git/hooks/*"
    );
    stand.sh("a", &hostile);
    stand.sh("d", "git -c user.name=x -c user.email=x@example.com commit -qam x; git gc -q");
    for words in [
        &["box", "ls", "--all"][..],
        &["box", "status", "a"],
        &["box", "log", "a"],
        &["box", "explain", "a"],
        &["box", "diff", "d"],
        &["box", "export", "d", "-o", "../out"],
        &["box", "probe"],
        &["policy", "show"],
        &["policy", "check"],
        &["policy", "digest"],
        &["policy", "diff", "a"],
        &["box", "gc"],
        &["run", "--", "true"],
        &["box", "rm", "--force", "a", "d"],
    ] {
        stand.ok(words);
        let after = stand.traces();
        assert_eq!((&after.repo, &after.home), (&before.repo, &before.home), "{words:?}");
    }
    assert_eq!(git(&stand.repo(), &["fsck", "--full"]), fsck);
    // The twin: a change of one byte or time would have been seen.
    fs::write(stand.repo().join("a.txt"), "dirty\n").unwrap();
    assert_ne!(stand.traces().repo, before.repo);
}
