//! D1, D3, D4, D5: capabilities, the kernel's rarer doors, foreign entries, terminals.

use Expect::{Errno, Killed, Refused, Sees};
use Twin::{Differs, DiffersInOwnNamespaces, Filter, In, Like, Outside};

use crate::door::{Door, Expect, Twin, door, words};
use crate::world::{Variant, World};

/// `getpid`, which every filter lets pass.
const PASSES: (i64, [u64; 3]) = (libc::SYS_getpid, [0; 3]);
/// `modify_ldt` of x86_64; `libc` names it there only.
const MODIFY_LDT: i64 = 154;

pub(crate) fn doors(_: &World) -> Vec<Door> {
    let mut doors = state();
    doors.extend(refused_whole());
    doors.extend(other());
    doors
}

fn state() -> Vec<Door> {
    let mut doors = Vec::new();
    for variant in [Variant::Usual, Variant::HostNetwork, Variant::Debuggers] {
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            // Nobody has inheritable or ambient ones who did not ask for them.
            let twin = match set {
                "CapInh" | "CapAmb" => Like(words(&["status", "Uid"])),
                _ => DiffersInOwnNamespaces,
            };
            let none = Sees("0".repeat(16));
            doors.push(door("D1a", set, &["status", set], none, twin).in_box(variant));
        }
        for (line, value) in [("NoNewPrivs", "1"), ("Seccomp", "2")] {
            let twin = Differs;
            let expect = Sees(value.to_owned());
            doors.push(door("D1b", line, &["status", line], expect, twin).in_box(variant));
        }
    }
    let groups = Like(words(&["status", "Gid"]));
    doors.push(door(
        "D1c",
        "ids in the box",
        &["status", "Uid"],
        Sees("1000\t1000\t1000\t1000".into()),
        groups,
    ));
    doors
}

