//! Trees that are made to hang, exhaust, or mislead the reader.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::fixture::{Fixture, git};
use crate::review::{RefusalRule, ReviewError};
use crate::{ReadLimits, Special, TreeError};

fn small() -> Fixture {
    Fixture::new(|tree| {
        tree.file("a", "a\n").file("dir/b", "b\n").file(".gitignore", "ignored/\n");
    })
}

#[test]
fn pipes_and_sockets_are_refused_without_waiting_and_stay_where_they_are_ignored() {
    let fixture = small();
    let fifo = fixture.tree().at("pipe");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("makes");
    assert_eq!(fixture.refused(), ("pipe".into(), RefusalRule::Special(Special::Fifo)));
    fs::remove_file(&fifo).expect("removes");
    let socket = UnixListener::bind(fixture.tree().at("socket")).expect("binds");
    assert_eq!(fixture.refused(), ("socket".into(), RefusalRule::Special(Special::Socket)));
    drop(socket);
    fixture.tree().remove("socket").file("ignored/x", "");
    mknodat(CWD, fixture.tree().at("ignored/pipe"), FileType::Fifo, Mode::RWXU, 0).expect("makes");
    assert_eq!(fixture.accepted().left[&b"ignored"[..]].files(), 2);
}

#[test]
fn a_tracked_file_that_became_a_pipe_is_refused() {
    let fixture = small();
    fixture.tree().remove("a");
    mknodat(CWD, fixture.tree().at("a"), FileType::Fifo, Mode::RWXU, 0).expect("makes");
    assert_eq!(fixture.refused(), ("a".into(), RefusalRule::Special(Special::Fifo)));
}

#[test]
fn a_sparse_file_of_a_tebibyte_is_refused_by_its_size() {
    let fixture = small();
    let file = fs::File::create(fixture.tree().at("sparse")).expect("makes");
    file.set_len(1 << 40).expect("grows");
    let (path, rule) = fixture.refused();
    assert_eq!(path, "sparse");
    assert_eq!(rule, RefusalRule::TooLarge { bytes: 1 << 40, limit: 5 << 20 });
    file.set_len(3).expect("shrinks");
    fixture.accepted();
}

#[test]
fn a_directory_four_thousand_deep_is_refused() {
    let fixture = small();
    let root = fixture.tree().at("deep");
    fs::create_dir(&root).expect("makes");
    let mut at =
        rustix::fs::open(&root, rustix::fs::OFlags::DIRECTORY, Mode::empty()).expect("opens");
    for _ in 0..4000 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).expect("makes");
        at = rustix::fs::openat(&at, "d", rustix::fs::OFlags::DIRECTORY, Mode::empty())
            .expect("opens");
    }
    let error = fixture.review().expect_err("too deep");
    assert!(matches!(error, ReviewError::Tree(TreeError::TooDeep { limit: 200, .. })), "{error:?}");
    let twin = small();
    twin.tree().file(vec!["d"; 200].join("/"), "x\n");
    twin.accepted();
}

#[test]
fn more_entries_than_allowed_are_refused_also_where_they_are_ignored() {
    let fixture = small();
    for number in 0..50 {
        fixture.tree().file(format!("ignored/{number}"), "");
    }
    let with = |entries| {
        let limits = ReadLimits { entries, ..ReadLimits::default() };
        fixture.export().limits(limits).read(fixture.source())?.review()
    };
    // a, dir, dir/b, .gitignore, .git, ignored and what is in it
    assert_eq!(with(56).expect("exactly enough").left[&b"ignored"[..]].files(), 50);
    assert!(matches!(with(55), Err(ReviewError::Tree(TreeError::TooManyEntries { limit: 55 }))));
}

#[test]
fn reading_ends_when_its_time_is_up() {
    let fixture = small();
    let limits = ReadLimits { time: Duration::ZERO, ..ReadLimits::default() };
    let error = fixture.export().limits(limits).read(fixture.source()).expect_err("no time");
    assert!(matches!(error, ReviewError::Tree(TreeError::TooLong { .. })), "{error:?}");
}

