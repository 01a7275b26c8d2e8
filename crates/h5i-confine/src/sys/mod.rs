//! The only unsafe code of the library: what rustix has no safe call for.
#![expect(unsafe_code, reason = "raw system calls; each block states why it is sound")]

mod launch;
mod memory;
mod notify;
mod pidfd;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

pub(crate) use launch::launch;
pub(crate) use memory::{forget_text, read_memory};
pub(crate) use notify::{Notification, answer, proceed, receive, still_waits, take_turns};
pub(crate) use pidfd::{
    exit_status, parent_of, process_in, process_of, signal_foreground, signal_group, tells_of_reaps,
};

/// The stage program; see `stage/main.rs`.
const STAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/h5i-stage"));

/// A sealed memfd with this content: it can't be changed by anybody, and is closed on exec.
pub(crate) fn sealed_memfd(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    seal(memfd_create(name, flags)?, content)
}

/// The stage as an executable, sealed memfd.
pub(crate) fn stage_memfd() -> io::Result<OwnedFd> {
    // MFD_EXEC (Linux 6.3) says that it is meant to be executed; older kernels know no other kind.
    const EXEC: MemfdFlags = MemfdFlags::from_bits_retain(0x10);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match memfd_create("h5i-stage", flags | EXEC) {
        Err(rustix::io::Errno::INVAL) => memfd_create("h5i-stage", flags)?,
        other => other?,
    };
    seal(fd, STAGE)
}

fn seal(fd: OwnedFd, content: &[u8]) -> io::Result<OwnedFd> {
    let mut rest = content;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&fd, rest))?;
        rest = &rest[written..];
    }
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&fd, seals)?;
    Ok(fd)
}

/// The Landlock ABI of the running kernel, 0 for none.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: libc::c_uint = 1; // LANDLOCK_CREATE_RULESET_VERSION
    // SAFETY: with this flag landlock_create_ruleset(2) wants a null pointer and size 0, and
    // returns a number.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION)
    };
    u32::try_from(abi).unwrap_or(0)
}

/// A detached copy of the mounts at `path` (`open_tree(2)`), for callers that are root.
pub(crate) fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    use rustix::mount::{OpenTreeFlags, open_tree};
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(rustix::fs::CWD, path, flags)?)
}

/// Sets attributes on a detached mount and all below it: (set, clear, propagation, namespace).
pub(crate) fn set_mount_attributes(tree: BorrowedFd<'_>, attributes: [u64; 4]) -> io::Result<()> {
    const AT_RECURSIVE: libc::c_int = 0x8000;
    // SAFETY: an empty path with AT_EMPTY_PATH names the descriptor; the four words are a
    // struct mount_attr of its first published size, 32 bytes.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | AT_RECURSIVE,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
