//! Real repositories for tests, made with the host's `git` in a clean environment.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(
    clippy::unwrap_used,
    reason = "only tests come here, and a broken ground is a failed test"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use h5i::store::{BoxDraft, BoxName, Scope, Store};
use h5i::workspace::{
    BaseObjects, BaseSpec, Checkout, HiddenPaths, HostGit, HostRepository, Identity, ObjectsAt,
    ObjectsRequest, Owner, PinnedBase, Prepared, Workspace, WorkspaceError,
};
use h5i_policy::History;

/// A directory with a repository, a state directory and a home, removed at the end.
pub(crate) struct Ground {
    dir: tempfile::TempDir,
}

impl Ground {
    /// A repository with two commits on `main`.
    pub(crate) fn new() -> Self {
        let ground = Self::bare_ground();
        ground.git(&["init", "--quiet", "--initial-branch=main", "."]);
        ground.write("a.txt", b"one\n");
        ground.write("dir/b.txt", b"two\n");
        ground.commit("first");
        ground.write("a.txt", b"one and more\n");
        ground.commit("second");
        ground
    }

    /// The directories without a repository.
    pub(crate) fn bare_ground() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["repo", "home"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.state()).unwrap()
    }

    pub(crate) fn host(&self) -> HostRepository {
        HostRepository::open(&self.repo()).unwrap()
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.repo().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn write_executable(&self, name: &str, bytes: &[u8]) {
        self.write(name, bytes);
        fs::set_permissions(self.repo().join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.repo().join(name)).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs `git` in the repository; it must succeed.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.repo(), args)
    }
}

/// Runs `git` in a directory with nothing of the caller's environment; it must succeed.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = try_git(dir, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Keeps git from starting upkeep that goes on when the command has ended: it writes to the
/// repository while a test looks at it.
pub(crate) const NO_UPKEEP: [(&str, &str); 5] = [
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "maintenance.auto"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "gc.auto"),
    ("GIT_CONFIG_VALUE_1", "0"),
];

/// Runs `git` in a directory with nothing of the caller's environment.
#[expect(clippy::disallowed_methods, reason = "tests drive the real git")]
pub(crate) fn try_git(dir: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(NO_UPKEEP)
        .env("GIT_AUTHOR_NAME", "Ann Author")
        .env("GIT_AUTHOR_EMAIL", "ann@example.com")
        .env("GIT_COMMITTER_NAME", "Ann Author")
        .env("GIT_COMMITTER_EMAIL", "ann@example.com")
        .output()
        .unwrap()
}

/// The host's `git` as h5i finds it.
pub(crate) fn host_git() -> HostGit {
    HostGit::find(&["/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()]).unwrap()
}

/// A box's workspace in a draft that lives as long as the value.
pub(crate) struct Made {
    pub(crate) draft: BoxDraft,
    pub(crate) base: PinnedBase,
    pub(crate) objects: BaseObjects,
    pub(crate) prepared: Prepared,
}

impl Made {
    pub(crate) fn work(&self) -> PathBuf {
        Workspace::work_dir(&self.draft.box_dir())
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.work(), args)
    }
}

/// Makes a workspace from the ground's repository as an unconfined box has it.
pub(crate) fn make(ground: &Ground, spec: &BaseSpec, history: History) -> Made {
    make_hidden(ground, spec, history, None)
}

pub(crate) fn make_hidden(
    ground: &Ground,
    spec: &BaseSpec,
    history: History,
    hidden: Option<HiddenPaths<'_>>,
) -> Made {
    let host = ground.host();
    let base = host.pin(spec).unwrap();
    let scope = host.scope();
    make_from(ground, Some(&host), &scope, base, &ObjectsRequest { history, hidden })
}

pub(crate) fn make_from(
    ground: &Ground,
    host: Option<&HostRepository>,
    scope: &Scope,
    base: PinnedBase,
    request: &ObjectsRequest<'_>,
) -> Made {
    let store = ground.store();
    let name = BoxName::new(&format!("b{}", fs::read_dir(ground.path()).unwrap().count())).unwrap();
    let mut draft = store.draft(scope, &name, None).unwrap();
    let objects = BaseObjects::make(&mut draft, host, &base, request, &host_git()).unwrap();
    let me = fs::metadata(ground.path()).unwrap();
    let prepared = Workspace {
        base: &base,
        objects: &objects,
        identity: &Identity::of_host(host),
        objects_at: ObjectsAt::Host,
        owner: Owner::Caller,
        inside: (me.uid(), me.gid()),
    }
    .create(&draft.box_dir(), &Checkout)
    .unwrap();
    Made { draft, base, objects, prepared }
}

/// Makes one more workspace of the base and objects of another.
pub(crate) fn make_again(ground: &Ground, made: &Made) -> Result<BoxDraft, WorkspaceError> {
    let host = ground.host();
    let name = BoxName::new("again").unwrap();
    let draft = ground.store().draft(&host.scope(), &name, None).unwrap();
    let me = fs::metadata(ground.path()).unwrap();
    let workspace = Workspace {
        base: &made.base,
        objects: &made.objects,
        identity: &Identity::default(),
        objects_at: ObjectsAt::Host,
        owner: Owner::Caller,
        inside: (me.uid(), me.gid()),
    };
    workspace.create(&draft.box_dir(), &Checkout).map(|_prepared| draft)
}

/// Every file below a directory with its bytes, mode, owner and modification time.
pub(crate) fn picture(dir: &Path) -> Vec<(PathBuf, Vec<u8>, u32, i64, i64)> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let bytes = if meta.is_symlink() {
            fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
        } else if meta.is_file() {
            fs::read(&path).unwrap()
        } else {
            // What the kernel keeps for itself in an overlay, root alone can look into.
            let closed = meta.mode() & 0o777 == 0 && path.ends_with("overlay/work/work");
            if meta.is_dir() && (!closed || rustix::process::geteuid().is_root()) {
                waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            Vec::new()
        };
        found.push((path, bytes, meta.mode(), meta.mtime(), meta.mtime_nsec()));
    }
    found.sort();
    found
}

/// A name of bytes that are not UTF-8.
pub(crate) fn raw_name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    lines.sort();
    lines
}

/// Every object that the box can read.
pub(crate) fn objects_of(made: &Made) -> Vec<String> {
    let all = ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"];
    sorted(&made.git(&all))
}

/// Every object that is reachable from a revision of the host.
pub(crate) fn reachable(ground: &Ground, from: &str) -> Vec<String> {
    sorted(&ground.git(&["rev-list", "--objects", from]))
}

/// The packs of a box's base, by their inodes.
pub(crate) fn packs(made: &Made) -> Vec<u64> {
    let packs = fs::read_dir(made.objects.path.join("objects/pack")).unwrap();
    let packs = packs.map(|entry| entry.unwrap().path());
    let packs = packs.filter(|path| path.extension().is_some_and(|ending| ending == "pack"));
    packs.map(|path| fs::metadata(path).unwrap().ino()).collect()
}