/// Calls that the box refuses whatever their arguments.
fn refused_whole() -> Vec<Door> {
    let calls: &[(&'static str, i64)] = &[
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("kexec_load", libc::SYS_kexec_load),
        ("kexec_file_load", libc::SYS_kexec_file_load),
        ("init_module", libc::SYS_init_module),
        ("finit_module", libc::SYS_finit_module),
        ("delete_module", libc::SYS_delete_module),
        ("syslog", libc::SYS_syslog),
        ("reboot", libc::SYS_reboot),
        ("swapon", libc::SYS_swapon),
        ("swapoff", libc::SYS_swapoff),
        ("acct", libc::SYS_acct),
        ("quotactl", libc::SYS_quotactl),
        ("sethostname", libc::SYS_sethostname),
        ("setdomainname", libc::SYS_setdomainname),
        ("fanotify_init", libc::SYS_fanotify_init),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("settimeofday", libc::SYS_settimeofday),
        ("clock_settime", libc::SYS_clock_settime),
        ("request_key", libc::SYS_request_key),
        ("setns", libc::SYS_setns),
        ("process_madvise", libc::SYS_process_madvise),
        ("process_mrelease", libc::SYS_process_mrelease),
        ("vhangup", libc::SYS_vhangup),
        ("lookup_dcookie", libc::SYS_lookup_dcookie),
    ];
    calls
        .iter()
        .map(|(name, nr)| {
            // Descriptors of -1 and null pointers: outside, too, nothing comes of it.
            let attempt = ["raw", &nr.to_string(), "-1", "0", "0", "0", "0"];
            let twin = Filter { refused: (*nr, [0; 3]), passes: PASSES };
            door("D3a", name, &attempt, Refused(name), twin)
        })
        .collect()
}

fn other() -> Vec<Door> {
    let personality = libc::SYS_personality;
    let number = personality.to_string();
    let tiocsti = 0x5412.to_string();
    let mut doors = vec![
        door("D3b", "add_key", &["add_key"], Refused("add_key"), Outside),
        door("D3b", "keyctl", &["keyctl"], Refused("keyctl"), Outside),
        door("D3c", "io_uring", &["io_uring"], Errno(libc::ENOSYS), Outside),
        // Memory files that are counted can be had.
        door(
            "D3c",
            "memfd_secret",
            &["raw", &libc::SYS_memfd_secret.to_string(), "0"],
            Errno(libc::ENOSYS),
            Twin::LikeOutside(vec!["memfd-exec".to_owned()]),
        ),
        door(
            "D3d",
            "randomisation off",
            &["raw", &number, "262144"],
            Refused("personality"),
            In(Variant::Debuggers),
        ),
        door("D3d", "another ABI", &["raw", &number, "8"], Refused("personality"), Outside)
            .in_box(Variant::Debuggers),
        door(
            "D3d",
            "asking for the personality",
            &["raw", &number, "4294967295"],
            Sees(String::new()),
            Outside,
        ),
        // PR_SET_MM_MAP_SIZE, and PR_GET_DUMPABLE beside it.
        door(
            "D3n",
            "marks of memory that are moved",
            &["raw", &libc::SYS_prctl.to_string(), "35", "15", "0"],
            Refused("prctl"),
            Like(words(&["raw", &libc::SYS_prctl.to_string(), "3"])),
        ),
        door(
            "D4b",
            "a number beyond the table",
            &["raw", "470"],
            Errno(libc::ENOSYS),
            Like(words(&["raw", &libc::SYS_getpid.to_string()])),
        ),
        door(
            "D4b",
            "a number beyond all",
            &["raw", "4000"],
            Errno(libc::ENOSYS),
            Like(words(&["raw", &libc::SYS_getpid.to_string()])),
        ),
        door(
            "D5a",
            "TIOCSTI on the box's own terminal",
            &["terminal-ioctl", &tiocsti],
            Refused("ioctl"),
            Like(words(&["terminal-ioctl", &0x5413.to_string()])),
        ),
        door(
            "D5b",
            "TIOCLINUX",
            &["terminal-ioctl", &0x541c.to_string()],
            Refused("ioctl"),
            Like(words(&["terminal-ioctl", &0x5413.to_string()])),
        ),
        door(
            "D5c",
            "TIOCSETD",
            &["terminal-ioctl", &0x5423.to_string()],
            Refused("ioctl"),
            Outside,
        ),
        door(
            "D3l",
            "a lease on a file, which others would wait for",
            &["lease", "1024"],
            Refused("fcntl"),
            Outside,
        ),
        // F_GETLEASE, F_GETFL: its neighbours.
        door("D3m", "a lease, asked for", &["lease", "1025"], Sees(String::new()), Outside),
        door("D3m", "flags of a file", &["lease", "3"], Sees(String::new()), Outside),
        door("D11a", "a second listener", &["second-listener"], Errno(libc::EBUSY), Outside),
        door("D11b", "a filter of its own", &["own-filter"], Sees(String::new()), Outside),
        door(
            "D11c",
            "a program in memory is confined like any other",
            &["memfd-exec"],
            Sees("errno 1".to_owned()),
            Outside,
        ),
        door(
            "D3e",
            "the clock, asked",
            &["raw", &libc::SYS_adjtimex.to_string(), "0"],
            Errno(libc::EFAULT),
            Twin::Like(words(&["raw", &libc::SYS_getpid.to_string()])),
        ),
    ];
    if cfg!(target_arch = "x86_64") {
        doors.push(door("D4a", "the 32-bit entry", &["i386"], Killed(libc::SIGSYS), Outside));
        let passes = Filter { refused: (MODIFY_LDT, [0; 3]), passes: PASSES };
        doors.push(door(
            "D4c",
            "x32's numbers",
            &["x32"],
            Errno(libc::ENOSYS),
            Like(words(&["raw", &libc::SYS_getpid.to_string()])),
        ));
        doors.push(door(
            "D3f",
            "modify_ldt",
            &["raw", &MODIFY_LDT.to_string(), "0", "0", "0"],
            Refused("modify_ldt"),
            passes,
        ));
    }
    doors
}
