//! The memory of another process (`process_vm_readv(2)`), and code in one's own (`madvise(2)`).

use std::io;
use std::ops::Range;

/// Reads parts of a thread's memory, each an address and a length, one after the other into
/// `buffer`; yields how many bytes were read before a part that is not there.
pub(crate) fn read_memory(
    thread: u32,
    parts: &[(u64, usize)],
    buffer: &mut [u8],
) -> io::Result<usize> {
    let thread = libc::pid_t::try_from(thread).map_err(io::Error::other)?;
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote: Vec<libc::iovec> = parts
        .iter()
        .map(|(address, length)| libc::iovec {
            iov_base: std::ptr::without_provenance_mut(usize::try_from(*address).unwrap_or(0)),
            iov_len: *length,
        })
        .collect();
    // SAFETY: the kernel writes at most `buffer.len()` bytes to the one local part, which is that
    // buffer, and never follows the remote addresses in this process.
    let got = unsafe {
        libc::process_vm_readv(thread, &raw const local, 1, remote.as_ptr(), remote.len() as _, 0)
    };
    usize::try_from(got).map_err(|_negative| io::Error::last_os_error())
}

/// Drops the pages of a mapping of code, which come back from its file when they are run; yields its
/// length.
pub(crate) fn forget_text(text: Range<usize>) -> io::Result<usize> {
    let length = text.len();
    let start = std::ptr::with_exposed_provenance_mut(text.start);
    // SAFETY: the caller found this range in `/proc/self/maps` as one private mapping of a file that
    // can't be written to, so the file has all that the pages hold, and no reference of Rust's is to
    // memory that changes.
    let done = unsafe { libc::madvise(start, length, libc::MADV_DONTNEED) };
    if done == 0 { Ok(length) } else { Err(io::Error::last_os_error()) }
}