#[test]
fn a_file_with_a_name_elsewhere_is_not_read_and_one_with_all_names_here_is() {
    let fixture = small();
    let outside = fixture.path().join("outside");
    fs::write(&outside, "not the box's\n").expect("writes");
    fs::hard_link(&outside, fixture.tree().at("linked")).expect("links");
    assert_eq!(
        fixture.refused(),
        ("linked".into(), RefusalRule::LinkedElsewhere { links: 2, found: 1 })
    );
    fs::remove_file(&outside).expect("removes");
    fs::hard_link(fixture.tree().at("linked"), fixture.tree().at("dir/again")).expect("links");
    assert_eq!(fixture.accepted().changes.len(), 2);
}

#[test]
fn whatever_stands_in_the_git_directorys_place_is_neither_read_nor_exported() {
    let fixture = small();
    fixture.tree().file("a", "changed\n");
    let git_dir = fixture.tree().at(".git");
    let expected = fixture.accepted().tree;
    fs::remove_dir_all(&git_dir).expect("removes");
    assert_eq!(fixture.accepted().tree, expected, "without one");
    fs::write(&git_dir, "gitdir: /\n").expect("writes");
    assert_eq!(fixture.accepted().tree, expected, "a file");
    fs::remove_file(&git_dir).expect("removes");
    symlink("/", &git_dir).expect("links");
    assert_eq!(fixture.accepted().tree, expected, "a link");
}

#[test]
fn nothing_that_the_boxs_git_directory_names_is_run() {
    let fixture = small();
    let at = fixture.tree().at("");
    let canary = fixture.path().join("canary");
    let touch = format!("touch {}", canary.display());
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
    ] {
        git(&at, &["config", key, &touch], b"");
    }
    fixture
        .tree()
        .file(".git/info/attributes", "* filter=evil diff=evil\n")
        .file(".git/objects/info/alternates", "/\n")
        .file(".git/commondir", "/\n")
        .file(".gitattributes", "* filter=evil diff=evil\n")
        .file("a", "changed\n");
    for hook in ["post-checkout", "pre-commit", "post-index-change", "pre-applypatch"] {
        fixture
            .tree()
            .file(format!(".git/hooks/{hook}"), format!("#!/bin/sh\n{touch}\n"))
            .mode(format!(".git/hooks/{hook}"), 0o755);
    }
    fixture.accepted();
    assert!(!canary.try_exists().expect("can look"), "something ran");
}

#[test]
fn a_dangling_entry_of_the_index_or_a_missing_base_is_an_error_not_a_guess() {
    let fixture = small();
    let mut other = fixture.base.clone();
    other.tree = "4c1d9e04c1d9e04c1d9e04c1d9e04c1d9e04c1d9".parse().expect("an id");
    let error = crate::Export::new(
        other,
        h5i_policy::ExportPolicy::default(),
        &fixture.path().join("scratch"),
    )
    .read(fixture.source())
    .expect_err("the commit has another tree");
    assert!(matches!(error, ReviewError::Store(crate::StoreError::OtherTree { .. })), "{error:?}");
}

#[test]
fn the_host_repository_is_as_before_and_the_quarantine_is_gone() {
    let fixture = small();
    fixture.tree().file("a", "changed\n").file("new", "n\n");
    let host = fixture.path().join("host");
    let listing = |at: &std::path::Path| {
        let mut all = std::collections::BTreeMap::new();
        let mut rest = vec![at.to_owned()];
        while let Some(path) = rest.pop() {
            if path.is_dir() {
                rest.extend(
                    fs::read_dir(path).expect("lists").map(|entry| entry.expect("an entry").path()),
                );
            } else {
                all.insert(path.clone(), fs::read(path).expect("reads"));
            }
        }
        all
    };
    let before = listing(&host);
    let reviewed = fixture.review().expect("may leave");
    assert_eq!(reviewed.changes.len(), 2);
    assert_eq!(listing(&host), before);
    assert!(listing(&fixture.path().join("scratch")).is_empty());
}
