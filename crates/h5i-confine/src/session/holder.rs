//! Which process of a box holds a socket.

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use super::SessionHandle;
use crate::processes;
use crate::trees::Member;

/// Descriptors that are looked at before the question is given up.
const MOST: usize = 16 << 10;

/// A process that holds a socket, as the host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketHolder {
    /// Process id inside the box.
    pub pid: u32,
    /// The run that it belongs to, where that can be told.
    pub run: Option<u64>,
    /// Path of its executable, by the kernel's link; empty when it has just ended.
    pub program: Vec<u8>,
}

impl SessionHandle {
    /// The process that holds the socket with this inode: of several the one that all others descend
    /// from, so the one that made it, unless it was handed on. `None` when it is gone, and in a box
    /// with very many open files.
    #[must_use]
    pub fn holder_of(&self, inode: u64) -> Option<SocketHolder> {
        let roots = self.roots()?;
        let link = format!("socket:[{inode}]");
        let mut left = MOST;
        // Parents come before their children.
        let found = roots.members().into_iter().find(|member| holds(member, &link, &mut left))?;
        let program = fs::read_link(format!("/proc/{}/exe", found.pid))
            .map(|path| path.into_os_string().into_vec())
            .unwrap_or_default();
        let run = found.kept.or_else(|| self.only_unkept());
        Some(SocketHolder { pid: processes::inside(found.pid)?, run, program })
    }
}

fn holds(member: &Member, link: &str, left: &mut usize) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", member.pid)) else { return false };
    for entry in entries.flatten() {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let to = fs::read_link(entry.path());
        if to.is_ok_and(|to| to.as_os_str().as_bytes() == link.as_bytes()) {
            return true;
        }
    }
    false
}
