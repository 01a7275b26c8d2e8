//! From a box to a patch that applies, by the program itself.
#![allow(
    clippy::disallowed_methods,
    reason = "the program under test and git are run as a person would"
)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

#[macro_use]
#[path = "support/back_ends.rs"]
mod back_ends;

use back_ends::Layout;

struct Desk {
    dir: TempDir,
    layout: Layout,
}

impl Desk {
    /// A repository with two files, and a home of its own.
    fn laid_out(layout: Layout) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // A box of root runs under an id of its own and has to get here.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let desk = Self { dir, layout };
        fs::create_dir(desk.repo()).unwrap();
        fs::write(desk.repo().join("a.txt"), "one\ntwo\n").unwrap();
        fs::write(desk.repo().join("run.sh"), "echo hi\n").unwrap();
        for args in [
            &["init", "-q", "-b", "main"][..],
            &["add", "."],
            &["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "base"],
        ] {
            assert!(desk.git(args).status.success());
        }
        desk
    }

    fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        Command::new(program)
            .args(args)
            .current_dir(self.repo())
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap()
    }

    /// Without upkeep that goes on when the command has ended.
    fn git(&self, args: &[&str]) -> Output {
        let quiet = ["-c", "maintenance.auto=false", "-c", "gc.auto=0"];
        self.run("git", &[&quiet[..], args].concat())
    }

    fn h5i(&self, args: &[&str]) -> Output {
        self.run(env!("CARGO_BIN_EXE_h5i"), &self.layout.words(args))
    }

    /// A box `b` with one of each change, exported to `out`.
    fn exported(&self) -> PathBuf {
        assert!(self.h5i(&["box", "create", "b"]).status.success());
        let script = "echo three >> a.txt; printf '\\0\\1' > blob; ln -s a.txt link; \
                      git mv run.sh moved.sh; chmod +x moved.sh; unshare -U true; true";
        let run = self.h5i(&["box", "run", "b", "--", "sh", "-c", script]);
        assert!(run.status.success(), "{run:?}");
        let out = self.dir.path().join("out");
        let export = self.h5i(&["box", "export", "b", "-o", out.to_str().unwrap()]);
        assert!(export.status.success(), "{export:?}");
        out
    }
}

on_both_back_ends!(
    Desk:
    the_exported_patch_applies_to_the_base_and_gives_the_reviewed_tree,
    a_whole_bundle_is_verified_and_each_changed_file_is_named,
    an_export_replaces_nothing_unless_forced_and_a_box_goes_on_after_it,
    unexported_changes_keep_a_box_from_a_slip_and_exported_ones_do_not,
);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn named_tree(bundle: &Path) -> String {
    let index = fs::read_to_string(bundle.join("bundle.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    index["tree"].as_str().unwrap().to_owned()
}

fn the_exported_patch_applies_to_the_base_and_gives_the_reviewed_tree(desk: &Desk) {
    let out = desk.exported();
    let patch = out.join("patch.diff");
    let applied = desk.git(&["apply", "--index", patch.to_str().unwrap()]);
    assert!(applied.status.success(), "{applied:?}");
    let tree = text(&desk.git(&["write-tree"]).stdout);
    assert_eq!(tree.trim(), named_tree(&out));
    let report = fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("Refused: `unshare`"), "{report}");
}

fn a_whole_bundle_is_verified_and_each_changed_file_is_named(desk: &Desk) {
    let out = desk.exported();
    let out_text = out.to_str().unwrap();
    let whole = desk.h5i(&["receipt", "verify", out_text]);
    assert!(whole.status.success(), "{whole:?}");
    assert!(text(&whole.stdout).contains("gives the named tree"));
    for name in ["patch.diff", "report.md", "report.html", "receipt.json", "bundle.json"] {
        let path = out.join(name);
        let original = fs::read(&path).unwrap();
        let mut changed = original.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        fs::write(&path, changed).unwrap();
        let found = desk.h5i(&["receipt", "verify", out_text]);
        assert_eq!(found.status.code(), Some(1), "{name}: {found:?}");
        fs::write(&path, original).unwrap();
    }
    fs::write(out.join("surplus"), "x").unwrap();
    assert_eq!(desk.h5i(&["receipt", "verify", out_text]).status.code(), Some(1));
    fs::remove_file(out.join("surplus")).unwrap();
    assert!(desk.h5i(&["receipt", "verify", out_text]).status.success());
}

fn an_export_replaces_nothing_unless_forced_and_a_box_goes_on_after_it(desk: &Desk) {
    let out = desk.exported();
    let out = out.to_str().unwrap();
    assert_eq!(desk.h5i(&["box", "export", "b", "-o", out]).status.code(), Some(4));
    let again = desk.h5i(&["box", "run", "b", "--", "sh", "-c", "echo four >> a.txt"]);
    assert!(again.status.success());
    assert!(desk.h5i(&["box", "export", "b", "-o", out, "--force"]).status.success());
    let patch = fs::read_to_string(Path::new(out).join("patch.diff")).unwrap();
    assert!(patch.contains("+four"), "{patch}");
}

fn unexported_changes_keep_a_box_from_a_slip_and_exported_ones_do_not(desk: &Desk) {
    assert!(desk.h5i(&["box", "create", "b"]).status.success());
    assert!(desk.h5i(&["box", "run", "b", "--", "touch", "new"]).status.success());
    let refused = desk.h5i(&["box", "rm", "b"]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(text(&refused.stderr).contains("h5i box export b"));
    let out = desk.dir.path().join("out");
    assert!(desk.h5i(&["box", "export", "b", "-o", out.to_str().unwrap()]).status.success());
    assert!(desk.h5i(&["box", "rm", "b"]).status.success());
    assert_eq!(desk.h5i(&["box", "status", "b"]).status.code(), Some(3));
}
