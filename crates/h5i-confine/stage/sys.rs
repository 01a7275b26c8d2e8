//! Raw system calls of the stage: no libc, no errno, a negative result is the error.

use core::arch::asm;

#[cfg(target_arch = "aarch64")]
pub use crate::numbers::aarch64 as nr;
#[cfg(target_arch = "x86_64")]
pub use crate::numbers::x86_64 as nr;

pub const PIDFD_OPEN: usize = 434;
pub const CLOSE_RANGE: usize = 436;

pub const EINTR: isize = 4;
pub const ENOENT: isize = 2;
pub const EACCES: isize = 13;
pub const ENOTDIR: isize = 20;

/// One system call with six arguments.
///
/// # Safety
/// The arguments must be what the kernel expects of call `n`; pointers among them must be valid for
/// what that call reads and writes.
#[cfg(target_arch = "x86_64")]
pub unsafe fn call(n: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller vouches for the arguments; rcx and r11 are declared as clobbered.
    unsafe {
        asm!("syscall", inlateout("rax") n as isize => result, in("rdi") a[0], in("rsi") a[1],
            in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// One system call with six arguments.
///
/// # Safety
/// The arguments must be what the kernel expects of call `n`; pointers among them must be valid for
/// what that call reads and writes.
#[cfg(target_arch = "aarch64")]
pub unsafe fn call(n: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller vouches for the arguments; the kernel preserves all other registers.
    unsafe {
        asm!("svc 0", in("x8") n, inlateout("x0") a[0] as isize => result, in("x1") a[1],
            in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5], options(nostack));
    }
    result
}

/// A call that is repeated while a signal interrupts it.
///
/// # Safety
/// As for [`call`].
pub unsafe fn call_again(n: usize, a: [usize; 6]) -> isize {
    loop {
        // SAFETY: the caller vouches for the arguments; repeating after EINTR has no effect.
        let result = unsafe { call(n, a) };
        if result != -EINTR {
            return result;
        }
    }
}

/// Ends the process, by the end of its only thread: `exit_group` waits for the supervisor, which may
/// be gone, or for whoever has the filter's listener, which may be this very process.
pub fn exit(code: usize) -> ! {
    loop {
        // SAFETY: exit takes a number and does not return.
        let _ = unsafe { call(nr::EXIT, [code, 0, 0, 0, 0, 0]) };
    }
}

/// Ends a run's process before the supervisor's eyes, if it is there to see it.
pub fn exit_seen(code: usize) -> ! {
    // SAFETY: exit_group takes a number; it returns when nobody listens any more.
    let _ = unsafe { call(nr::EXIT_GROUP, [code, 0, 0, 0, 0, 0]) };
    exit(code)
}

/// Closes a descriptor; an error leaves nothing to be done.
pub fn close(fd: i32) {
    if fd >= 0 {
        // SAFETY: close takes a number; the caller gives up the descriptor.
        let _ = unsafe { call(nr::CLOSE, [fd as usize, 0, 0, 0, 0, 0]) };
    }
}

// The compiler may turn copies and fills into calls of these; there is no C library to have them.

/// C `memcpy`.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    let mut i = 0;
    while i < n {
        // SAFETY: i < n, and the caller vouches for n bytes at both; volatile so that the loop is
        // not turned into a call of this very function.
        unsafe { to.add(i).write_volatile(from.add(i).read_volatile()) };
        i += 1;
    }
    to
}

/// C `memset`.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, n: usize) -> *mut u8 {
    let mut i = 0;
    while i < n {
        // SAFETY: i < n, and the caller vouches for n bytes; volatile as above.
        unsafe { to.add(i).write_volatile(byte as u8) };
        i += 1;
    }
    to
}

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".globl _start", "_start:", "xor ebp, ebp", "mov rdi, rsp", "and rsp, -16", "call {main}",
    "ud2", main = sym crate::main
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".globl _start", "_start:", "mov x29, #0", "mov x0, sp", "bl {main}", "brk #1",
    main = sym crate::main
);

/// The precompiled `core` names it in its unwind tables; with `panic=abort` nothing calls it.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}
