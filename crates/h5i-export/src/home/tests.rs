use std::fs;
use std::os::unix::fs::symlink;

use super::{MAX_NAMED, RULES, home_findings};

fn paths(home: &std::path::Path) -> Vec<String> {
    let found = home_findings(home).expect("looks");
    found.into_iter().map(|found| String::from_utf8(found.path).expect("text")).collect()
}

#[test]
fn what_acts_at_the_next_start_is_found_and_the_rest_is_not() {
    let home = tempfile::tempdir().expect("a directory");
    assert!(paths(home.path()).is_empty());
    assert!(paths(&home.path().join("absent")).is_empty());
    for directory in [".config/git", ".local/bin", ".cache/x", "notes"] {
        fs::create_dir_all(home.path().join(directory)).expect("makes");
    }
    fs::write(home.path().join("notes/x"), "").expect("writes");
    assert!(paths(home.path()).is_empty(), "empty directories do nothing");
    for file in [".bashrc", ".config/git/attributes", ".local/bin/ls", ".cache/x/y"] {
        fs::write(home.path().join(file), "x").expect("writes");
    }
    assert_eq!(paths(home.path()), [".bashrc", ".config/git/attributes", ".local/bin/ls"]);
}

#[test]
fn links_and_pipes_in_known_places_count_and_are_not_followed() {
    let home = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    fs::create_dir(elsewhere.path().join("bin")).expect("makes");
    fs::write(elsewhere.path().join("bin/secret"), "").expect("writes");
    symlink(elsewhere.path(), home.path().join(".local")).expect("links");
    symlink("/etc/profile", home.path().join(".profile")).expect("links");
    let pipe = home.path().join(".zshrc");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("makes");
    assert_eq!(paths(home.path()), [".local/bin", ".local/lib", ".profile", ".zshrc"]);
}

#[test]
fn a_full_directory_is_named_by_some_of_its_entries() {
    let home = tempfile::tempdir().expect("a directory");
    fs::create_dir(home.path().join("bin")).expect("makes");
    for number in 0..100 {
        fs::write(home.path().join(format!("bin/{number}")), "").expect("writes");
    }
    assert_eq!(paths(home.path()).len(), MAX_NAMED);
}

#[test]
fn every_rule_finds_its_place() {
    for (rule, why) in RULES {
        let home = tempfile::tempdir().expect("a directory");
        let name = if rule.ends_with('/') { format!("{rule}x") } else { (*rule).to_owned() };
        let path = home.path().join(&name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("makes");
        fs::write(&path, "").expect("writes");
        let found = home_findings(home.path()).expect("looks");
        let known = found.iter().any(|found| found.path == name.as_bytes() && found.why == *why);
        assert!(known, "{rule}: {found:?}");
    }
}
