//! The only unsafe code of the library: what rustix has no safe call for.
#![expect(unsafe_code, reason = "a signal mask; the block states why it is sound")]

use std::io;
use std::mem::MaybeUninit;

/// Keeps SIGPIPE from the calling thread: splice(2) into a connection that was reset raises it, and
/// has no flag against it.
pub(crate) fn block_sigpipe() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset(3) writes the whole set that it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was initialised above, and the number is of a signal.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE) };
    // SAFETY: the set is initialised; no old set is asked for.
    let error =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}
