//! Files of root, shown as a box's own.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;

use h5i_policy::Limits;
use rustix::fs::{CWD, Mode, OFlags};

use crate::error::StartError;
use crate::event::NoSink;
use crate::plan::Plan;
use crate::step::Step;
use crate::sys;

const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

/// A user namespace in which a box's host id stands where root stands on disk.
///
/// A mount that it is applied to (`mount_setattr(2)`, Linux 5.12) shows files of root as the box's:
/// so the boxes of root share layers although each box has an id of its own. Nothing changes on
/// disk. Only root can make one, and the file system must support it.
#[derive(Debug)]
pub(crate) struct IdMap {
    namespace: OwnedFd,
}

impl IdMap {
    /// Makes a namespace that maps 0 to `id`, users and groups alike.
    ///
    /// # Errors
    /// [`StartError`] when the process that has it for a moment can't be started or mapped.
    pub(crate) fn new(id: u32) -> Result<Self, StartError> {
        let flags = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
        let steps = vec![Step::EnterNamespaces { names: vec!["user"], flags }, Step::Serve];
        let holder = Plan::of_steps(steps, Limits::default()).start(Arc::new(NoSink))?;
        let namespace = map(&holder.shared().stage, id)
            .map_err(|source| StartError::Prepare { what: "map root's files", source })?;
        holder.end();
        Ok(Self { namespace })
    }

    /// Applies the map to a detached mount.
    pub(crate) fn apply(&self, tree: &OwnedFd) -> io::Result<()> {
        let namespace = u64::try_from(self.namespace.as_raw_fd()).map_err(io::Error::other)?;
        sys::set_mount_attributes(tree.as_fd(), [MOUNT_ATTR_IDMAP, 0, 0, namespace])
    }
}

/// Writes the maps from outside: from inside a process may map its own id only.
fn map(holder: &OwnedFd, id: u32) -> io::Result<OwnedFd> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", holder.as_raw_fd()))?;
    let pid = info
        .lines()
        .find_map(|line| line.strip_prefix("Pid:"))
        .and_then(|pid| pid.trim().parse::<u32>().ok())
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let line = format!("0 {id} 1");
    fs::write(format!("/proc/{pid}/uid_map"), &line)?;
    fs::write(format!("/proc/{pid}/gid_map"), &line)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, format!("/proc/{pid}/ns/user"), flags, Mode::empty())?)
}
