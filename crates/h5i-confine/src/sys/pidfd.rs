//! What a pidfd tells of a process that is not this process's child.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct pidfd_info` as of Linux 6.15.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    ids: [u32; 8],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)` of the first published size; the kernel takes larger ones.
const SIZE: libc::c_ulong = 64;
const _: () = assert!(size_of::<PidfdInfo>() == 64);

/// The process's id in this process's pid namespace. `None` when it was reaped.
pub(crate) fn process_of(pidfd: BorrowedFd<'_>) -> Option<u32> {
    if let Some(info) = info(pidfd, 0) {
        return (info.tgid != 0).then_some(info.tgid);
    }
    // Before Linux 6.13.
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// The parent of the process, in this process's pid namespace. `None` before Linux 6.13.
pub(crate) fn parent_of(pidfd: BorrowedFd<'_>) -> Option<u32> {
    info(pidfd, 0).map(|info| info.ppid).filter(|parent| *parent != 0)
}

/// The id in a pid namespace of a process of this process's. `None` before Linux 6.12.
pub(crate) fn process_in(namespace: BorrowedFd<'_>, pid: u32) -> Option<u32> {
    /// `NS_GET_TGID_IN_PIDNS`, `_IOR(0xb7, 0x9, int)`.
    const REQUEST: libc::c_ulong = (2 << 30) | (4 << 16) | (0xb7 << 8) | 9;
    let pid = libc::c_ulong::from(pid);
    // SAFETY: the argument of this request is the number itself.
    let inside = unsafe { libc::ioctl(namespace.as_raw_fd(), REQUEST as _, pid) };
    u32::try_from(inside).ok().filter(|inside| *inside != 0)
}

/// Whether the kernel tells by a pidfd that its process was reaped (`POLLHUP`). It does in every
/// version that has the request for information at all.
pub(crate) fn tells_of_reaps(pidfd: BorrowedFd<'_>) -> bool {
    info(pidfd, 0).is_some()
}

fn info(pidfd: BorrowedFd<'_>, mask: u64) -> Option<PidfdInfo> {
    let request: libc::c_ulong = (3 << 30) | (SIZE << 16) | (0xff << 8) | 11;
    let mut info = PidfdInfo { mask, ..PidfdInfo::default() };
    // SAFETY: the request's size field bounds what is written, which is the structure's.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), request as _, &raw mut info) };
    (result == 0).then_some(info)
}

/// The wait status of a process that has ended and was reaped. `None` on kernels before 6.15, and
/// before the reap.
pub(crate) fn exit_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let info = info(pidfd, PIDFD_INFO_EXIT)?;
    (info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

/// Sends a signal to the process group that the process leads; to the process alone on kernels
/// before 6.9.
pub(crate) fn signal_group(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;
    let send = |flags: libc::c_uint| {
        // SAFETY: pidfd_send_signal(2) takes numbers, and a null pointer for no siginfo.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                pidfd.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                flags,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    match send(PIDFD_SIGNAL_PROCESS_GROUP) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => send(0),
        other => other,
    }
}

/// Sends SIGINT, SIGQUIT or SIGTSTP to a terminal's foreground, as a key would, through the
/// terminal's other side.
pub(crate) fn signal_foreground(terminal: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    /// `_IOW('T', 0x36, int)`; tty_ioctl(4).
    const TIOCSIG: libc::c_ulong = 0x4004_5436;
    // SAFETY: the argument of this request is the number itself.
    let result = unsafe { libc::ioctl(terminal.as_raw_fd(), TIOCSIG as _, signal) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
