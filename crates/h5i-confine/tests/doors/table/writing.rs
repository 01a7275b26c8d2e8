//! C3: writing outside of the grants. The private root is read-only, and Landlock stands behind it:
//! whichever of the two the kernel asks first gives the errno.

use Expect::{Errno, Unwritable};
use Twin::{In, Like, LikeOutside, Outside};

use crate::door::{Door, Expect, Twin, door, words};
use crate::world::{Variant, World};

/// Each way to change a file, on a readable file that is not writable, with the workspace as twin.
pub(crate) fn doors(world: &World) -> Vec<Door> {
    let written = world.host("written/file");
    let beside = world.host("written/new");
    let rofs = Errno(libc::EROFS);
    let own = "/work/own-file";
    vec![
        door(
            "C3a",
            "open a system file for writing",
            &["open-write", "/usr/bin/env"],
            Errno(libc::EACCES),
            Like(words(&["open-write", "/work/own-file"])),
        ),
        door(
            "C3b",
            "create beside a system file",
            &["create", "/usr/bin/h5i-new"],
            rofs.clone(),
            Like(words(&["create", "/work/new-a"])),
        ),
        door(
            "C3c",
            "truncate a system file",
            &["truncate", "/usr/bin/env"],
            Errno(libc::EACCES),
            Like(words(&["truncate", own])),
        ),
        door(
            "C3d",
            "rename a system file",
            &["rename", "/usr/bin/env", "/usr/bin/env2"],
            rofs.clone(),
            Like(words(&["rename", "/work/for-rename", "/work/renamed"])),
        ),
        door(
            "C3e",
            "link a system file",
            &["link", "/usr/bin/env", "/usr/bin/env2"],
            rofs.clone(),
            Like(words(&["link", own, "/work/linked"])),
        ),
        door(
            "C3f",
            "change a system file's mode",
            &["chmod", "/usr/bin/env"],
            rofs.clone(),
            Like(words(&["chmod", own])),
        ),
        door(
            "C3g",
            "change a system file's times",
            &["utimes", "/usr/bin/env"],
            rofs.clone(),
            Like(words(&["utimes", own])),
        ),
        door(
            "C3h",
            "set an attribute of a system file",
            &["setxattr", "/usr/bin/env"],
            rofs.clone(),
            Like(words(&["setxattr", own])),
        ),
        door(
            "C3i",
            "make a directory among system files",
            &["mkdir", "/usr/bin/h5i-new"],
            rofs.clone(),
            Like(words(&["mkdir", "/work/new-dir"])),
        ),
        door(
            "C3j",
            "unlink a system file",
            &["unlink", "/usr/bin/env"],
            rofs.clone(),
            Like(words(&["unlink", "/work/for-unlink"])),
        ),
        door(
            "C3k",
            "create in the root",
            &["create", "/h5i-new"],
            rofs.clone(),
            Like(words(&["create", "/tmp/new"])),
        ),
        door(
            "C3l",
            "create in /etc",
            &["create", "/etc/h5i-new"],
            rofs.clone(),
            Like(words(&["create", "/home/box/new"])),
        ),
        door(
            "C3m",
            "replace the box's passwd",
            &["open-write", "/etc/passwd"],
            Unwritable,
            Like(words(&["read", "/etc/passwd"])),
        ),
        door(
            "C3n",
            "create in /dev",
            &["create", "/dev/new"],
            rofs.clone(),
            Like(words(&["create", "/dev/shm/new"])),
        ),
        door(
            "C3o",
            "write a host file without a grant",
            &["open-write", &written],
            Errno(libc::ENOENT),
            In(Variant::Granted),
        ),
        door(
            "C3p",
            "create a host file without a grant",
            &["create", &beside],
            Errno(libc::ENOENT),
            In(Variant::Granted),
        ),
        door(
            "C3q",
            "write in a grant for reading",
            &["open-write", &world.host("secret/canary")],
            rofs.clone(),
            Outside,
        )
        .in_box(Variant::Granted),
        door(
            "C3r",
            "a device node in the workspace",
            &["mknod", "/work/kmsg", "1", "11"],
            Errno(libc::EACCES),
            Like(words(&["create", "/work/no-node"])),
        ),
        door(
            "C3s",
            "create in a placement for reading",
            &["create", "/opt/doors/new"],
            rofs,
            LikeOutside(words(&["create", &world.host("tools-not")])),
        ),
    ]
}
