//! A run's keeper: between the box's init and the run's first process, so that whatever the run
//! starts stays below it, also what outlives its parent. What stands below it is the run's, and can be
//! ended with it while others of the session go on.

use crate::init::{self, Usage};
use crate::sys::{self, nr};

const PR_SET_CHILD_SUBREAPER: usize = 36;
const SIGCHLD: usize = 17;

/// Starts the run, reaps what it leaves, and ends with the last of it.
pub fn keep(id: u64, fds: &[i32]) -> ! {
    let all = u64::MAX;
    // Of all signals only those that can't be held back reach it: they end the box.
    // SAFETY: SIG_SETMASK (2) with a pointer to an eight-byte set that lives during the call.
    let _ = unsafe { sys::call(nr::RT_SIGPROCMASK, [2, &all as *const u64 as usize, 0, 8, 0, 0]) };
    // SAFETY: numbers only.
    let _ = unsafe { sys::call(nr::PRCTL, [PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0]) };
    // SAFETY: clone(SIGCHLD) without CLONE_VM is fork; this process has one thread.
    let pid = unsafe { sys::call(nr::CLONE, [SIGCHLD, 0, 0, 0, 0, 0]) };
    if pid == 0 {
        init::announce(id);
        init::child(fds);
    }
    if pid < 0 {
        init::refuse(fds[1], id, -pid as i32);
        sys::exit(0);
    }
    // The run's pipes among them: their end is to be heard.
    for &fd in fds {
        sys::close(fd);
    }
    loop {
        let mut status = 0i32;
        let mut usage = Usage::default();
        let args =
            [usize::MAX, &raw mut status as usize, 0, &raw mut usage as usize, 0, 0];
        // SAFETY: wait4(-1, …) writes an i32 and a struct rusage that live here.
        let ended = unsafe { sys::call_again(nr::WAIT4, args) };
        if ended == pid {
            init::tell_end(id, pid, status, &usage);
        } else if ended < 0 {
            // Nothing is left below it.
            sys::exit(0);
        }
    }
}
