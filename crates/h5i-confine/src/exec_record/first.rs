//! What a run was asked to execute: known here, and not readable in the process that is to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::event::{Arguments, Seen};
use crate::sys::Notification;

use super::arguments;

/// A run's program, as its caller named it. Until its exec the process is a fork of the box's init,
/// whose memory nobody may read; its call's pointers lie where the list of calls put them.
#[derive(Debug, Default)]
pub(crate) struct FirstProgram {
    arguments: Arguments,
    cwd: Vec<u8>,
    /// Each candidate, with its distance from the arguments' array in the list.
    candidates: Vec<(u64, Vec<u8>)>,
}

impl FirstProgram {
    pub(crate) fn new<'a>(
        argv: impl IntoIterator<Item = &'a [u8]>,
        cwd: &OsStr,
        candidates: Vec<(u64, Vec<u8>)>,
    ) -> Self {
        Self { arguments: arguments::bounded(argv), cwd: cwd.as_bytes().to_vec(), candidates }
    }

    /// Path, arguments and directory of its call.
    pub(super) fn asked(
        &self,
        call: &Notification,
    ) -> (Seen<Vec<u8>>, Seen<Arguments>, Seen<Vec<u8>>) {
        let distance = call.args[0].wrapping_sub(call.args[1]);
        let path = self
            .candidates
            .iter()
            .find(|(place, _)| *place == distance)
            .map_or(Seen::Unread { errno: libc::EFAULT }, |(_, path)| Seen::Read(path.clone()));
        (path, Seen::Read(self.arguments.clone()), Seen::Read(self.cwd.clone()))
    }
}
