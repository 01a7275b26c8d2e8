//! Refused system calls: answered at once, the first of each kind reported at once, then counted.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::event::{Event, EventSink, RefusedCall, SinkClosed};
use crate::notices::NoticeError;
use crate::processes;
use crate::seccomp;
use crate::sys::{self, Notification};

/// Kinds that are told apart in one session; what comes beyond is counted as one kind.
const KINDS: usize = 1024;
const ERRNO: i32 = libc::EPERM;
/// That of a program that could not be recorded; execve(2) has it for what is short for a while.
const UNRECORDED: i32 = libc::EAGAIN;

const NO_DESCRIPTOR: &str =
    "no program begins unrecorded, and h5i has no descriptor left to look at it: raise `ulimit -n`";

/// The program that a call asks for could not be recorded.
fn is_unrecorded(nr: i32) -> bool {
    matches!(libc::c_long::from(nr), libc::SYS_execve | libc::SYS_execveat)
}

fn errno_of(nr: i32) -> i32 {
    if is_unrecorded(nr) { UNRECORDED } else { ERRNO }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    nr: i32,
    args: [u64; 3],
    program: Vec<u8>,
}

/// The refused calls of a session.
#[derive(Debug)]
pub(crate) struct Refusals {
    started: Instant,
    kinds: BTreeMap<Kind, u64>,
}

impl Refusals {
    pub(crate) fn new(started: Instant) -> Self {
        Self { started, kinds: BTreeMap::new() }
    }

    /// Records one waiting call and only then answers it.
    pub(crate) fn answer(
        &mut self,
        call: &Notification,
        listener: BorrowedFd<'_>,
        sink: &dyn EventSink,
    ) -> Result<(), NoticeError> {
        let rule = seccomp::by_number(call.nr);
        let mut args = [0; 3];
        for (i, arg) in args.iter_mut().enumerate() {
            if rule.is_some_and(|r| r.reports(u8::try_from(i).unwrap_or(u8::MAX))) {
                // The filter compares 32 bits; the upper half is the caller's litter.
                *arg = call.args[i] & 0xffff_ffff;
            }
        }
        let caller = processes::identify(call.thread);
        let kind = Kind { nr: call.nr, args, program: caller.program };
        let outcome = if let Some(count) = self.kinds.get_mut(&kind) {
            *count += 1;
            Ok(())
        } else if self.kinds.len() >= KINDS {
            let rest = Kind { nr: -1, args: [0; 3], program: Vec::new() };
            *self.kinds.entry(rest).or_insert(0) += 1;
            Ok(())
        } else {
            let event = self.event(&kind, caller.pid, 1);
            self.kinds.insert(kind, 0);
            sink.event(event)
        };
        sys::answer(listener, call.id, errno_of(call.nr))?;
        Ok(outcome?)
    }

    /// Reports how often each kind came again since it was last reported.
    pub(crate) fn flush(&mut self, sink: &dyn EventSink) -> Result<(), SinkClosed> {
        let again: Vec<(Kind, u64)> = self
            .kinds
            .iter_mut()
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| (kind.clone(), std::mem::take(count)))
            .collect();
        again.into_iter().try_for_each(|(kind, count)| sink.event(self.event(&kind, 0, count)))
    }

    fn event(&self, kind: &Kind, pid: u32, count: u64) -> Event {
        let (name, reason) = match seccomp::by_number(kind.nr) {
            _ if is_unrecorded(kind.nr) => ("execve", NO_DESCRIPTOR),
            Some(rule) => (rule.name, rule.reason),
            None => ("others", "more kinds than are told apart"),
        };
        Event::RefusedCall(RefusedCall {
            name,
            nr: kind.nr,
            args: kind.args,
            reason,
            allowed_by: seccomp::allowed_by(kind.nr, kind.args),
            pid,
            program: kind.program.clone(),
            errno: errno_of(kind.nr),
            count,
            since_start: self.started.elapsed(),
        })
    }
}
