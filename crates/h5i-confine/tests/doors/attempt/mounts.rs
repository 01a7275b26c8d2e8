//! Attempts on mounts and namespaces.

use super::{Attempt, number};
use crate::call::{A, AT_FDCWD, Outcome, call, in_child};

pub(crate) const ALL: &[(&str, Attempt)] = &[
    ("mount", |_| done(mount_tmpfs("/tmp"))),
    ("umount2", |_| {
        // Where a namespace of its own allows it, something must be there to be unmounted.
        let mounted = mount_tmpfs("/tmp");
        let result = call(libc::SYS_umount2, &mut [A::S("/tmp"), A::N(0)]);
        done(mounted.and(result).or(result))
    }),
    ("pivot_root", |_| {
        let prepared = mount_tmpfs("/tmp");
        if prepared.is_ok() {
            std::env::set_current_dir("/tmp").unwrap();
        }
        done(call(libc::SYS_pivot_root, &mut [A::S("."), A::S(".")]))
    }),
    ("open_tree", |_| {
        done(call(libc::SYS_open_tree, &mut [A::N(AT_FDCWD), A::S("/tmp"), A::N(1)]))
    }),
    ("move_mount", |_| {
        let tree = call(libc::SYS_open_tree, &mut [A::N(AT_FDCWD), A::S("/usr"), A::N(1)]);
        let tree = tree.unwrap_or(-1);
        let args = &mut [A::N(tree), A::S(""), A::N(AT_FDCWD), A::S("/tmp"), A::N(4)];
        done(call(libc::SYS_move_mount, args))
    }),
    ("fsopen", |_| done(call(libc::SYS_fsopen, &mut [A::S("tmpfs"), A::N(0)]))),
    ("fsmount", |_| {
        let fs = call(libc::SYS_fsopen, &mut [A::S("tmpfs"), A::N(0)]).unwrap_or(-1);
        // FSCONFIG_CMD_CREATE; refused as well where fsopen is.
        let created = call(libc::SYS_fsconfig, &mut [A::N(fs), A::N(6), A::N(0), A::N(0), A::N(0)]);
        let result = call(libc::SYS_fsmount, &mut [A::N(fs), A::N(0), A::N(0)]);
        done(created.and(result).or(result))
    }),
    ("fspick", |_| {
        let mounted = mount_tmpfs("/tmp");
        let result = call(libc::SYS_fspick, &mut [A::N(AT_FDCWD), A::S("/tmp"), A::N(0)]);
        done(mounted.and(result).or(result))
    }),
    ("mount_setattr", |_| {
        let mut attributes = [0u8; 32];
        attributes[0] = 2; // MOUNT_ATTR_NOSUID
        let args = &mut [A::N(AT_FDCWD), A::S("/"), A::N(0), A::In(&attributes), A::N(32)];
        done(call(libc::SYS_mount_setattr, args))
    }),
    ("chroot", |_| done(call(libc::SYS_chroot, &mut [A::S("/")]))),
    ("unshare", |a| done(in_child(|| call(libc::SYS_unshare, &mut [A::N(number(a[0]))])))),
    ("clone", |a| done(clone(number(a[0])))),
    ("clone3", |_| done(clone3())),
];

/// Gives the calling process a user and a mount namespace of its own, outside of any box: the
/// twin's way to capabilities that allow what the box refuses.
pub(crate) fn own_namespaces() -> Result<(), i32> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let flags = i64::from(libc::CLONE_NEWUSER | libc::CLONE_NEWNS);
    call(libc::SYS_unshare, &mut [A::N(flags)])?;
    std::fs::write("/proc/self/setgroups", "deny").map_err(|e| crate::call::of(&e))?;
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1")).map_err(|e| crate::call::of(&e))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1")).map_err(|e| crate::call::of(&e))?;
    let private = i64::try_from(libc::MS_REC | libc::MS_PRIVATE).unwrap();
    let args = &mut [A::N(0), A::S("/"), A::N(0), A::N(private), A::N(0)];
    call(libc::SYS_mount, args).map(|_| ())
}

fn done(result: Result<i64, i32>) -> Outcome {
    result.map(|_| String::new())
}

fn mount_tmpfs(target: &str) -> Result<i64, i32> {
    call(libc::SYS_mount, &mut [A::S("none"), A::S(target), A::S("tmpfs"), A::N(0), A::N(0)])
}

/// `clone` with the flags of a new namespace, as fork otherwise.
fn clone(flags: i64) -> Result<i64, i32> {
    let flags = flags | i64::from(libc::SIGCHLD);
    let pid = call(libc::SYS_clone, &mut [A::N(flags), A::N(0), A::N(0), A::N(0), A::N(0)])?;
    if pid == 0 {
        crate::call::leave(0);
    }
    crate::call::wait(i32::try_from(pid).unwrap());
    Ok(pid)
}

fn clone3() -> Result<i64, i32> {
    // struct clone_args of its first size, 64 bytes: exit_signal is the fifth word.
    let mut args = [0u8; 64];
    args[32] = u8::try_from(libc::SIGCHLD).unwrap();
    let pid = call(libc::SYS_clone3, &mut [A::In(&args), A::N(64)])?;
    if pid == 0 {
        crate::call::leave(0);
    }
    crate::call::wait(i32::try_from(pid).unwrap());
    Ok(pid)
}
