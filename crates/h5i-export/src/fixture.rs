//! Real repositories for tests: a base, and a box's checkout of it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use git2::Oid;
use h5i_policy::ExportPolicy;

use crate::{Base, Export, Refusal, RefusalRule, ReviewError, Reviewed, TreeSource};

/// A host repository with one commit and a box's checkout of it.
pub(crate) struct Fixture {
    dir: tempfile::TempDir,
    pub(crate) base: Base,
}

/// The host's git with a clean environment, in `at`, with `input` on its standard input.
pub(crate) fn git(at: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the reference implementation that a patch must apply with"
    )]
    let mut child = Command::new("git")
        .args(args)
        .current_dir(at)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", at)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        // No upkeep that goes on when the command has ended.
        .envs([("GIT_CONFIG_COUNT", "2"), ("GIT_CONFIG_KEY_0", "maintenance.auto")])
        .envs([("GIT_CONFIG_VALUE_0", "false"), ("GIT_CONFIG_KEY_1", "gc.auto")])
        .env("GIT_CONFIG_VALUE_1", "0")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.com")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.com")])
        .envs([("GIT_AUTHOR_DATE", "1777644131 +0000"), ("GIT_COMMITTER_DATE", "1777644131 +0000")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git runs");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input).expect("git reads");
    let output = child.wait_with_output().expect("git ends");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn oid(at: &Path, revision: &str) -> Oid {
    let text = String::from_utf8(git(at, &["rev-parse", revision], b"")).expect("hex");
    text.trim().parse().expect("an id")
}

impl Fixture {
    /// A repository whose one commit is what `fill` puts into its directory.
    pub(crate) fn new(fill: impl FnOnce(&Tree)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let host = dir.path().join("host");
        fs::create_dir(&host).expect("makes");
        fs::create_dir(dir.path().join("scratch")).expect("makes");
        git(&host, &["init", "-q", "-b", "main"], b"");
        fill(&Tree(host.clone()));
        git(&host, &["add", "-A", "-f"], b"");
        git(&host, &["commit", "-q", "--allow-empty", "-m", "base"], b"");
        let base =
            Base::commit(host.join(".git/objects"), oid(&host, "HEAD"), oid(&host, "HEAD^{tree}"));
        git(dir.path(), &["clone", "-q", "host", "box"], b"");
        Self { dir, base }
    }

    /// The box's tree.
    pub(crate) fn tree(&self) -> Tree {
        Tree(self.dir.path().join("box"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn export<'a>(&self) -> Export<'a> {
        Export::new(self.base.clone(), ExportPolicy::default(), &self.dir.path().join("scratch"))
    }

    pub(crate) fn source(&self) -> TreeSource {
        TreeSource::checkout(&self.dir.path().join("box")).expect("the box's tree opens")
    }

    pub(crate) fn review(&self) -> Result<Reviewed, ReviewError> {
        self.export().read(self.source())?.review()
    }

    /// The review, which must pass, proven with the host's git in a clone of the host's repository.
    pub(crate) fn accepted(&self) -> Reviewed {
        let reviewed = self.review().expect("may leave");
        self.prove(&reviewed);
        reviewed
    }

    /// `git apply --index` of the patch gives the reviewed tree.
    pub(crate) fn prove(&self, reviewed: &Reviewed) {
        let clone = tempfile::tempdir_in(self.dir.path()).expect("a directory");
        git(self.dir.path(), &["clone", "-q", "host", clone.path().to_str().expect("text")], b"");
        if !reviewed.patch.is_empty() {
            git(clone.path(), &["apply", "--index", "-"], &reviewed.patch.to_vec().expect("reads"));
        }
        let tree = String::from_utf8(git(clone.path(), &["write-tree"], b"")).expect("hex");
        assert_eq!(tree.trim(), reviewed.tree.to_string());
    }

    /// The one refusal that the review must end with.
    pub(crate) fn refused(&self) -> (String, RefusalRule) {
        match self.review() {
            Err(ReviewError::Refused { refusals }) => match &refusals[..] {
                [Refusal { path, rule }] => {
                    (String::from_utf8_lossy(path).into_owned(), rule.clone())
                }
                more => panic!("more than one refusal: {more:?}"),
            },
            other => panic!("not refused: {other:?}"),
        }
    }
}

/// A directory to put things into.
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn at(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.0.join(OsStr::from_bytes(path.as_ref()))
    }

    pub(crate) fn file(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("makes");
        fs::write(path, content).expect("writes");
        self
    }

    pub(crate) fn mode(&self, path: impl AsRef<[u8]>, mode: u32) -> &Self {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode))
            .expect("changes the mode");
        self
    }

    pub(crate) fn link(&self, path: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("makes");
        symlink(OsStr::from_bytes(target.as_ref()), path).expect("links");
        self
    }

    pub(crate) fn remove(&self, path: impl AsRef<[u8]>) -> &Self {
        let path = self.at(path);
        match fs::symlink_metadata(&path).expect("is there").is_dir() {
            true => fs::remove_dir_all(path).expect("removes"),
            false => fs::remove_file(path).expect("removes"),
        }
        self
    }

    pub(crate) fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> &Self {
        let to = self.at(to);
        fs::create_dir_all(to.parent().expect("a parent")).expect("makes");
        fs::rename(self.at(from), to).expect("renames");
        self
    }
}
