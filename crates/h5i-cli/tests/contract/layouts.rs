//! How a workspace is laid out: as asked for, or as the host allows.

use h5i_testkit::{Need, have};

use crate::disk::mounting_shell;
use crate::refusal::Refusal;
use crate::stand::{Said, Stand};

/// The layout of a box and its reason, in the words of `status`.
fn workspace(stand: &Stand, name: &str) -> String {
    let told = stand.ok(&["box", "status", name]);
    let line = told.text().lines().find(|line| line.starts_with("workspace"));
    line.unwrap().split_once(' ').unwrap().1.trim().to_owned()
}

#[test]
fn a_layout_that_is_asked_for_is_had_and_said() {
    if !have("a_layout_that_is_asked_for_is_had_and_said", Need::Overlay) {
        return;
    }
    let stand = Stand::new();
    for (name, words, said) in [
        ("c", &["--workspace", "checkout"][..], "checkout: asked for"),
        ("o", &["--workspace", "overlay"], "overlay: asked for"),
        ("a", &["--workspace", "auto"], "checkout: the base is small"),
        ("d", &[], "checkout: the base is small"),
        (
            "w",
            &["--tier", "workspace"],
            "checkout: without a boundary there are no mounts of its own",
        ),
    ] {
        stand.ok(&[&["box", "create", name][..], words].concat());
        assert_eq!(workspace(&stand, name), said);
        assert!(stand.ok(&["box", "explain", name]).text().contains(said), "{said}");
        assert_eq!(stand.sh(name, "cat a.txt; git status --porcelain"), "one and more");
        let own = stand.box_dir(name).join("box/work");
        assert_eq!(own.is_dir(), said.starts_with("checkout"), "{said}");
    }
}

#[test]
fn a_base_of_many_files_or_bytes_is_shared_by_its_boxes() {
    if !have("a_base_of_many_files_or_bytes_is_shared_by_its_boxes", Need::Overlay) {
        return;
    }
    let stand = Stand::new();
    let kind_of = |name: &str| {
        stand.ok(&["box", "create", name]);
        workspace(&stand, name)
    };
    let many = |count: usize| {
        for i in 0..count {
            stand.ground.write(&format!("many/{i}"), b"x\n");
        }
        stand.ground.commit("many");
    };
    // Two files, and two directories.
    many(46);
    assert_eq!(kind_of("most"), "checkout: the base is small");
    many(47);
    assert_eq!(kind_of("many"), "overlay: tried on this host");
    stand.ground.git(&["rm", "-r", "-q", "many"]);
    stand.ground.write("big", &vec![b'x'; (1 << 20) - 17]);
    stand.ground.commit("big");
    assert_eq!(kind_of("full"), "checkout: the base is small");
    stand.ground.write("big", &vec![b'x'; (1 << 20) - 16]);
    stand.ground.commit("bigger");
    assert_eq!(kind_of("big"), "overlay: tried on this host");
}

#[test]
fn an_overlay_without_a_boundary_is_refused() {
    let stand = Stand::new();
    Refusal {
        words: &["box", "create", "a", "--workspace", "overlay", "--tier", "workspace"],
        code: 4,
        kind: "refused",
        says: &["tier workspace has no mounts"],
        hint: "--workspace checkout",
    }
    .check(&stand);
}

#[test]
fn where_no_overlay_works_one_is_refused_and_a_checkout_serves() {
    let stand = Stand::new();
    // The kernel takes no overlay as the upper layer of another one.
    let script = |kind: &str| {
        format!(
            "mkdir -p \"$XDG_STATE_HOME\"; cd \"$XDG_STATE_HOME/..\"; mkdir l u w
             mount -t overlay -o userxattr,lowerdir=l,upperdir=u,workdir=w overlay \"$XDG_STATE_HOME\"
             chmod 777 \"$XDG_STATE_HOME\"; cd repo; set +e
             ${{AS-}} \"$H5I\" box create a {kind}; echo $?
             ${{AS-}} \"$H5I\" box status a; echo $?
             ${{AS-}} \"$H5I\" box probe | grep overlay; ${{AS-}} \"$H5I\" box probe >&2; echo $?"
        )
    };
    let says = "an overlay does not work in the state directory";
    let refused =
        Said::of(mounting_shell(&stand, &script("--workspace overlay")).output().unwrap());
    let mut lines = refused.text().lines();
    assert_eq!(lines.by_ref().take(2).collect::<Vec<_>>(), ["4", "3"], "{refused:?}");
    assert!(lines.next().unwrap().starts_with("without "), "{refused:?}");
    assert_eq!(lines.collect::<Vec<_>>(), ["0"], "{refused:?}");
    assert!(
        refused.err.contains(says) && refused.err.contains("--workspace checkout"),
        "{refused:?}"
    );
    let stand = Stand::new();
    // A base that is not small is tried.
    for i in 0..200 {
        stand.ground.write(&format!("many/{i}"), b"x\n");
    }
    stand.ground.commit("many");
    let served = Said::of(mounting_shell(&stand, &script("")).output().unwrap());
    assert!(served.text().contains(&format!("checkout: {says}")), "{served:?}");
    // The twin: the same place without the mount.
    let stand = Stand::new();
    if have("where_no_overlay_works_one_is_refused_and_a_checkout_serves", Need::Overlay) {
        stand.ok(&["box", "create", "a", "--workspace", "overlay"]);
    }
}
