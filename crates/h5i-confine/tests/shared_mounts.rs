//! A caller whose mounts are shared, as systemd leaves them: nothing is mounted across the boundary.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
#![allow(unsafe_code, reason = "gives the test's thread mounts of its own")]

use std::fs;

use h5i_confine::{Layout, Outcome, Plan, system_grants};
use h5i_policy::{GrantOrigin, HostPath, ReadGrant, ResolvedPolicy};
use h5i_testkit::{BoxDirs, Need, have};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};

/// Whether the roots are prepared ones.
#[derive(Clone, Copy, Debug)]
enum Root {
    Prepared,
    Mounted,
}

/// Mounts of the thread's own, shared among themselves as those of a usual host are.
fn share_mounts() {
    // SAFETY: takes a flag. It changes the calling thread only, which uses no path before.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0);
    let and_below = MountPropagationFlags::REC;
    mount_change("/", MountPropagationFlags::PRIVATE | and_below).unwrap();
    mount_change("/", MountPropagationFlags::SHARED | and_below).unwrap();
}

fn mounts() -> String {
    fs::read_to_string("/proc/thread-self/mountinfo").unwrap()
}

fn lives_apart(root: Root) {
    let (dirs, host) = (BoxDirs::new().unwrap(), tempfile::tempdir().unwrap());
    let granted = host.path().join("granted");
    for name in ["private", "late"] {
        fs::create_dir_all(granted.join(name)).unwrap();
    }
    let later = host.path().join("later");
    fs::create_dir(&later).unwrap();
    fs::write(granted.join("private/key"), "hidden").unwrap();
    fs::write(later.join("file"), "mounted later").unwrap();
    let mut policy = ResolvedPolicy::default();
    policy.fs.read = system_grants();
    let mut grant = ReadGrant::whole(GrantOrigin::Policy);
    grant.mask.insert("private".to_owned());
    policy.fs.read.insert(HostPath::new(granted.to_str().unwrap()).unwrap(), grant);
    let mut layout = Layout::new(dirs.work(), dirs.home());
    layout.host_id = dirs.host_id();
    if let Root::Prepared = root {
        layout = layout.prepared_roots(dirs.path().join("roots"));
    }

    let before = mounts();
    let session = Plan::for_host(&policy, &layout)
        .unwrap()
        .start(std::sync::Arc::new(h5i_confine::NoSink))
        .unwrap();
    assert_eq!(mounts(), before, "{root:?}: a mount of the box is the host's");
    assert_eq!(fs::read_to_string(granted.join("private/key")).unwrap(), "hidden", "{root:?}");

    let list = |name: &str| {
        let path = granted.join(name);
        let out = session.command("/bin/ls").arg(path).output().unwrap();
        assert_eq!(out.outcome, Outcome::Exited(0), "{root:?}");
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(list("private"), "", "{root:?}");
    mount_bind(&later, granted.join("late")).unwrap();
    assert_eq!(fs::read_to_string(granted.join("late/file")).unwrap(), "mounted later");
    assert_eq!(list("late"), "", "{root:?}: a mount of the host is the box's");
    rustix::mount::unmount(granted.join("late"), rustix::mount::UnmountFlags::DETACH).unwrap();
}

#[test]
fn where_mounts_are_shared_none_crosses_the_boundary() {
    let name = "where_mounts_are_shared_none_crosses_the_boundary";
    if !have(name, Need::UserNamespaces) || !have(name, Need::SecondUid) {
        return;
    }
    share_mounts();
    lives_apart(Root::Mounted);
    lives_apart(Root::Prepared);
}
