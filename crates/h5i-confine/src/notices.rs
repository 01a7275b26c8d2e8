//! The calls that wait for the session's thread: programs to be started, ends, refusals.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::event::{EventSink, SinkClosed};
use crate::exec_record::{Attempted, ExecRecord, FirstProgram};
use crate::refusals::Refusals;
use crate::sys::{self, Notification};

/// Why a waiting call could not be dealt with.
#[derive(Debug)]
pub(crate) enum NoticeError {
    Listener,
    Sink,
}

impl From<io::Error> for NoticeError {
    fn from(_: io::Error) -> Self {
        Self::Listener
    }
}

impl From<SinkClosed> for NoticeError {
    fn from(_: SinkClosed) -> Self {
        Self::Sink
    }
}

/// What a waiting call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Exec,
    Exit,
    Refusal,
}

impl Notice {
    pub(crate) fn of(call: &Notification) -> Self {
        match libc::c_long::from(call.nr) {
            libc::SYS_execve | libc::SYS_execveat => Self::Exec,
            libc::SYS_exit_group => Self::Exit,
            _ => Self::Refusal,
        }
    }
}

/// The waiting calls of a session.
#[derive(Debug)]
pub(crate) struct Notices {
    pub(crate) execs: ExecRecord,
    refusals: Refusals,
}

impl Notices {
    pub(crate) fn new(started: Instant) -> Self {
        Self { execs: ExecRecord::new(started), refusals: Refusals::new(started) }
    }

    /// Records one waiting call and only then answers it. `first` is the run whose first process
    /// asks for a program, where that is so.
    pub(crate) fn answer(
        &mut self,
        call: &Notification,
        listener: BorrowedFd<'_>,
        first: Option<(u64, u32, &FirstProgram)>,
        sink: &dyn EventSink,
    ) -> Result<(), NoticeError> {
        match Notice::of(call) {
            Notice::Exec => {
                let unread = |attempted| {
                    attempted == Attempted::Unread && sys::still_waits(listener, call.id)
                };
                let attempt = |execs: &mut ExecRecord| execs.attempted(call, listener, first, sink);
                if !unread(attempt(&mut self.execs)?) || !unread(self.execs.with_spare(attempt)?) {
                    return Ok(());
                }
                // What can't be recorded does not begin.
                self.refusals.answer(call, listener, sink)
            }
            Notice::Exit => self.execs.exits(call, listener, sink),
            Notice::Refusal => {
                self.execs.stopped(call.thread, sink)?;
                self.refusals.answer(call, listener, sink)
            }
        }
    }

    /// Reports what was heard and counted since the last report.
    pub(crate) fn flush(&mut self, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        self.execs.hear_ends(sink)?;
        self.refusals.flush(sink)
    }
}
