//! A tree of more files than one thread writes.

mod support;

use std::fs;
use std::path::Path;

use h5i::workspace::{BaseSpec, CheckoutError, Note, WorkspaceError};
use h5i_policy::History;
use support::{Ground, make, make_again, picture};

/// A repository with more files than one thread writes: in many directories, one of them with very
/// many; of every kind, and a pointer of LFS among the last.
fn crowd() -> Ground {
    let ground = Ground::new();
    for number in 0..1500 {
        let dir = if number % 3 == 0 { "flat".to_owned() } else { format!("d{}/e", number % 40) };
        let name = format!("{dir}/f{number}");
        if number % 7 == 0 {
            ground.write_executable(&name, format!("#!/bin/sh\necho {number}\n").as_bytes());
        } else {
            ground.write(&name, format!("{number}\n").repeat(number).as_bytes());
        }
        if number % 50 == 0 {
            ground.link(&format!("{dir}/link{number}"), &format!("f{number}"));
        }
    }
    ground.write("z", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    ground.commit("many");
    ground
}

#[test]
fn many_files_are_what_few_are() {
    let ground = crowd();
    let made = make(&ground, &BaseSpec::Head, History::Full);
    let files = |root: &Path| {
        let all = picture(root).into_iter();
        let all = all.map(|(path, bytes, mode, ..)| {
            (path.strip_prefix(root).unwrap().to_owned(), bytes, mode & 0o170_111)
        });
        let files = all.filter(|(path, ..)| path != Path::new("") && !path.starts_with(".git"));
        files.collect::<Vec<_>>()
    };
    let (of_host, of_box) = (files(&ground.repo()), files(&made.work()));
    assert_eq!(of_box.len(), of_host.len());
    for (ours, theirs) in of_box.iter().zip(&of_host) {
        assert_eq!(ours, theirs);
    }
    // The index has each file with what stands there: git finds nothing to look at again.
    let index = made.work().join(".git/index");
    let before = fs::read(&index).unwrap();
    assert_eq!(made.git(&["status", "--porcelain"]), "");
    assert_eq!(fs::read(&index).unwrap(), before, "git refreshed entries");
    let staged = ["ls-files", "--stage"];
    assert_eq!(made.git(&staged), ground.git(&staged));
    assert_eq!(made.prepared.notes, [Note::LfsPointer { path: b"z".to_vec() }]);
}

#[test]
fn a_damaged_object_is_found_whoever_reads_it() {
    let ground = crowd();
    let made = make(&ground, &BaseSpec::Head, History::Full);
    drop(make_again(&ground, &made).unwrap());
    // The twins differ in one byte of one pack each; most of it is files' content.
    let dir = fs::read_dir(made.objects.path.join("objects/pack")).unwrap();
    let pack = dir
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension() == Some("pack".as_ref()));
    let pack = pack.unwrap();
    let whole = fs::read(&pack).unwrap();
    fs::remove_file(&pack).unwrap();
    for part in 1..6 {
        let mut damaged = whole.clone();
        damaged[whole.len() * part / 6] ^= 0x55;
        fs::write(&pack, &damaged).unwrap();
        let refused = make_again(&ground, &made).unwrap_err();
        assert!(
            matches!(refused, WorkspaceError::Checkout(CheckoutError::Git { .. })),
            "{part}: {refused:?}"
        );
    }
    fs::write(&pack, &whole).unwrap();
    drop(make_again(&ground, &made).unwrap());
}
