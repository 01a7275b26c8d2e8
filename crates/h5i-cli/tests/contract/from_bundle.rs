//! A box that starts from a reviewed tree.

use std::fs;

use crate::shapes::CreatedBox;
use crate::stand::Stand;

#[test]
fn a_box_from_a_bundle_has_the_reviewed_tree_and_nothing_else_of_its_parent() {
    let stand = Stand::with_identity();
    let script = "echo more >> a.txt; echo new > new; git rm -q dir/b.txt; \
                  echo secret > ~/left; echo ignored > .git/left; git stash list; \
                  git checkout -q -b side; git add -A; \
                  git -c user.name=x -c user.email=x@example.com commit -qm side";
    let out = stand.exported("a", script);
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("bundle.json")).unwrap()).unwrap();
    let words = ["box", "create", "b", "--from-bundle", out.to_str().unwrap(), "--json"];
    let made: CreatedBox = stand.ok(&words).data();
    assert_eq!(made.base.tree, index["tree"].as_str().unwrap());
    // A bundle is no approval.
    assert!(made.artifact.is_none());
    assert!(made.base.described.starts_with("bundle "), "{made:?}");
    assert_eq!(stand.sh("b", "cat a.txt new; ls"), "one and more\nmore\nnew\na.txt\nnew");
    assert_eq!(
        stand.sh("b", "git status --porcelain; ls -A ~ | grep left; ls .git | grep left; true"),
        ""
    );
    // The history is the base's and one commit; the box's own commits are not there.
    assert_eq!(stand.sh("b", "git log --format=%s"), "Box a, as reviewed\nsecond\nfirst");
    assert_eq!(stand.sh("b", "git branch --list --format='%(refname:short)'"), "main");
    let manifest = stand.box_dir("b").join("host/manifest.json");
    let manifest: serde_json::Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["parent"]["name"], "a");
    let bundle = stand.ok(&["receipt", "verify", out.to_str().unwrap(), "--json"]).json();
    assert_eq!(manifest["parent"]["bundle"], bundle["data"]["bundle"]);
    assert_eq!(manifest["base"]["host_commit"], stand.ground.git(&["rev-parse", "HEAD"]));
    // It goes on from there, after its parent is gone, and lands on the host.
    stand.ok(&["box", "rm", "--purge", "a"]);
    stand.ok(&["box", "gc"]);
    stand.sh("b", "echo later > later");
    stand.export("b");
    stand.applied("b", &[]);
    assert_eq!(stand.ground.git(&["diff", "--name-only", "main", "h5i/b"]), "later");
    let left = fs::read_dir(stand.state().join("h5i/objects")).unwrap();
    let left: Vec<String> = left.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|name| !name.ends_with(".new")), "{left:?}");
}

#[test]
fn a_bundle_that_nobody_vouches_for_is_no_start() {
    let stand = Stand::with_identity();
    let out = stand.exported("a", "echo new > new");
    let words = ["box", "create", "b", "--from-bundle", out.to_str().unwrap(), "--json"];
    let original = fs::read(out.join("bundle.json")).unwrap();
    fs::write(out.join("bundle.json"), [&original[..], b"\n"].concat()).unwrap();
    let said = stand.h5i(&words);
    assert_eq!((said.code, said.failure().kind.as_str()), (4, "refused"));
    fs::write(out.join("bundle.json"), original).unwrap();
    fs::write(out.join("patch.diff"), "").unwrap();
    let said = stand.h5i(&words);
    assert_eq!((said.code, said.failure().kind.as_str()), (1, "corrupt"));
    assert_eq!(stand.box_directories(), ["a"]);
    let out = stand.export("a");
    let borrow = [&words[..], &["--set", "history=\"borrow\""]].concat();
    let said = stand.h5i(&borrow);
    assert_eq!((said.code, said.failure().kind.as_str()), (4, "refused"), "{:?}", said.failure());
    assert_eq!(stand.box_directories(), ["a"]);
    // The twin.
    stand.ok(&["box", "create", "b", "--from-bundle", out.to_str().unwrap()]);
}

#[test]
fn a_parent_with_a_short_history_is_a_start_too() {
    let stand = Stand::with_identity();
    for (name, child, history) in [("a", "x", "\"depth:1\""), ("b", "y", "\"none\"")] {
        let history = format!("history={history}");
        stand.ok(&["box", "create", name, "--set", &history]);
        stand.sh(name, "echo new > new");
        let out = stand.export(name);
        stand.ok(&["box", "create", child, "--from-bundle", out.to_str().unwrap()]);
        assert_eq!(stand.sh(child, "cat new; git rev-list --count HEAD"), "new\n2", "{history}");
    }
}
