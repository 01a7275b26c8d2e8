//! A box of a large base tells its git what to look at, and hides nothing from it.

use h5i_testkit::{Need, have};

use crate::stand::Stand;

/// A repository with 5,000 files in 50 directories.
fn large() -> Stand {
    let stand = Stand::new();
    for i in 0..5000 {
        stand.ground.write(&format!("d{}/deep/f{}", i % 50, i / 50), b"x\n");
    }
    stand.ground.commit("many");
    stand
}

/// What a step does to the workspace, and how many lines `git status` has then.
const STEPS: [(&str, usize); 23] = [
    ("git config --global user.name t; git config --global user.email t@example.com", 0),
    ("echo y >> d1/deep/f1", 1),
    ("git add d1/deep/f1", 1),
    ("echo y > d2/deep/new", 2),
    ("git add d2/deep/new", 2),
    ("rm d2/deep/new", 2),
    ("git reset -q --hard", 0),
    ("mkdir -p fresh/a && echo z > fresh/a/b && git add fresh", 1),
    ("rm -r fresh", 1),
    ("git reset -q --hard", 0),
    ("rm d3/deep/f3", 1),
    ("rm -r d4", 101),
    ("mkdir -p d4/deep && echo x > d4/deep/f4", 100),
    ("rm -r d5 && ln -s d6 d5", 201),
    ("rm d5 && git checkout -q -- d5", 100),
    ("git stash -q -u", 0),
    ("git stash pop -q", 100),
    ("git checkout -q . && git clean -qfd", 0),
    ("chmod +x d7/deep/f7", 1),
    ("git commit -qam mode && mv d8 moved", 200),
    ("git add -A", 200),
    ("git commit -qm moved && git checkout -q HEAD~2", 0),
    ("git checkout -q - && touch d9/deep/f9 && rm -r moved && git reset -q --hard", 0),
];

#[test]
fn git_in_a_box_of_many_files_sees_what_it_would_see_without_help() {
    if !have("git_in_a_box_of_many_files_sees_what_it_would_see_without_help", Need::Overlay) {
        return;
    }
    let stand = large();
    stand.ok(&["box", "create", "a", "--workspace", "overlay"]);
    // Each step in a session of its own, and twice in one: with a cold mount and a warm one.
    for (step, lines) in STEPS {
        let script = format!(
            "set -e; {step}\n\
             git status --porcelain -uall --no-renames > /tmp/asked\n\
             cp .git/index /tmp/index\n\
             GIT_INDEX_FILE=/tmp/index git -c core.fsmonitor=false status --porcelain -uall \
             --no-renames > /tmp/looked\n\
             diff /tmp/asked /tmp/looked >&2; wc -l < /tmp/asked"
        );
        let told = stand.ok(&["box", "run", "a", "--", "sh", "-c", &script]);
        assert_eq!(told.text().trim(), lines.to_string(), "{step}");
    }
}

#[test]
fn an_index_of_many_files_starts_with_nothing_to_look_at_and_one_of_few_asks_nobody() {
    let name = "an_index_of_many_files_starts_with_nothing_to_look_at_and_one_of_few_asks_nobody";
    if !have(name, Need::Overlay) {
        return;
    }
    let stand = large();
    stand.ok(&["box", "create", "many", "--workspace", "overlay"]);
    // In lower case: not to be looked at.
    let unmarked = "git ls-files -f | grep -vc '^h'";
    assert_eq!(stand.sh("many", &format!("{unmarked}; true")), "1", "that of the root");
    let changed = "/run/h5i/bin/h5i changed-paths 2 h5i | tr '\\0' ' '";
    assert_eq!(
        stand.sh("many", &format!("echo y > d1/deep/f1; {changed}")).split(' ').count(),
        102
    );
    // Another working tree with the same configuration is not the box's: git looks for itself.
    let other = "git worktree add -q /tmp/other && cd /tmp/other && rm d1/deep/f1 && \
                 git status --porcelain && ! /run/h5i/bin/h5i changed-paths 2 h5i";
    assert_eq!(stand.sh("many", other), " D d1/deep/f1");
    // A cache of untracked files knows directories that the answer would not name: there is none.
    let cached = "git config core.untrackedCache true; git update-index --untracked-cache; \
                  git status > /dev/null; echo u > d10/u; git status --porcelain";
    assert_eq!(stand.sh("many", cached), " M d1/deep/f1\n?? d10/u");
    stand.ok(&["box", "create", "few", "--base", "HEAD~1", "--workspace", "overlay"]);
    let none = "git config core.fsmonitor; test -e /run/h5i/upper && echo there; true";
    assert_eq!(stand.sh("few", none), "");
}
