//! Raw system calls of the attempts, so that an errno is the kernel's and not a library's.

use std::ffi::CString;

/// One argument: a number, or memory that lives during the call.
pub(crate) enum A<'a> {
    N(i64),
    S(&'a str),
    In(&'a [u8]),
    Out(&'a mut [u8]),
}

/// The result of an attempt: what it saw, or an errno.
pub(crate) type Outcome = Result<String, i32>;

/// Makes one system call. Callers pass the sizes of the memory they hand over.
pub(crate) fn call(nr: i64, args: &mut [A<'_>]) -> Result<i64, i32> {
    let mut strings = Vec::new();
    let mut words = [0i64; 6];
    for (word, arg) in words.iter_mut().zip(args) {
        *word = match arg {
            A::N(n) => *n,
            A::S(text) => {
                let text = CString::new(*text).unwrap();
                let pointer = text.as_ptr() as i64;
                strings.push(text);
                pointer
            }
            A::In(bytes) => bytes.as_ptr() as i64,
            A::Out(bytes) => bytes.as_mut_ptr() as i64,
        };
    }
    let [a, b, c, d, e, f] = words;
    // SAFETY: pointers among the words lead to memory borrowed or owned until here below, and each
    // caller states its true size; a call whose arguments make no sense fails with an errno.
    let result = unsafe { libc::syscall(nr, a, b, c, d, e, f) };
    drop(strings);
    if result < 0 { Err(errno()) } else { Ok(result) }
}

/// The thread's last errno.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The errno of a failed library call.
pub(crate) fn of(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Opens a path; the descriptor is closed at exit.
pub(crate) fn open(path: &str, flags: i32) -> Result<i64, i32> {
    let flags = i64::from(flags | libc::O_CLOEXEC);
    call(libc::SYS_openat, &mut [A::N(AT_FDCWD), A::S(path), A::N(flags), A::N(0o600)])
}

/// Forks. The child gets 0; it must leave by [`leave`].
pub(crate) fn fork() -> i32 {
    // SAFETY: the attempts have one thread, so the child may do whatever the parent may.
    unsafe { libc::fork() }
}

/// Ends a forked child without running anything of the parent's.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: _exit takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Keeps a forked child until a signal ends it.
pub(crate) fn stay() -> ! {
    loop {
        // SAFETY: takes nothing. Not every architecture has a system call of this name.
        unsafe { libc::pause() };
    }
}

/// Waits for a child; yields its wait status.
pub(crate) fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: writes one int that lives during the call.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    status
}

/// Makes an attempt in a child, so that what kills it does not kill the report.
pub(crate) fn in_child(attempt: impl FnOnce() -> Result<i64, i32>) -> Result<i64, i32> {
    let pid = fork();
    if pid == 0 {
        leave(match attempt() {
            Ok(_) => 0,
            Err(errno) => errno.clamp(1, 125),
        });
    }
    let status = wait(pid);
    match (status & 0x7f, (status >> 8) & 0xff) {
        (0, 0) => Ok(0),
        (0, errno) => Err(errno),
        (signal, _) => Err(1000 + signal),
    }
}

pub(crate) const AT_FDCWD: i64 = libc::AT_FDCWD as i64;
