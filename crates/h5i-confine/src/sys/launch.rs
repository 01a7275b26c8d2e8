//! Starts the stage without copying the caller's memory.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::fcntl_dupfd_cloexec;

use super::stage_memfd;
use crate::wire::{CONTROL_FD, LIST_FD};

/// Stack of the child until its exec; it makes three system calls.
const STACK: usize = 64 * 1024;
const NAME: &CStr = c"h5i-stage";

struct Child {
    stage: i32,
    control: i32,
    list: i32,
    errno: i32,
}

/// Executes the stage with `control` and `list` at the descriptors that it expects, and returns its
/// pidfd.
///
/// The child shares the caller's memory until its exec (`CLONE_VM | CLONE_VFORK`), so that the cost
/// does not grow with the caller's heap; the calling thread is suspended for that long. Usable from
/// a program with threads: the child allocates nothing, takes no lock and runs no signal handler.
pub(crate) fn launch(control: BorrowedFd<'_>, list: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let stage = stage_memfd()?;
    // Above the two places, so that putting one there does not overwrite another.
    let stage = fcntl_dupfd_cloexec(stage.as_fd(), 10)?;
    let control = fcntl_dupfd_cloexec(control, 10)?;
    let list = fcntl_dupfd_cloexec(list, 10)?;
    let mut child = Child {
        stage: stage.as_raw_fd(),
        control: control.as_raw_fd(),
        list: list.as_raw_fd(),
        errno: 0,
    };
    let mut stack = vec![0u8; STACK];
    let top = stack.as_mut_ptr_range().end.map_addr(|end| end & !15);
    let mut pidfd: libc::c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;

    let mask = block_signals();
    let argument: *mut Child = &raw mut child;
    // SAFETY: `top` is the aligned end of a stack that outlives the child's use of it, because
    // CLONE_VFORK suspends this thread until the child's exec or exit; `enter` only makes
    // async-signal-safe calls on `child`; CLONE_PIDFD writes the descriptor to `pidfd`.
    let pid = unsafe { libc::clone(enter, top.cast(), flags, argument.cast(), &raw mut pidfd) };
    let failed = io::Error::last_os_error();
    restore_signals(&mask);

    if pid < 0 {
        return Err(failed);
    }
    // SAFETY: the kernel made this descriptor for this call, and nobody else owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    if child.errno != 0 {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)?;
        return Err(io::Error::from_raw_os_error(child.errno));
    }
    Ok(pidfd)
}

/// Runs in the child, on its own stack and in the parent's memory.
extern "C" fn enter(argument: *mut libc::c_void) -> libc::c_int {
    let child: *mut Child = argument.cast();
    // SAFETY: the parent's `Child` lives until this process has executed or exited.
    let Child { stage, control, list, .. } = *unsafe { &*child };
    let argv = [NAME.as_ptr(), std::ptr::null()];
    let envp: [*const libc::c_char; 1] = [std::ptr::null()];
    // SAFETY: dup3 takes numbers; the descriptors are open and differ from their new places.
    let placed = unsafe { libc::dup3(control, CONTROL_FD, 0) } >= 0
        // SAFETY: as above.
        && unsafe { libc::dup3(list, LIST_FD, 0) } >= 0;
    if placed {
        // SAFETY: an empty path with AT_EMPTY_PATH executes the descriptor; argv and envp are
        // NULL-terminated arrays of C strings that live until the exec.
        unsafe {
            libc::syscall(
                libc::SYS_execveat,
                stage,
                c"".as_ptr(),
                argv.as_ptr(),
                envp.as_ptr(),
                libc::AT_EMPTY_PATH,
            )
        };
    }
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    // SAFETY: as for the reads above.
    unsafe { (*child).errno = errno };
    // SAFETY: _exit ends this process without running the parent's exit handlers.
    unsafe { libc::_exit(127) }
}

fn block_signals() -> libc::sigset_t {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut old = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises the set it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is initialised; `old` is written.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) };
    // SAFETY: pthread_sigmask wrote it; it can't fail with a valid `how`.
    unsafe { old.assume_init() }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` is an initialised set; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}
