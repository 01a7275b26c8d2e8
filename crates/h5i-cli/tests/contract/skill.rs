//! `h5i skill`: what agents are told, and where it is written.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use crate::stand::Stand;

#[test]
fn a_skill_is_written_once_and_other_content_stays() {
    let stand = Stand::new();
    let text = stand.ok(&["skill", "show"]).out;
    assert!(text.starts_with(b"---\nname: h5i\ndescription: "));
    let path = stand.repo().join(".claude/skills/h5i/SKILL.md");
    stand.ok(&["skill", "install"]);
    assert_eq!(fs::read(&path).unwrap(), text);
    let before = fs::metadata(&path).unwrap().ino();
    let again = stand.ok(&["skill", "install", "--json"]).json();
    assert_eq!(again["data"]["written"], false);
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    fs::write(&path, "mine\n").unwrap();
    let said = stand.h5i(&["skill", "install", "--json"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (4, "exists"));
    assert_eq!(fs::read(&path).unwrap(), b"mine\n");
    stand.ok(&["skill", "install", "--force"]);
    assert_eq!(fs::read(&path).unwrap(), text);
    let names = fs::read_dir(path.parent().unwrap()).unwrap();
    assert_eq!(names.count(), 1);
    // Elsewhere, as for all repositories of a person.
    stand.ok(&["skill", "install", "--dir", stand.home().to_str().unwrap()]);
    assert_eq!(fs::read(stand.home().join(".claude/skills/h5i/SKILL.md")).unwrap(), text);
}

#[test]
fn of_instructions_that_are_there_only_h5is_section_is_touched() {
    let stand = Stand::new();
    let path = stand.repo().join("AGENTS.md");
    let section = stand.ok(&["skill", "show", "--agent", "codex"]).text().to_owned();
    let install = ["skill", "install", "--agent", "codex"];
    stand.ok(&install);
    assert_eq!(fs::read_to_string(&path).unwrap(), section);
    fs::write(&path, "# Ours\n").unwrap();
    assert_eq!(stand.h5i(&install).code, 4);
    assert_eq!(fs::read_to_string(&path).unwrap(), "# Ours\n");
    stand.ok(&["skill", "install", "--agent", "codex", "--force"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("# Ours\n\n{section}"));
    // What is there already needs no force.
    stand.ok(&install);
}

#[test]
fn a_link_in_the_files_place_is_neither_followed_nor_replaced() {
    let stand = Stand::new();
    let target = stand.home().join("profile");
    fs::write(&target, "mine\n").unwrap();
    symlink(&target, stand.repo().join("AGENTS.md")).unwrap();
    for more in [&[][..], &["--force"][..]] {
        let words = [&["skill", "install", "--agent", "codex"][..], more].concat();
        let said = stand.h5i(&words);
        assert!(said.code == 4 && said.err.contains("no plain file"), "{said:?}");
    }
    assert_eq!(fs::read(&target).unwrap(), b"mine\n");
    // The twin: without the link it is written.
    fs::remove_file(stand.repo().join("AGENTS.md")).unwrap();
    stand.ok(&["skill", "install", "--agent", "codex"]);
}

#[test]
fn what_the_skill_says_of_a_box_is_so() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let script = "pwd; echo ~; ls -d /run/h5i/spool; h5i note a doubt; h5i skill show | head -n 2 | tail -n 1";
    assert_eq!(stand.sh("a", script), "/work\n/home/box\n/run/h5i/spool\nname: h5i");
    assert!(stand.ok(&["box", "log", "a"]).text().contains("a doubt"));
    let text = stand.ok(&["skill", "show"]).text().to_owned();
    for place in ["`/work`", "`/home/box`", "`/run/h5i/spool`", "`h5i note \"TEXT\"`"] {
        assert!(text.contains(place), "{place}");
    }
}
