//! C6, C9: device nodes, /proc.

use std::os::unix::fs::PermissionsExt as _;

use Expect::{Errno, Sees, Succeeds};
use Twin::{Like, LikeOutside, Outside};

use crate::door::{Door, Expect, Twin, door, words};
use crate::world::World;

pub(crate) fn doors(_: &World) -> Vec<Door> {
    let devices = "/dev/full=1:7 /dev/null=1:3 /dev/pts/ptmx=5:2 /dev/random=1:8 /dev/tty=5:0 \
                   /dev/urandom=1:9 /dev/zero=1:5";
    let none = || Sees(String::new());
    let mut doors = vec![
        door(
            "C6a",
            "device nodes",
            &["devices"],
            Sees(devices.to_owned()),
            Like(words(&["open-write", "/dev/null"])),
        ),
        door(
            "C6b",
            "/dev/kmsg",
            &["open-write", "/dev/kmsg"],
            Errno(libc::ENOENT),
            Like(words(&["open-write", "/dev/zero"])),
        ),
        door(
            "C6c",
            "the caller's terminal",
            &["open-write", "/dev/tty"],
            Errno(libc::ENXIO),
            Like(words(&["open-write", "/dev/pts/ptmx"])),
        ),
        door(
            "C9a",
            "files below /proc that open for writing",
            &["writable-below", "/proc"],
            none(),
            LikeOutside(words(&["open-write", "/proc/self/comm"])),
        ),
        door(
            "C9b",
            "a setting of the kernel",
            &["open-write", "/proc/sys/kernel/core_pattern"],
            Errno(libc::EROFS),
            Like(words(&["read", "/proc/sys/kernel/core_pattern"])),
        ),
        door(
            "C9c",
            "the caches",
            &["open-write", "/proc/sys/vm/drop_caches"],
            Errno(libc::EROFS),
            Like(words(&["read", "/proc/uptime"])),
        ),
        door(
            "C9d",
            "own score, the host's hint",
            &["open-write", "/proc/self/oom_score_adj"],
            Errno(libc::EROFS),
            Outside,
        ),
    ];
    for name in [
        "kcore",
        "keys",
        "key-users",
        "kallsyms",
        "cmdline",
        "kmsg",
        "timer_list",
        "sched_debug",
        "kpagecount",
        "kpageflags",
        "kpagecgroup",
    ] {
        let path = format!("/proc/{name}");
        if let Ok(found) = std::fs::symlink_metadata(&path) {
            // What everybody may read has the null device bound over it: reading gives nothing.
            // What only root may read is closed to a box by itself, which is never root's.
            let open_to_all = found.permissions().mode() & 0o004 != 0;
            let expected = if open_to_all { none() } else { Errno(libc::EACCES) };
            let twin = Like(words(&["read", "/proc/version"]));
            let claim = format!("{path} tells nothing");
            doors.push(door("C9e", &claim, &["read", &path], expected, twin));
        }
    }
    doors.push(door(
        "C9f",
        "the box's own files stay usable",
        &["create", "/run/new"],
        Succeeds,
        Like(words(&["create", "/tmp/new-b"])),
    ));
    doors
}
