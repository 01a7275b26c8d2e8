//! Descriptors that are kept for the moment when there are no others.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};

/// What looking at one process takes at once: a pidfd, a file of `/proc`, a directory, a link.
const KEPT: usize = 4;

/// A few descriptors in reserve, so that a program is recorded although everything else of this
/// process has taken the rest.
#[derive(Debug)]
pub(super) struct Spare {
    kept: Vec<OwnedFd>,
    lent: bool,
}

impl Spare {
    pub(super) fn new() -> Self {
        let mut spare = Self { kept: Vec::new(), lent: false };
        spare.take_back();
        spare
    }

    /// Closes them: others can be opened in their place.
    pub(super) fn lend(&mut self) {
        self.kept.clear();
        self.lent = true;
    }

    /// Keeps as many again, as far as there are some.
    pub(super) fn take_back(&mut self) {
        self.lent = false;
        let one = || eventfd(0, EventfdFlags::CLOEXEC).ok();
        let missing = KEPT - self.kept.len();
        self.kept.extend(std::iter::repeat_with(one).take(missing).flatten());
    }

    /// Whether what can be opened now is what was lent.
    pub(super) fn is_lent(&self) -> bool {
        self.lent
    }
}
