//! C1, C2, C4, J1: reading the host's files, and whose files there are.

use Expect::{Errno, Sees};
use Twin::{Differs, In, Like, Outside};

use crate::door::{Door, Expect, Twin, door, words};
use crate::world::{Variant, World};

pub(crate) fn doors(world: &World) -> Vec<Door> {
    let secret = world.host("secret/id_ed25519");
    let secret = secret.as_str();
    let own = world.work(Variant::Usual).display().to_string();
    let root = |prefix: &str| format!("{prefix}{secret}");
    vec![
        door(
            "C1a",
            "read a key of the host",
            &["read", secret],
            Errno(libc::ENOENT),
            In(Variant::Granted),
        ),
        door(
            "C1b",
            "list the directory of the box on the host",
            &["list", &own],
            Errno(libc::ENOENT),
            Outside,
        ),
        door(
            "C1c",
            "read /etc/shadow",
            &["read", "/etc/shadow"],
            Errno(libc::ENOENT),
            Like(words(&["read", "/etc/passwd"])),
        ),
        door(
            "C1d",
            "the box's users are its own",
            &["read", "/etc/group"],
            Sees("box:x:1000: nogroup:x:65534:".to_owned()),
            Differs,
        ),
        door(
            "C1e",
            "list the homes of the host",
            &["list", "/home"],
            Sees("box".to_owned()),
            Differs,
        ),
        door(
            "C1f",
            "list /root of the host",
            &["list", "/root"],
            Errno(libc::ENOENT),
            Like(words(&["list", "/home/box"])),
        ),
        door(
            "C2a",
            "through a symbolic link in the workspace",
            &["read-through-link", "/work", secret],
            Errno(libc::ENOENT),
            In(Variant::Granted),
        ),
        door(
            "C2b",
            "through /proc/self/root",
            &["read", &root("/proc/self/root")],
            Errno(libc::ENOENT),
            In(Variant::Granted),
        ),
        door(
            "C2c",
            "through /proc/1/root",
            &["read", &root("/proc/1/root")],
            Errno(libc::EACCES),
            Like(words(&["list", "/proc/self/root"])),
        ),
        door(
            "C2d",
            "through /proc/1/cwd",
            &["list", "/proc/1/cwd"],
            Errno(libc::EACCES),
            Like(words(&["list", "/proc/self/cwd"])),
        ),
        door(
            "C2e",
            "through /proc/1/fd",
            &["list", "/proc/1/fd"],
            Errno(libc::EACCES),
            Like(words(&["list", "/proc/self/fd"])),
        ),
        door(
            "C2f",
            "through what was left of the host's root",
            &["list", "/.host"],
            Errno(libc::ENOENT),
            Like(words(&["list", "/"])),
        ),
        door(
            "C2g",
            "through a hard link",
            &["link", "/usr/bin/env", "/work/env"],
            Errno(libc::EXDEV),
            Like(words(&["create", "/work/for-link"])),
        ),
        door(
            "C2h",
            "init's environment",
            &["read", "/proc/1/environ"],
            Errno(libc::EACCES),
            Like(words(&["read", "/proc/self/environ"])),
        ),
        door(
            "C2i",
            "init's memory",
            &["read", "/proc/1/mem"],
            Errno(libc::EACCES),
            Like(words(&["status", "Uid"])),
        ),
        door(
            "C4a",
            "descriptors of the first process",
            &["descriptors"],
            Sees("0 1 2".to_owned()),
            Like(words(&["kind", "1"])),
        ),
        door(
            "C4b",
            "what the descriptors are",
            &["kind", "0"],
            Sees("device".to_owned()),
            Like(words(&["kind", "2"])),
        ),
        door(
            "C1g",
            "a grant is what it says",
            &["read", "/etc/hostname"],
            Sees("box".to_owned()),
            Differs,
        ),
        door(
            "J1a",
            "the second box's workspace by its host path",
            &["list", &world.work(Variant::Second).display().to_string()],
            Errno(libc::ENOENT),
            Outside,
        ),
        door(
            "J1b",
            "own workspace is empty of the other's files",
            &["read", "/work/of-the-second"],
            Errno(libc::ENOENT),
            Twin::In(Variant::Second),
        ),
        door(
            "C1h",
            "the host's name",
            &["read", "/proc/sys/kernel/hostname"],
            Sees("box".to_owned()),
            Differs,
        ),
        door("C1i", "no /sys", &["list", "/sys"], Errno(libc::ENOENT), Outside),
    ]
}

/// What must not be reached from the root itself.
pub(crate) fn of_the_root(_: &World) -> Vec<Door> {
    let lib64 = if std::fs::symlink_metadata("/lib64").is_ok() { " lib64" } else { "" };
    let root = format!("bin dev etc home lib{lib64} opt proc run sbin tmp usr var work");
    vec![
        door("C2f", "above the root is the root", &["list", "/.."], Sees(root.clone()), Differs),
        door("C2f", "the root holds what it must", &["list", "/"], Sees(root), Differs),
        door(
            "C2f",
            "no way is left to the host",
            &["list", "/.host"],
            Errno(libc::ENOENT),
            Like(words(&["list", "/"])),
        ),
        door(
            "C2f",
            "no secret above the root",
            &["read", "/../etc/shadow"],
            Errno(libc::ENOENT),
            Like(words(&["read", "/../etc/passwd"])),
        ),
    ]
}
