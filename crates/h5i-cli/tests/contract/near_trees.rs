//! A base that differs little from one that stands is laid over it, and looks like any other.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use h5i_testkit::{Need, have};

use crate::stand::Stand;

/// 300 files, and a box that has them; then a commit with a change of every kind.
fn two_bases() -> Stand {
    let stand = Stand::new();
    for number in 0..300 {
        stand.ground.write(&format!("many/{}/{number}", number % 7), b"x\n");
    }
    for name in ["gone", "changed", "becomes-dir", "moved", "mode", "kept"] {
        stand.ground.write(&format!("some/{name}"), name.as_bytes());
    }
    stand.ground.write("becomes-file/deep/er", b"deep\n");
    stand.ground.write("gone-dir/deep/er", b"deep\n");
    stand.ground.write("lfs", b"version https://git-lfs.github.com/spec/v1\n");
    symlink("some/kept", stand.repo().join("link")).unwrap();
    stand.ground.commit("many");
    stand.ok(&["box", "create", "first"]);
    let some = stand.repo().join("some");
    for name in ["gone", "becomes-dir"] {
        fs::remove_file(some.join(name)).unwrap();
    }
    for name in ["becomes-file", "gone-dir"] {
        fs::remove_dir_all(stand.repo().join(name)).unwrap();
    }
    fs::rename(some.join("moved"), stand.repo().join("arrived")).unwrap();
    fs::remove_file(stand.repo().join("link")).unwrap();
    symlink("some/changed", stand.repo().join("link")).unwrap();
    stand.ground.write("some/becomes-dir/x", b"x\n");
    stand.ground.write("some/changed", b"other\n");
    stand.ground.write("becomes-file", b"file\n");
    stand.ground.write("new-dir/deep/er", b"new\n");
    stand.ground.write_executable("some/mode", b"mode");
    stand.ground.commit("changes");
    stand
}

/// The directory with the difference, in the tree that is laid over another one.
fn difference(stand: &Stand) -> PathBuf {
    let trees = fs::read_dir(stand.state().join("h5i/trees")).unwrap();
    let parts = trees.flat_map(|tree| fs::read_dir(tree.unwrap().path()).unwrap());
    let mut found = parts
        .map(|part| part.unwrap().path())
        .filter(|part| part.file_name().unwrap().to_string_lossy().starts_with("over-"));
    let only = found.next().unwrap();
    assert_eq!(found.next(), None);
    only
}

fn files_below(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

/// Everything that is seen of a tree.
const SEEN: &str = "git status --porcelain; git diff-files --name-only; git ls-files -s; \
                    git diff-index --cached --name-only HEAD; git write-tree; \
                    find . -path ./.git -prune -o -printf '%P %y %#m %l\\n' | sort; \
                    find . -path ./.git -prune -o -type f -exec cksum {} + | sort";

#[test]
fn a_near_base_is_a_layer_of_its_difference_and_looks_like_one_that_is_written_whole() {
    if !have("a_near_base_is_a_layer_of_its_difference", Need::Overlay) {
        return;
    }
    let stand = two_bases();
    let said = stand.ok(&["box", "create", "near"]);
    assert!(
        said.err.contains("1 files are LFS pointers"),
        "what is noted of the tree below: {said:?}"
    );
    assert!(files_below(&difference(&stand)) < 20);
    // The twin, in a directory of its own.
    stand.ok(&["box", "create", "whole", "--workspace", "checkout"]);
    let seen = stand.sh("near", SEEN);
    assert_eq!(seen, stand.sh("whole", SEEN));
    assert!(seen.contains("some/becomes-dir/x") && !seen.contains("gone"), "{seen}");
    let edit = "echo more >> many/1/1; rm -r some; echo y > becomes-file; mkdir gone-dir; \
                echo back > gone-dir/deep; mv new-dir newer; rm many/2/2; ln -s many/1 two; true";
    for name in ["near", "whole"] {
        stand.sh(name, edit);
    }
    let [near, whole] = ["near", "whole"].map(|name| stand.ok(&["box", "diff", name]).out);
    assert_eq!(String::from_utf8(near).unwrap(), String::from_utf8(whole).unwrap());
    assert_eq!(stand.sh("near", SEEN), stand.sh("whole", SEEN));
    assert_eq!(stand.sh("first", "git status --porcelain; cat some/gone"), "gone");
}

#[test]
fn a_difference_that_an_earlier_boot_left_is_made_again_when_it_is_not_whole() {
    if !have("a_difference_that_an_earlier_boot_left_is_made_again", Need::Overlay) {
        return;
    }
    let stand = two_bases();
    stand.ok(&["box", "create", "near"]);
    let whole = stand.sh("near", SEEN);
    let layer = difference(&stand);
    let spoils: [fn(&Path); 4] = [
        |_| {},
        |layer| fs::write(layer.join("becomes-file"), "FILE\n").unwrap(),
        |layer| {
            let hidden = layer.join("gone-dir");
            assert!(fs::symlink_metadata(&hidden).unwrap().file_type().is_char_device());
            fs::remove_file(hidden).unwrap();
        },
        |layer| fs::remove_file(layer.join("some/mode")).unwrap(),
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let before = fs::metadata(&layer).unwrap().ino();
        spoil(&layer);
        for tree in fs::read_dir(stand.state().join("h5i/trees")).unwrap() {
            let record = tree.unwrap().path().join("tree.json");
            let text = fs::read_to_string(&record).unwrap();
            let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
            json["boot"] = "another".into();
            fs::write(&record, json.to_string()).unwrap();
        }
        let name = format!("again{number}");
        stand.ok(&["box", "create", &name]);
        assert_eq!(stand.sh(&name, SEEN), whole, "{number}");
        let made_again = fs::metadata(&layer).unwrap().ino() != before;
        assert_eq!(made_again, number > 0, "{number}");
    }
}
