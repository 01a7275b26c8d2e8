//! Attempts on other processes.

use super::{Attempt, number};
use crate::call::{A, Outcome, call, fork, in_child, leave, open, stay, wait};

pub(crate) const ALL: &[(&str, Attempt)] = &[
    ("ptrace-child", |_| ptrace_child()),
    ("traceme", |_| {
        done(in_child(|| call(libc::SYS_ptrace, &mut [A::N(0), A::N(0), A::N(0), A::N(0)])))
    }),
    ("ptrace", |a| {
        done(call(libc::SYS_ptrace, &mut [A::N(0x4206), A::N(number(a[0])), A::N(0), A::N(0)]))
    }),
    ("process_vm_readv", |a| vm(libc::SYS_process_vm_readv, a[0])),
    ("process_vm_writev", |a| vm(libc::SYS_process_vm_writev, a[0])),
    ("pidfd_getfd", |_| {
        let own = i64::from(std::process::id());
        let pidfd = call(libc::SYS_pidfd_open, &mut [A::N(own), A::N(0)])?;
        done(call(libc::SYS_pidfd_getfd, &mut [A::N(pidfd), A::N(1), A::N(0)]))
    }),
    ("kill", |a| done(call(libc::SYS_kill, &mut [A::N(number(a[0])), A::N(number(a[1]))]))),
    ("kill-own-child", |_| kill_own_child()),
    ("pidfd-kill", |a| {
        let pidfd = open(&format!("/proc/{}", a[0]), libc::O_DIRECTORY)?;
        done(call(
            libc::SYS_pidfd_send_signal,
            &mut [A::N(pidfd), A::N(number(a[1])), A::N(0), A::N(0)],
        ))
    }),
    ("init-alive", |_| Ok((std::path::Path::new("/proc/1").is_dir()).to_string())),
    ("set-limit", |a| {
        // RLIMIT_NOFILE as it is: harmless to whom it is set for.
        let mut bound = [0u8; 16];
        call(libc::SYS_prlimit64, &mut [A::N(0), A::N(7), A::N(0), A::Out(&mut bound)])?;
        done(call(libc::SYS_prlimit64, &mut [A::N(number(a[0])), A::N(7), A::In(&bound), A::N(0)]))
    }),
    ("set-priority", |a| {
        done(call(libc::SYS_setpriority, &mut [A::N(0), A::N(number(a[0])), A::N(19)]))
    }),
    ("set-affinity", |a| {
        done(call(
            libc::SYS_sched_setaffinity,
            &mut [A::N(number(a[0])), A::N(8), A::In(&[0xff; 8])],
        ))
    }),
    ("set-scheduler", |a| {
        done(call(libc::SYS_sched_setscheduler, &mut [A::N(number(a[0])), A::N(0), A::In(&[0; 4])]))
    }),
    ("spin", |_| {
        loop {
            std::hint::spin_loop();
        }
    }),
    ("others", |_| Ok(others().iter().map(u32::to_string).collect::<Vec<_>>().join(" "))),
    ("commands", |_| Ok(commands())),
];

fn done(result: Result<i64, i32>) -> Outcome {
    result.map(|_| String::new())
}

/// Attaches to a child of its own.
fn ptrace_child() -> Outcome {
    let pid = fork();
    if pid == 0 {
        stay();
    }
    // PTRACE_SEIZE does not stop the child.
    let result = call(libc::SYS_ptrace, &mut [A::N(0x4206), A::N(pid.into()), A::N(0), A::N(0)]);
    call(libc::SYS_kill, &mut [A::N(pid.into()), A::N(9)]).ok();
    wait(pid);
    done(result)
}

fn kill_own_child() -> Outcome {
    let pid = fork();
    if pid == 0 {
        stay();
    }
    let result = call(libc::SYS_kill, &mut [A::N(pid.into()), A::N(9)]);
    if result.is_ok() { Ok(format!("signal {}", wait(pid) & 0x7f)) } else { leave(1) }
}

/// Reads or writes one byte of a process (`self` for the calling one) at an address of this one.
fn vm(nr: i64, pid: &str) -> Outcome {
    let pid = if pid == "self" { i64::from(std::process::id()) } else { number(pid) };
    let mut byte = [0u8; 1];
    let mut other = [0u8; 1];
    let part = |bytes: &mut [u8; 1]| {
        let mut part = [0u8; 16];
        part[..8].copy_from_slice(&(bytes.as_mut_ptr() as u64).to_ne_bytes());
        part[8] = 1;
        part
    };
    let (local, remote) = (part(&mut byte), part(&mut other));
    done(call(nr, &mut [A::N(pid), A::In(&local), A::N(1), A::In(&remote), A::N(1), A::N(0)]))
}

/// The processes that /proc shows, by number, other than init and this one.
fn others() -> Vec<u32> {
    let own = std::process::id();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != 1 && *pid != own)
        .collect()
}

/// Command lines of all processes but this one.
fn commands() -> String {
    let lines = others()
        .into_iter()
        .chain([1])
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
    lines.collect::<Vec<_>>().join(" ").replace(['\n', '\0'], " ")
}
