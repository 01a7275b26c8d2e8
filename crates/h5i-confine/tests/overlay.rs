//! An overlay as a workspace: what the box writes stays apart from what it was given.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use h5i_confine::{
    Access, HOME, HostFacts, Layout, OVERLAY_WORK, Outcome, Plan, Step, UPPER, WORKSPACE,
    try_overlay,
};
use h5i_policy::{GrantOrigin, HostPath, ReadGrant, ResolvedPolicy};
use h5i_testkit::{BoxDirs, HOST_ID, Need, have};

struct World {
    dirs: BoxDirs,
    lowers: Vec<PathBuf>,
}

fn policy() -> ResolvedPolicy {
    let mut policy = ResolvedPolicy::default();
    for path in ["/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"] {
        // Not every architecture has a /lib64.
        if fs::symlink_metadata(path).is_err() {
            continue;
        }
        let grant = ReadGrant::whole(GrantOrigin::System);
        policy.fs.read.insert(HostPath::new(path).unwrap(), grant);
    }
    policy
}

impl World {
    /// Two lower layers: `top/shared` hides `deep/shared`.
    fn new() -> Self {
        let dirs = BoxDirs::new().unwrap();
        let lowers: Vec<PathBuf> =
            ["top", "deep"].iter().map(|name| dirs.path().join(name)).collect();
        for lower in &lowers {
            fs::create_dir(lower).unwrap();
            fs::write(lower.join("shared"), lower.file_name().unwrap().as_encoded_bytes()).unwrap();
        }
        fs::create_dir(lowers[1].join("dir")).unwrap();
        fs::write(lowers[1].join("dir/file"), b"pristine").unwrap();
        for name in [UPPER, OVERLAY_WORK] {
            let path = dirs.path().join("area").join(name);
            fs::create_dir_all(&path).unwrap();
            dirs.give(&path).unwrap();
        }
        Self { dirs, lowers }
    }

    fn area(&self) -> PathBuf {
        self.dirs.path().join("area")
    }

    fn plan(&self) -> Plan {
        let mut layout = Layout::default()
            .overlay(self.lowers.clone(), self.area(), WORKSPACE)
            .place(self.dirs.home(), HOME, Access::Write)
            .prepared_roots(self.dirs.path().join("roots"));
        layout.host_id = self.dirs.host_id();
        Plan::for_host(&policy(), &layout).unwrap()
    }

    fn sh(&self, script: &str) -> String {
        let out = self.plan().command("/bin/sh").args(["-ec", script]).output().unwrap();
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.outcome, Outcome::Exited(0), "{script}: {told}");
        String::from_utf8(out.stdout).unwrap()
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn writes_go_to_the_upper_layer_and_the_lower_ones_stay() {
    if !have("writes_go_to_the_upper_layer_and_the_lower_ones_stay", Need::UserNamespaces) {
        return;
    }
    let world = World::new();
    world.sh("echo changed > dir/file; rm shared; echo new > dir/new");
    assert_eq!(read(&world.lowers[1].join("dir/file")), "pristine");
    assert_eq!(read(&world.lowers[0].join("shared")), "top");
    assert!(!world.lowers[1].join("dir/new").try_exists().unwrap());
    let upper = world.area().join(UPPER);
    assert_eq!(read(&upper.join("dir/file")), "changed\n");
    assert_eq!(read(&upper.join("dir/new")), "new\n");
    assert_eq!(fs::symlink_metadata(upper.join("shared")).unwrap().rdev(), 0);
}

#[test]
fn the_next_session_finds_what_the_last_one_wrote() {
    if !have("the_next_session_finds_what_the_last_one_wrote", Need::UserNamespaces) {
        return;
    }
    let world = World::new();
    assert_eq!(world.sh("cat shared; rm shared; mv dir/file dir/moved"), "top");
    assert_eq!(world.sh("ls; ls dir; cat dir/moved"), "dir\nmoved\npristine");
}

#[test]
fn files_are_the_boxs_own_and_no_path_of_the_host_shows() {
    if !have("files_are_the_boxs_own_and_no_path_of_the_host_shows", Need::UserNamespaces) {
        return;
    }
    let world = World::new();
    assert_eq!(world.sh("stat -c %u:%g shared dir dir/file"), "1000:1000\n".repeat(3));
    assert_eq!(world.sh("chmod 755 dir/file; stat -c %u:%g:%a dir/file"), "1000:1000:755\n");
    let mounts = world.sh("grep ' /work ' /proc/self/mountinfo");
    // A root caller's layers are mounted for a moment; an ordinary user's are named below what they
    // have in common.
    let layers = match rustix::process::geteuid().is_root() {
        true => "lowerdir=/run/.layers/0:/run/.layers/1,",
        false => "lowerdir=top:deep,upperdir=area/upper,",
    };
    assert!(mounts.contains(layers), "{mounts}");
    assert!(!mounts.contains(world.dirs.path().to_str().unwrap()), "{mounts}");
    assert_eq!(world.sh("ls -A /run | grep layers || echo none"), "none\n");
}

#[test]
fn the_plan_says_what_the_overlay_is_made_of() {
    let world = World::new();
    let words: Vec<String> = world.plan().steps().iter().map(Step::to_string).collect();
    assert!(words.contains(&"mount /work as an overlay of 3 layers".to_owned()), "{words:?}");
}

#[test]
fn the_trial_holds_where_an_overlay_works_and_fails_where_it_cannot_be_laid_out() {
    let name = "the_trial_holds_where_an_overlay_works_and_fails_where_it_cannot_be_laid_out";
    if !have(name, Need::UserNamespaces) {
        return;
    }
    let facts = HostFacts::read().unwrap();
    let dir = tempfile::tempdir().unwrap();
    try_overlay(&facts, HOST_ID, dir.path()).result.unwrap();
    // What the first trial left is in the way of a second.
    assert!(try_overlay(&facts, HOST_ID, dir.path()).result.is_err());
}
