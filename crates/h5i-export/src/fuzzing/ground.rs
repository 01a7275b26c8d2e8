//! A base to compare with, made once and made anew when it has grown.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use git2::{FileMode, Repository, Signature, Time};

use crate::store::{Base, Store};

/// How often one ground is used: what is written to its store stays until it goes.
const USES: u32 = 2000;

/// A base, a store on top of it, and a directory.
pub(super) struct Ground {
    pub(super) base: Base,
    pub(super) store: Store,
    pub(super) scratch: PathBuf,
    uses: u32,
    /// Removed with the ground.
    _dir: tempfile::TempDir,
}

thread_local! {
    static GROUND: RefCell<Option<Ground>> = const { RefCell::new(None) };
}

/// Gives the thread's ground to `claim`.
pub(super) fn with_ground(claim: impl FnOnce(&Ground)) {
    GROUND.with_borrow_mut(|ground| {
        let mut current =
            ground.take().filter(|ground| ground.uses < USES).unwrap_or_else(Ground::new);
        current.uses += 1;
        claim(&current);
        *ground = Some(current);
    });
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("makes a directory");
        let scratch = dir.path().join("scratch");
        std::fs::create_dir(&scratch).expect("makes a directory");
        let base = base(&dir.path().join("base"));
        let store = Store::open(&base, &scratch).expect("opens the base");
        Self { base, store, scratch, uses: 0, _dir: dir }
    }
}

/// Text, binary content, an executable, a link, an empty file, a directory, a rules file.
fn base(path: &Path) -> Base {
    let repo = Repository::init_bare(path).expect("makes a repository");
    let blob = |content: &[u8]| repo.blob(content).expect("writes");
    let put = |builder: &mut git2::TreeBuilder<'_>, name: &str, content: &[u8], mode: FileMode| {
        builder.insert(name, blob(content), mode.into()).expect("inserts");
    };
    let mut inner = repo.treebuilder(None).expect("starts a tree");
    put(&mut inner, "deep.txt", b"deep\n", FileMode::Blob);
    put(&mut inner, "blob.bin", &[0, 1, 2, 3, 0xff], FileMode::Blob);
    let inner = inner.write().expect("writes");
    let mut root = repo.treebuilder(None).expect("starts a tree");
    put(&mut root, "a.txt", b"one\ntwo\nthree\nfour\nfive\n", FileMode::Blob);
    put(&mut root, "no-end", b"no end of line", FileMode::Blob);
    put(&mut root, "run.sh", b"#!/bin/sh\n", FileMode::BlobExecutable);
    put(&mut root, "link", b"a.txt", FileMode::Link);
    put(&mut root, "empty", b"", FileMode::Blob);
    put(&mut root, ".gitignore", b"*.o\ntarget/\n", FileMode::Blob);
    root.insert("dir", inner, FileMode::Tree.into()).expect("inserts");
    let tree = repo.find_tree(root.write().expect("writes")).expect("is there");
    let who = Signature::new("a", "a@example.com", &Time::new(0, 0)).expect("a name");
    let commit = repo.commit(None, &who, &who, "base", &tree, &[]).expect("writes");
    Base::commit(path.join("objects"), commit, tree.id())
}
