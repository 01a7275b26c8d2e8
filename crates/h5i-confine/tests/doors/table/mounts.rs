//! C5: mounts and namespaces.

use Expect::{Errno, Refused};
use Twin::{Outside, OwnNamespaces};

use crate::door::{Door, Expect, Twin, door};
use crate::world::World;

pub(crate) fn doors(_: &World) -> Vec<Door> {
    let mut doors: Vec<Door> = [
        "mount",
        "umount2",
        "open_tree",
        "move_mount",
        "fsopen",
        "fsmount",
        "fspick",
        "mount_setattr",
        "chroot",
        "pivot_root",
    ]
    .into_iter()
    .map(|name| door("C5a", name, &[name], Refused(name), OwnNamespaces))
    .collect();
    let namespaces = [
        ("user", libc::CLONE_NEWUSER),
        ("mount", libc::CLONE_NEWNS),
        ("pid", libc::CLONE_NEWPID),
        ("ipc", libc::CLONE_NEWIPC),
        ("uts", libc::CLONE_NEWUTS),
        ("net", libc::CLONE_NEWNET),
        ("cgroup", libc::CLONE_NEWCGROUP),
    ];
    for (name, flag) in namespaces {
        let flag = flag.to_string();
        let twin = || if name == "user" { Outside } else { OwnNamespaces };
        let claim = format!("a new {name} namespace by unshare");
        doors.push(door("C5b", &claim, &["unshare", &flag], Refused("unshare"), twin()));
        let claim = format!("a new {name} namespace by clone");
        doors.push(door("C5c", &claim, &["clone", &flag], Refused("clone"), twin()));
    }
    doors.push(door("C5d", "clone3", &["clone3"], Errno(libc::ENOSYS), Outside));
    doors
}
