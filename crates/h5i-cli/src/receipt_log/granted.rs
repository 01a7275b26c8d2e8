//! What the broker sees of a box's grants, as records.

use std::sync::PoisonError;

use h5i_broker::{self as broker, Denial, RedactorError, Secret};
use h5i_export::{Event, GrantChange, Lane};
use h5i_policy::Violation;

use super::Recorder;
use crate::failure::Failure;
use crate::grant_record::GrantDeeds;

impl Recorder {
    /// What a run did with its grants, once it has ended; told once.
    pub(super) fn grants_of(&self, run: u64) -> GrantDeeds {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner).take(run)
    }

    /// Keeps the values of a grant out of every record from here on.
    ///
    /// # Errors
    /// When they can't be searched for.
    pub(crate) fn hides(&self, grant: &str, secrets: &[Secret]) -> Result<(), RedactorError> {
        self.log.hides(grant, secrets)
    }

    /// Records a change that a person makes.
    ///
    /// # Errors
    /// An I/O failure of the log; the change must not be made then.
    pub(crate) fn grant_changes(
        &self,
        grant: &str,
        change: GrantChange,
        by_ms: Option<u64>,
    ) -> Result<(), Failure> {
        self.host(Event::GrantChange { grant: grant.to_owned(), change, by_ms })
    }
}

impl broker::EventSink for Recorder {
    fn event(&self, event: broker::Event) -> Result<(), broker::SinkClosed> {
        let violation = violation_of(&event);
        let taken = self.grants.lock().unwrap_or_else(PoisonError::into_inner).take_in(event);
        let Some((run, event)) = taken else { return Ok(()) };
        let cause = match &event {
            Event::GrantRefused { grant, reason, .. } => format!("grant {grant}: {reason}"),
            _ => String::new(),
        };
        let recorded = self.log.append(Lane::Broker, run, event).and_then(|_| match violation {
            Some(violation) => self.violated(violation, &cause),
            None => Ok(()),
        });
        self.sync.lock().unwrap_or_else(PoisonError::into_inner).written();
        recorded.map_err(|_what_follows_does_not_go_on| broker::SinkClosed)
    }
}

/// What the policy may react to: a refused request is a refused connection, a spent budget is one.
/// What the service or the host failed at is nobody's violation.
fn violation_of(event: &broker::Event) -> Option<Violation> {
    let broker::Event::Refused { denial, .. } = event else { return None };
    match denial {
        Denial::Budget => Some(Violation::Budget),
        Denial::Token
        | Denial::Malformed
        | Denial::Upgrade
        | Denial::OtherHost
        | Denial::Method
        | Denial::Path
        | Denial::Program
        | Denial::Git => Some(Violation::RefusedConnect),
        _ => None,
    }
}
