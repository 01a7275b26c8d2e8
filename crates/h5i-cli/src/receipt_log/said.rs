//! What a box says of itself, as records, and where that differs from what was seen.

use std::sync::{MutexGuard, PoisonError};

use h5i_confine::{self as confine, ProcessEnd};
use h5i_export::{ByteText, Event, Lane, redact};

use h5i_policy::Violation;

use super::Recorder;
use crate::failure::Failure;
use crate::gaps::{Asked, Difference, Gaps};
use crate::shown::Shown;
use crate::spool::{Claim, Found, Spool};

impl Recorder {
    /// From here on what comes into this spool is taken in.
    pub(crate) fn hears(&self, spool: Spool) {
        *self.spool() = Some(spool);
    }

    /// Takes in some of what has come into the spool.
    pub(crate) fn takes_in(&self) {
        let mut spool = self.spool();
        let found = spool.as_mut().map(Spool::take_in).unwrap_or_default();
        self.record_found(found);
    }

    /// Takes in whatever is in the spool.
    pub(crate) fn takes_all_in(&self) {
        let mut spool = self.spool();
        let found = spool.as_mut().map(Spool::sweep).unwrap_or_default();
        self.record_found(found);
    }

    /// A run is over: takes in what it left, and says what was never seen of what it reported.
    pub(super) fn takes_last_words(&self, run: u64) {
        self.takes_all_in();
        let differences = self.gaps().over(run);
        // As for a claim.
        self.record_differences(differences).ok();
    }

    /// What is kept of a run's output.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`](super::ReceiptLog::append).
    pub(crate) fn output_kept(&self, run: u64, kept: Vec<Event>) -> Result<(), Failure> {
        let mut each = kept.into_iter().filter(|event| matches!(event, Event::Output { .. }));
        each.try_for_each(|event| {
            let event = self.log.cover_output(run, event)?;
            self.log.append(Lane::Host, Some(run), event).map(drop)
        })
    }

    /// A claim that can't be recorded is lost: nothing waits for it. The log that failed ends the
    /// session with the next observation.
    fn record_found(&self, found: Vec<Found>) {
        for found in found {
            let recorded = match found {
                Found::Claim(claim) => self.record_claim(&claim),
                Found::Refused(fault, count) => self.host(Event::SpoolRefused { fault, count }),
            };
            if recorded.is_err() {
                return;
            }
            self.sync.lock().unwrap_or_else(PoisonError::into_inner).written();
        }
    }

    /// A claim is of the run that goes alone, or of the one of its shell.
    fn record_claim(&self, claim: &Claim) -> Result<(), Failure> {
        let alone = self.alone();
        let of = |shell| alone.or_else(|| self.gaps().run_of(shell));
        let text = |bytes: &[u8]| ByteText::new(redact(bytes));
        let (run, event) = match claim {
            Claim::Note(said) => (alone, Event::Note { text: text(said) }),
            Claim::Begun { shell, number, command, program } => {
                let (shell, number) = (*shell, *number);
                let (command, program) = (text(command), program.as_deref().map(text));
                (
                    of(shell),
                    Event::ReportedCommand { shell, number, command, program, status: None },
                )
            }
            Claim::Ended { shell, number, status, .. } => {
                let (shell, number, status) = (*shell, *number, *status);
                (of(shell), Event::ReportedEnd { shell, number, status })
            }
            Claim::Ran { command, program, status } => {
                let (command, program) = (text(command), Some(text(program)));
                let (shell, number, status) = (0, 0, Some(*status));
                (alone, Event::ReportedCommand { shell, number, command, program, status })
            }
        };
        self.log.append(Lane::Box, run, event)?;
        let differences = match claim {
            Claim::Note(_) => Vec::new(),
            Claim::Begun { shell, number, command, program } => {
                self.gaps().begins(*shell, *number, command, program.as_deref());
                Vec::new()
            }
            Claim::Ended { shell, number, status, form } => {
                self.gaps().through(*shell, *number, *status, *form)
            }
            Claim::Ran { command, program, status } => {
                self.gaps().ran(alone, command, program, *status)
            }
        };
        self.record_differences(differences)
    }

    /// What a process asks for is known when the box reports of it.
    pub(super) fn compares_attempt(&self, attempt: &confine::ExecAttempt) {
        let empty = confine::Arguments::default();
        self.gaps().asks(Asked {
            run: attempt.run,
            proc: attempt.process.proc,
            pid: attempt.process.pid,
            parent: attempt.parent.proc,
            path: attempt.path.read().map(Vec::as_slice).unwrap_or_default(),
            argv: &attempt.arguments.read().unwrap_or(&empty).argv,
        });
    }

    /// An end is compared with what was reported.
    pub(super) fn compares_end(&self, ended: &confine::ProcessEnded) -> Result<(), Failure> {
        let end = match ended.end {
            ProcessEnd::Exited(code) => Some(i32::from(code)),
            ProcessEnd::Signaled(signal) => Some(signal + 128),
            _ => None,
        };
        let complete = self.spool().as_ref().is_some_and(Spool::is_complete);
        let differences = self.gaps().ends(ended.process.proc, end, complete);
        self.record_differences(differences)
    }

    /// The one place where a gap is noticed: it is recorded, and then what the policy says is done.
    fn record_differences(&self, differences: Vec<Difference>) -> Result<(), Failure> {
        for Difference { run, gap, shell, what, reported, seen } in differences {
            let what = ByteText::new(redact(&what));
            let cause = format!("{}: {}", gap.name(), Shown::bytes(what.as_bytes()));
            let event = Event::Gap { gap, shell, what, reported, seen };
            self.log.append(Lane::Host, run, event)?;
            self.violated(Violation::Gap, &cause)?;
        }
        Ok(())
    }

    fn spool(&self) -> MutexGuard<'_, Option<Spool>> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gaps(&self) -> MutexGuard<'_, Gaps> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
