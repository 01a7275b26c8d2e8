//! What the supervisor and the network see of a session, as records.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use h5i_confine::{self as confine, EventSink, KnownHolders, SinkClosed};
use h5i_export::{ByteText, Event, Lane, Outcome};
use h5i_policy::Violation;

use super::Recorder;
use super::looking::Tick;
use crate::net_record::refused_place;

impl EventSink for Recorder {
    fn event(&self, event: confine::Event) -> Result<(), SinkClosed> {
        let recorded = match event {
            confine::Event::RunStarting { run } => self.run_starts(run),
            confine::Event::RunEnded { run, outcome, usage } => {
                self.hear_of_run(run).and_then(|()| self.run_ends(run, outcome, usage))
            }
            confine::Event::RefusedCall(call) => self.refused(&call),
            confine::Event::BudgetSpent(spent) => self.budget_spent(&spent),
            confine::Event::ExecAttempt(attempt) => {
                self.takes_in();
                self.compares_attempt(&attempt);
                self.of_program(attempt.run, |all| all.attempt(&attempt))
            }
            confine::Event::Exec(exec) => self.of_program(exec.run, |all| all.exec(&exec)),
            confine::Event::ProcessEnded(ended) => {
                self.takes_in();
                let told = self.of_program(ended.run, |all| all.end(&ended));
                told.and_then(|()| self.compares_end(&ended))
            }
            _ => return Ok(()),
        };
        self.sync.lock().unwrap_or_else(PoisonError::into_inner).written();
        recorded.map_err(|_told_by_the_session| SinkClosed)
    }
}

impl Recorder {
    /// The process that holds a socket of the box.
    pub(crate) fn holder_of(&self, inode: u64) -> Option<confine::SocketHolder> {
        self.session.get()?.holder_of(inode, &mut self.known_holders())
    }

    pub(super) fn known_holders(&self) -> MutexGuard<'_, KnownHolders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flows_sockets(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl h5i_net::EventSink for Recorder {
    /// What the network saw is of the run whose process holds the socket, or of the one that goes
    /// alone; what has no socket any more, among several, is of none.
    fn event(&self, event: h5i_net::Event) -> Result<(), h5i_net::SinkClosed> {
        let alone = self.alone();
        let holder = match &event {
            h5i_net::Event::FlowOpened { flow, socket: Some(inode), .. } => {
                self.flows_sockets().insert(*flow, *inode);
                self.holder_of(*inode)
            }
            h5i_net::Event::FlowEnded(ended) => {
                if let Some(inode) = self.flows_sockets().remove(&ended.flow) {
                    self.known_holders().is_over(inode);
                }
                None
            }
            h5i_net::Event::FlowRefused { socket: Some(inode), .. }
            | h5i_net::Event::RefusedAddress { socket: Some(inode), .. }
            | h5i_net::Event::RefusedName { socket: Some(inode), .. } => {
                let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
                looking.within(Tick::now, || self.holder_of(*inode)).flatten()
            }
            _ => None,
        };
        let taken = {
            let mut net = self.net.lock().unwrap_or_else(PoisonError::into_inner);
            net.take_in(event, alone, holder)
        };
        let Some((run, event)) = taken else { return Ok(()) };
        let refused = refused_place(&event);
        let recorded = self.log.append(Lane::Net, run, event).and_then(|_| match refused {
            Some(place) => self.violated(Violation::RefusedConnect, &place),
            None => Ok(()),
        });
        self.sync.lock().unwrap_or_else(PoisonError::into_inner).written();
        recorded.map_err(|_what_follows_does_not_go_on| h5i_net::SinkClosed)
    }
}

pub(super) fn refused_event(call: &confine::RefusedCall) -> Event {
    Event::RefusedCall {
        call: call.name.to_owned(),
        args: call.args.to_vec(),
        pid: call.pid,
        program: ByteText::new(call.program.clone()),
        errno: "EPERM".to_owned(),
        count: call.count,
    }
}

pub(super) fn end_event(outcome: confine::Outcome, usage: confine::Usage) -> Event {
    let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let (word, exit_code, signal, stop) = match outcome {
        confine::Outcome::Exited(code) => (Outcome::Exited, Some(i32::from(code)), None, None),
        confine::Outcome::Signaled(signal) => (Outcome::Signaled, None, Some(signal), None),
        confine::Outcome::Stopped(stop) => (Outcome::Stopped, None, None, Some(stop)),
        confine::Outcome::Reacted(_) => (Outcome::Stopped, None, None, None),
        _ => (Outcome::CutOff, None, None, None),
    };
    Event::RunEnd {
        outcome: word,
        exit_code,
        signal,
        limit: match outcome {
            confine::Outcome::Reacted(violation) => Some(format!("react.{violation}")),
            _ => stop.map(|stop| stop.limit.name().to_owned()),
        },
        used: stop.map(|stop| stop.used),
        allowed: stop.map(|stop| stop.allowed),
        wall_ms: millis(usage.wall),
        cpu_ms: millis(usage.cpu),
        max_rss_bytes: usage.max_rss,
    }
}
