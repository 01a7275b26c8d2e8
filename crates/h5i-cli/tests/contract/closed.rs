//! Boxes whose programs take rights on their own directories away. The host of an ordinary user has
//! no more rights there than these programs have.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::shapes::BoxDiff;
use crate::stand::{Stand, is_root};

on_both_back_ends!(Stand:
    a_box_that_closed_its_own_directories_goes_on,
    a_box_that_closed_its_own_directories_is_removed,
    a_run_joins_a_session_whose_directories_are_closed,
    what_is_closed_in_the_workspace_is_named_and_the_rest_is_shown,
    a_closed_directory_that_is_not_exported_is_in_nobodys_way,
);

const CLOSE: &str = "echo x > new; echo y > ~/own; chmod 0 ~ /tmp /work";

/// Has a box close its own directories; on the host they are closed then.
fn close(stand: &Stand, name: &str) {
    stand.sh(name, CLOSE);
    let own = stand.box_dir(name).join("box");
    let work = ["work", "overlay/upper"].map(|root| own.join(root));
    let work = work.iter().find(|root| root.is_dir()).expect("a workspace");
    for root in [work, &own.join("home")] {
        let mode = fs::symlink_metadata(root).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0, "{}", root.display());
    }
}

fn a_box_that_closed_its_own_directories_goes_on(stand: &Stand) {
    let out = stand.path().join("out");
    let words: [&[&str]; 6] = [
        &["box", "status", "a"],
        &["box", "diff", "a", "--name-only"],
        &["box", "export", "a", "--force", "-o", out.to_str().unwrap()],
        &["box", "explain", "a"],
        &["box", "run", "a", "--", "sh", "-c", "cat new ~/own"],
        &["box", "ls"],
    ];
    stand.ok(&["box", "create", "a"]);
    for words in words {
        close(stand, "a");
        let said = stand.ok(words);
        match words[1] {
            "status" => assert!(said.text().contains("1 file (+1"), "{}", said.text()),
            "diff" => assert_eq!(said.text(), "new\n"),
            "run" => assert_eq!(said.text(), "x\ny\n"),
            _ => {}
        }
    }
    // A session that is kept begins there as well.
    close(stand, "a");
    stand.ok(&["box", "start", "a"]);
    assert_eq!(stand.sh("a", "cat new ~/own"), "x\ny");
    stand.ok(&["box", "stop", "a"]);
}

fn a_box_that_closed_its_own_directories_is_removed(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    close(stand, "a");
    // It is looked into first: it has what nobody exported.
    let refused = stand.h5i(&["box", "rm", "a"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(refused.err.contains("changes that were not exported: 1 file"), "{}", refused.err);
    stand.sh("a", "mkdir -p deep/er ~/deep/er; chmod 0 deep/er deep ~/deep/er ~/deep");
    close(stand, "a");
    stand.ok(&["box", "rm", "--force", "a"]);
    stand.user_policy("version = 1\n[profile.default]\nexpires = \"1ms\"\n");
    stand.ok(&["box", "create", "b"]);
    close(stand, "b");
    let said = stand.ok(&["box", "gc"]);
    assert!(said.text().contains("expired  b"), "{}", said.text());
    assert_eq!(stand.box_directories(), [""; 0]);
}

fn a_run_joins_a_session_whose_directories_are_closed(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    stand.ok(&["box", "start", "a"]);
    stand.sh("a", "echo y > ~/own; chmod 0 ~");
    assert_eq!(stand.sh("a", "cat ~/own"), "y");
    stand.ok(&["box", "stop", "a"]);
}

const CLOSED: &str = "echo x > new; mkdir -p dir2/sub; echo y > dir2/sub/f; chmod 0 dir2; \
                      echo z > shut; chmod 0 shut; : > empty; chmod 0 empty; mkdir no-x; \
                      echo q > no-x/f; chmod 600 no-x";

fn what_is_closed_in_the_workspace_is_named_and_the_rest_is_shown(stand: &Stand) {
    let out = stand.path().join("out");
    let export = ["box", "export", "a", "-o", out.to_str().unwrap()];
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", CLOSED);
    let open = "h5i box run a -- chmod u+rwx ./dir2 ./empty ./no-x ./shut";
    let diff = stand.ok(&["box", "diff", "a", "--json"]).data::<BoxDiff>();
    let left: Vec<&str> = diff.left_out.iter().map(|path| path.text()).collect();
    let names: Vec<&str> = diff.files.iter().map(|file| file.path.text()).collect();
    let status = stand.ok(&["box", "status", "a"]);
    let changed = status.text().lines().find(|line| line.starts_with("changed")).unwrap();
    if is_root() {
        // Who may read everything finds nothing closed.
        assert_eq!(left, [""; 0]);
        assert!(changed.contains("5 files"), "{changed}");
    } else {
        assert_eq!((&left[..], &names[..]), (&["dir2", "empty", "no-x", "shut"][..], &["new"][..]));
        let said = stand.ok(&["box", "diff", "a", "--name-only"]);
        assert_eq!(said.text(), "new\n");
        let note = "closed   what is in dir2 empty no-x shut can't be read and is not shown; ";
        assert!(said.err.contains(&format!("{note}{open}")), "{}", said.err);
        let why = "`dir2`: its mode keeps even its owner from reading it";
        assert!(changed.contains(why) && changed.contains(open), "{changed}");
        let refused = stand.h5i(&export);
        assert_eq!(refused.code, 4, "{}", refused.err);
        assert!(refused.err.contains(why) && refused.err.contains(open), "{}", refused.err);
        assert!(!out.try_exists().unwrap());
        // What is said helps.
        stand.sh("a", "chmod u+rwx ./dir2 ./empty ./no-x ./shut");
    }
    let said = stand.ok(&["box", "diff", "a", "--name-only"]);
    assert_eq!(said.text(), "dir2/sub/f\nempty\nnew\nno-x/f\nshut\n");
    assert!(!said.err.contains("closed"), "{}", said.err);
    stand.ok(&export);
}

fn a_closed_directory_that_is_not_exported_is_in_nobodys_way(stand: &Stand) {
    stand.ground.write(".gitignore", b"built/\n");
    stand.ground.commit("ignore");
    stand.ok(&["box", "create", "a"]);
    stand.sh(
        "a",
        "echo x > new; mkdir -p built/in; chmod 0 built/in; mkdir .git/shut; chmod 0 .git/shut",
    );
    let said = stand.ok(&["box", "diff", "a", "--name-only"]);
    assert_eq!((said.text(), said.err.contains("closed")), ("new\n", false));
    let out = stand.path().join("out");
    stand.ok(&["box", "export", "a", "-o", out.to_str().unwrap()]);
}
