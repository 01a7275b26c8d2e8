//! Planted credentials that are opened, or undone, as records.

use std::sync::{MutexGuard, PoisonError};

use h5i_export::{Event, Lane};
use h5i_policy::Violation;

use super::Recorder;
use crate::canary::{Heard, Watch};
use crate::failure::Failure;
use crate::session::Opened;
use crate::shown::Shown;

impl Recorder {
    /// From here on what is planted is watched; `lost` is what is not as it was planted.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`](super::ReceiptLog::append).
    pub(crate) fn watches(&self, watch: Watch, lost: Vec<Heard>) -> Result<(), Failure> {
        *self.planted() = Some(watch);
        self.record_heard(lost)
    }

    /// Takes in who has opened something planted. Where that can't be had or recorded the session
    /// ends.
    pub(crate) fn hears_of_planted(&self) {
        if self.hear().is_err()
            && let Some(session) = self.session.get()
        {
            session.stop();
        }
    }

    /// A run has come to its end: what it opened is on record before that is.
    pub(super) fn hear_of_run(&self, run: u64) -> Result<(), Failure> {
        self.hear()?;
        let heard = self.planted().as_mut().map(|watch| watch.untold_of(Some(run)));
        self.record_heard(heard.unwrap_or_default())
    }

    /// A run is over: yields what it opened.
    pub(super) fn opened_by(&self, run: u64) -> Vec<Opened> {
        self.hears_of_planted();
        let over = self.planted().as_mut().map(|watch| watch.over(run));
        let (heard, opened) = over.unwrap_or_default();
        // A log that failed ends the session with the next observation.
        self.record_heard(heard).ok();
        opened
    }

    /// The session is over.
    pub(crate) fn planted_is_over(&self) {
        self.hears_of_planted();
        let watch = self.planted().take();
        // As for a run.
        self.record_heard(watch.map(Watch::end).unwrap_or_default()).ok();
    }

    fn hear(&self) -> Result<(), Failure> {
        let alone = self.alone();
        let heard = match self.planted().as_mut() {
            Some(watch) => watch.hear(alone)?,
            None => return Ok(()),
        };
        self.record_heard(heard)
    }

    fn record_heard(&self, heard: Vec<Heard>) -> Result<(), Failure> {
        for heard in heard {
            match heard {
                Heard::Opened { path, run, count } => {
                    let cause = format!("{} was opened", Shown::text(&path));
                    self.log.append(Lane::Host, run, Event::CanaryRead { path, count })?;
                    self.violated(Violation::CanaryRead, &cause)?;
                }
                Heard::Lost { path, why } => self.host(Event::CanaryLost { path, why })?,
                Heard::Overrun => {
                    self.note("planted credentials were opened more often than is counted")?;
                }
            }
            self.sync.lock().unwrap_or_else(PoisonError::into_inner).written();
        }
        Ok(())
    }

    fn planted(&self) -> MutexGuard<'_, Option<Watch>> {
        self.canaries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
