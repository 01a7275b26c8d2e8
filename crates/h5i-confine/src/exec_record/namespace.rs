//! Process ids inside the box.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::stat::Status;
use crate::sys;

/// The box's pid namespace, once a process of it could be asked for it.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    fd: Option<OwnedFd>,
}

impl Namespace {
    /// The id that a process has inside; 0 when it is gone.
    pub(super) fn inside(&mut self, pid: u32) -> u32 {
        if self.fd.is_none() {
            let (path, flags) = (format!("/proc/{pid}/ns/pid"), OFlags::RDONLY | OFlags::CLOEXEC);
            self.fd = openat(CWD, path, flags, Mode::empty()).ok();
        }
        // Linux 6.12; the status is slower by an order of magnitude.
        let told = self.fd.as_ref().and_then(|fd| sys::process_in(fd.as_fd(), pid));
        told.unwrap_or_else(|| Status::of(pid).map_or(0, |status| status.inside))
    }
}
