//! The listener of a system-call filter (`seccomp_unotify(2)`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    pub(crate) id: u64,
    /// The calling thread in the reader's pid namespace.
    pub(crate) thread: u32,
    pub(crate) nr: i32,
    pub(crate) args: [u64; 6],
}

/// Has a waiting caller and its answerer take turns on one processor, where the kernel can (Linux
/// 6.6): each waits for the other anyway, and waking another processor takes longer than the answer.
pub(crate) fn take_turns(listener: BorrowedFd<'_>) {
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    /// `SECCOMP_IOCTL_NOTIF_SET_FLAGS`, `_IOW('!', 4, u64)`.
    const REQUEST: libc::c_ulong = (1 << 30) | (8 << 16) | (0x21 << 8) | 4;
    // SAFETY: the argument of this request is the number itself; a kernel without it refuses.
    unsafe { libc::ioctl(listener.as_raw_fd(), REQUEST as _, SYNC_WAKE_UP) };
}

/// Takes the next waiting call. `None` when the caller died in the meantime.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    // SAFETY: all-zero is a valid seccomp_notif, and the kernel demands it.
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: NOTIF_RECV writes one seccomp_notif.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut raw)
    };
    if result == 0 {
        return Ok(Some(Notification {
            id: raw.id,
            thread: raw.pid,
            nr: raw.data.nr,
            args: raw.data.args,
        }));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR) => Ok(None),
        _ => Err(error),
    }
}

/// Whether the caller still waits: what was read of its process meanwhile is then its own.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: NOTIF_ID_VALID reads one u64.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, &raw const id)
    };
    result == 0
}

/// Answers a waiting call with an errno. A caller that died in the meantime is no error.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, errno: i32) -> io::Result<()> {
    reply(listener, libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 }).map(drop)
}

/// Has the kernel go on with a waiting call; `false` when nobody waits any more: the caller died in
/// the meantime, or a signal's handler took it elsewhere.
pub(crate) fn proceed(listener: BorrowedFd<'_>, id: u64) -> io::Result<bool> {
    // SECCOMP_USER_NOTIF_FLAG_CONTINUE
    reply(listener, libc::seccomp_notif_resp { id, val: 0, error: 0, flags: 1 })
}

fn reply(listener: BorrowedFd<'_>, mut reply: libc::seccomp_notif_resp) -> io::Result<bool> {
    // SAFETY: NOTIF_SEND reads one seccomp_notif_resp.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw mut reply)
    };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOENT) { Ok(false) } else { Err(error) }
}
