//! Attempts on the kernel's rarer doors.

use super::{Attempt, number};
use crate::call::{A, Outcome, call, in_child, open};

pub(crate) const ALL: &[(&str, Attempt)] = &[
    // A call by number with numbers for arguments.
    ("raw", |a| {
        let mut args: Vec<A<'_>> = a[1..].iter().map(|n| A::N(number(n))).collect();
        done(call(number(a[0]), &mut args))
    }),
    ("io_uring", |_| done(call(libc::SYS_io_uring_setup, &mut [A::N(1), A::Out(&mut [0; 120])]))),
    ("add_key", |_| {
        let args = &mut [A::S("user"), A::S("h5i"), A::In(b"x"), A::N(1), A::N(-2)];
        done(call(libc::SYS_add_key, args))
    }),
    ("keyctl", |_| done(call(libc::SYS_keyctl, &mut [A::N(0), A::N(-3), A::N(0)]))),
    ("second-listener", |_| second_listener()),
    ("own-filter", |_| own_filter()),
    ("i386", |_| i386()),
    ("x32", |_| done(call(0x4000_0000 | libc::SYS_getpid, &mut []))),
    ("terminal-ioctl", |a| terminal_ioctl(number(a[0]))),
    ("memfd-exec", |_| memfd_exec()),
    // A command of fcntl(2) on a file of its own, open for reading, with F_RDLCK.
    ("lease", |a| {
        let path = format!("/tmp/lease-{}", std::process::id());
        std::fs::write(&path, "x").unwrap();
        let file = open(&path, libc::O_RDONLY)?;
        let leased = call(libc::SYS_fcntl, &mut [A::N(file), A::N(number(a[0])), A::N(0)]);
        std::fs::remove_file(&path).unwrap();
        done(leased)
    }),
    ("status", |a| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix(a[0])?.strip_prefix(':'));
        Ok(line.unwrap_or("absent").trim().to_owned())
    }),
    ("euid", |_| Ok(rustix::process::geteuid().as_raw().to_string())),
];

fn done(result: Result<i64, i32>) -> Outcome {
    result.map(|_| String::new())
}

/// A filter of one instruction, `RET_ALLOW`, as `struct sock_fprog`.
fn allow_all(instruction: &[u8; 8]) -> [u8; 16] {
    let mut program = [0u8; 16];
    program[0] = 1;
    program[8..].copy_from_slice(&(instruction.as_ptr() as u64).to_ne_bytes());
    program
}

fn install(flags: i64) -> Outcome {
    let instruction = [6, 0, 0, 0, 0, 0, 0xff, 0x7f]; // BPF_RET, SECCOMP_RET_ALLOW
    let program = allow_all(&instruction);
    call(libc::SYS_prctl, &mut [A::N(38), A::N(1), A::N(0), A::N(0), A::N(0)])?;
    done(call(libc::SYS_seccomp, &mut [A::N(1), A::N(flags), A::In(&program)]))
}

/// `SECCOMP_FILTER_FLAG_NEW_LISTENER`.
fn second_listener() -> Outcome {
    install(8)
}

/// A nested sandbox may add filters of its own.
fn own_filter() -> Outcome {
    install(0)
}

/// `getpid` by the 32-bit entry. Success is the calling process's own id.
#[cfg(target_arch = "x86_64")]
fn i386() -> Outcome {
    done(in_child(|| {
        let mut result: i32 = 20;
        // SAFETY: the 32-bit getpid (20) takes no argument and touches no memory; the kernel
        // preserves the registers that are not named.
        unsafe {
            std::arch::asm!("int 0x80", inout("eax") result, out("r8") _, out("r9") _,
                out("r10") _, out("r11") _);
        }
        if result > 0 { Ok(0) } else { Err(-result) }
    }))
}

#[cfg(not(target_arch = "x86_64"))]
fn i386() -> Outcome {
    Err(libc::ENOSYS)
}

/// An ioctl on a terminal of the box's own, made the controlling one of a new session.
fn terminal_ioctl(request: i64) -> Outcome {
    done(in_child(|| {
        call(libc::SYS_setsid, &mut [])?;
        let master = crate::call::open("/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY)?;
        call(libc::SYS_ioctl, &mut [A::N(master), A::N(0x4004_5431), A::In(&[0; 4])])?;
        let flags = i64::from(libc::O_RDWR);
        let terminal = call(libc::SYS_ioctl, &mut [A::N(master), A::N(0x5441), A::N(flags)])?;
        call(libc::SYS_ioctl, &mut [A::N(terminal), A::N(0x540e), A::N(0)])?;
        call(libc::SYS_ioctl, &mut [A::N(terminal), A::N(request), A::Out(&mut [0; 64])])
    }))
}

/// Executes this very program from a memfd: allowed, and confined like everything else.
fn memfd_exec() -> Outcome {
    let fd = call(libc::SYS_memfd_create, &mut [A::S("x"), A::N(1)])?;
    let program = std::fs::read("/proc/self/exe").map_err(|e| crate::call::of(&e))?;
    let path = format!("/proc/self/fd/{fd}");
    std::fs::write(&path, program).map_err(|e| crate::call::of(&e))?;
    let output =
        std::process::Command::new(path).args(["attempt", "unshare", "268435456"]).output();
    let output = output.map_err(|e| crate::call::of(&e))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
