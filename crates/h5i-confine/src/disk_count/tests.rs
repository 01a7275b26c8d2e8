use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use super::*;

const LONG: Duration = Duration::from_secs(600);

fn pass(path: &Path) -> DiskCount {
    DiskCount::new(roots(&[path.to_owned()]).unwrap(), (0, 0))
}

fn counted(path: &Path) -> Counted {
    pass(path).go_on(Instant::now() + LONG, u64::MAX).unwrap()
}

#[test]
fn files_count_their_blocks_and_everything_at_least_an_entry() {
    let dir = tempfile::tempdir().unwrap();
    let empty = counted(dir.path());
    fs::write(dir.path().join("large"), vec![1; 1 << 20]).unwrap();
    fs::write(dir.path().join("empty"), "").unwrap();
    std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    let full = counted(dir.path());
    assert_eq!(full.entries, 5);
    let more = full.bytes - empty.bytes;
    let about = (1 << 20) + 4 * ENTRY..(1 << 20) + 16 * ENTRY;
    assert!(about.contains(&more), "{more}");
}

#[test]
fn what_has_changed_since_a_moment_is_told_from_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    for path in [&old, &new] {
        fs::write(path, vec![1; 1 << 20]).unwrap();
    }
    // Longer than a tick of the clock that changes are noted by.
    std::thread::sleep(Duration::from_millis(20));
    let since = moment();
    let count = || {
        let roots = roots(&[dir.path().to_owned()]).unwrap();
        DiskCount::new(roots, since).go_on(Instant::now() + LONG, u64::MAX).unwrap()
    };
    let all = count();
    assert_eq!(all.before, all.bytes);
    // Neither the length nor the time of the contents tells, and who owns a file can set both.
    let file = fs::File::options().write(true).open(&new).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"2", 0).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    let some = count();
    assert_eq!(some.bytes, all.bytes);
    let changed = all.before - some.before;
    assert!((1 << 20..(1 << 20) + 4 * ENTRY).contains(&changed), "{changed}");
}

#[test]
fn a_sparse_file_counts_what_it_takes_and_a_second_name_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let sparse = fs::File::create(dir.path().join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert!(counted(dir.path()).bytes < 1 << 20);
    fs::write(dir.path().join("large"), vec![1; 1 << 20]).unwrap();
    let one = counted(dir.path()).bytes;
    for name in 0..5 {
        fs::hard_link(dir.path().join("large"), dir.path().join(format!("name-{name}"))).unwrap();
    }
    assert!(counted(dir.path()).bytes < one + (1 << 19));
}

#[test]
fn a_pass_in_many_parts_counts_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for outer in 0..8 {
        for inner in 0..8 {
            let path = dir.path().join(format!("{outer}/{inner}"));
            fs::create_dir_all(&path).unwrap();
            (0..BETWEEN + 6).for_each(|n| fs::write(path.join(n.to_string()), "").unwrap());
        }
    }
    let whole = counted(dir.path());
    let mut parts = 0;
    let mut pass = pass(dir.path());
    let sum = loop {
        parts += 1;
        // Over at once: each part does one step.
        if let Some(sum) = pass.go_on(Instant::now(), u64::MAX) {
            break sum;
        }
    };
    assert_eq!(sum, whole);
    assert!(parts > 130, "{parts}");
}

#[test]
fn a_pass_ends_when_it_has_counted_enough() {
    let dir = tempfile::tempdir().unwrap();
    (0..100).for_each(|n| fs::create_dir(dir.path().join(n.to_string())).unwrap());
    (0..100).for_each(|n| fs::write(dir.path().join(format!("{n}/f")), "").unwrap());
    let sum = pass(dir.path()).go_on(Instant::now() + LONG, 10 * ENTRY).unwrap();
    assert!(sum.bytes > 10 * ENTRY && sum.entries <= 101, "{sum:?}");
}

#[test]
fn a_tree_that_is_deeper_than_a_path_may_be_long_is_counted_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let name = "n".repeat(200);
    let mut at = roots(&[dir.path().to_owned()]).unwrap().remove(0);
    for _ in 0..300 {
        rustix::fs::mkdirat(&at, &name, Mode::RWXU).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        at = openat(&at, &name, flags, Mode::empty()).unwrap();
    }
    rustix::fs::mkdirat(&at, "last", Mode::RWXU).unwrap();
    assert_eq!(counted(dir.path()).entries, 301);
    // Removal by path would not get there.
    let mut top = dir.path().join(&name);
    for step in 0.. {
        let next = dir.path().join(format!("up-{step}"));
        let below = top.join(&name);
        if fs::symlink_metadata(&below).is_err() {
            break;
        }
        fs::rename(&below, &next).unwrap();
        fs::remove_dir(&top).unwrap();
        top = next;
    }
}

#[test]
fn what_is_in_a_closed_directory_is_counted_and_it_is_closed_again() {
    let dir = tempfile::tempdir().unwrap();
    let closed = dir.path().join("closed");
    fs::create_dir_all(closed.join("inner")).unwrap();
    fs::write(closed.join("inner/large"), vec![1; 1 << 20]).unwrap();
    for path in [closed.join("inner"), closed.clone()] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let sum = counted(dir.path());
    assert_eq!(sum.entries, 3);
    assert!(sum.bytes > 1 << 20, "{sum:?}");
    assert_eq!(fs::metadata(&closed).unwrap().mode() & 0o7777, 0);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(fs::metadata(closed.join("inner")).unwrap().mode() & 0o7777, 0);
    fs::set_permissions(closed.join("inner"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_link_in_the_place_of_a_directory_is_not_followed() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    (0..50).for_each(|n| fs::write(other.path().join(n.to_string()), "").unwrap());
    fs::create_dir(dir.path().join("real")).unwrap();
    let mut pass = pass(dir.path());
    // The directory's name is kept, then a link stands there.
    assert_eq!(pass.go_on(Instant::now(), u64::MAX), None);
    fs::remove_dir(dir.path().join("real")).unwrap();
    std::os::unix::fs::symlink(other.path(), dir.path().join("real")).unwrap();
    let sum = pass.go_on(Instant::now() + LONG, u64::MAX).unwrap();
    assert_eq!(sum.entries, 1);
}
