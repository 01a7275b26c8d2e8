//! D2, D10: other processes.

use Expect::{Errno, Refused, Sees, SeesNone};
use Twin::{Differs, In, Like, Outside};

use crate::door::{Door, Expect, Twin, door, words};
use crate::world::{Variant, World};

pub(crate) fn doors(_: &World) -> Vec<Door> {
    let own_child = || Like(words(&["kill-own-child"]));
    let kill = |signal: i32| signal.to_string();
    let me = std::process::id().to_string();
    let mut doors = vec![
        door("D2a", "trace a child", &["ptrace-child"], Refused("ptrace"), In(Variant::Debuggers)),
        door("D2a", "be traced", &["traceme"], Refused("ptrace"), Outside),
        door(
            "D2b",
            "read memory",
            &["process_vm_readv", "self"],
            Refused("process_vm_readv"),
            In(Variant::Debuggers),
        ),
        door(
            "D2b",
            "write memory",
            &["process_vm_writev", "self"],
            Refused("process_vm_writev"),
            Outside,
        ),
        door("D2c", "take a descriptor", &["pidfd_getfd"], Refused("pidfd_getfd"), Outside),
        door(
            "D2d",
            "trace init with debuggers allowed",
            &["ptrace", "1"],
            Errno(libc::EPERM),
            Like(words(&["ptrace-child"])),
        )
        .in_box(Variant::Debuggers),
        door(
            "D2d",
            "read init's memory with debuggers allowed",
            &["process_vm_readv", "1"],
            Errno(libc::EPERM),
            Like(words(&["process_vm_readv", "self"])),
        )
        .in_box(Variant::Debuggers),
        door(
            "D2e",
            "kill init",
            &["kill", "1", &kill(libc::SIGKILL)],
            Refused("kill"),
            own_child(),
        ),
        door(
            "D2e",
            "stop init",
            &["kill", "1", &kill(libc::SIGSTOP)],
            Refused("kill"),
            own_child(),
        ),
        door("D2f", "signal the supervisor", &["kill", &me, "0"], Errno(libc::ESRCH), Outside),
    ];
    for (name, nr, args) in [
        ("tkill", libc::SYS_tkill, vec!["1", "9"]),
        ("tgkill", libc::SYS_tgkill, vec!["1", "1", "9"]),
        ("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, vec!["1", "9", "0"]),
        ("rt_tgsigqueueinfo", libc::SYS_rt_tgsigqueueinfo, vec!["1", "1", "9", "0"]),
        ("pidfd_open", libc::SYS_pidfd_open, vec!["1", "0"]),
    ] {
        let nr = nr.to_string();
        let attempt: Vec<&str> = ["raw", &nr].into_iter().chain(args).collect();
        doors.push(door("D2g", &format!("init by {name}"), &attempt, Refused(name), own_child()));
    }
    for (attempt, name) in [
        ("set-limit", "prlimit64"),
        ("set-priority", "setpriority"),
        ("set-affinity", "sched_setaffinity"),
        ("set-scheduler", "sched_setscheduler"),
    ] {
        let claim = format!("init's bounds by {name}");
        let own = Like(words(&[attempt, "0"]));
        doors.push(door("D2h", &claim, &[attempt, "1"], Refused(name), own));
    }
    // The kernel lets the signal be sent, and init never gets it.
    let gone = |signal| words(&["pidfd-kill", "1", signal]);
    doors.push(door(
        "D2i",
        "init by its directory",
        &["init-alive"],
        Sees("true".to_owned()),
        Twin::Like(gone("9")),
    ));
    doors.push(door(
        "D2i",
        "init after that",
        &["init-alive"],
        Sees("true".to_owned()),
        Twin::Like(gone("19")),
    ));
    doors.push(door("D10a", "processes of others", &["others"], Sees(String::new()), Differs));
    let told = vec!["target/debug".to_owned(), "doors/deps".to_owned(), "su tester".to_owned()];
    let seen = Differs;
    doors.push(door("D10b", "the host's command lines", &["commands"], SeesNone(told), seen));
    doors
}
