//! Values that no record may have: the secrets that the host has looked up for the box's grants.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, RwLock};

use h5i_broker::{Redactor, RedactorError, Secret};
use h5i_export::{ByteText, Event};

/// The secrets of each grant, those of before a renewal with them.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    secrets: Mutex<BTreeMap<String, Vec<Secret>>>,
    redactor: RwLock<Option<Redactor>>,
}

/// Values of one grant that are kept apart; a login is renewed some times in a session.
const VALUES: usize = 64;

impl Hidden {
    /// Hides these, too, from here on.
    ///
    /// # Errors
    /// When they can't be searched for.
    pub(super) fn hide(&self, grant: &str, secrets: &[Secret]) -> Result<(), RedactorError> {
        let mut all = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(grant.to_owned()).or_default();
        own.extend(
            secrets.iter().filter(|secret| !own.contains(secret)).cloned().collect::<Vec<_>>(),
        );
        let surplus = own.len().saturating_sub(VALUES);
        own.drain(..surplus);
        let redactor = Redactor::new(all.values().flatten())?;
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = Some(redactor);
        Ok(())
    }

    /// Bytes without them, of the same length; none where they have none.
    pub(super) fn cover_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let redactor = self.redactor.read().unwrap_or_else(PoisonError::into_inner);
        match redactor.as_ref()?.redact(bytes) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        }
    }

    /// The event without them, in whatever form they are searched for.
    pub(super) fn cover(&self, event: Event) -> Event {
        let redactor = self.redactor.read().unwrap_or_else(PoisonError::into_inner);
        let Some(redactor) = redactor.as_ref() else { return event };
        let Ok(text) = serde_json::to_vec(&event) else { return event };
        match redactor.redact(&text) {
            Cow::Borrowed(_) => event,
            // What is no record any more is not kept at all.
            Cow::Owned(clean) => serde_json::from_slice(&clean).unwrap_or_else(|_covered| {
                Event::Note { text: ByteText::new("a record that held a secret was left out") }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-canary-7hJ2kQ9xV4mB1nZ8";

    fn note(text: impl Into<Vec<u8>>) -> Event {
        Event::Note { text: ByteText::new(text.into()) }
    }

    #[test]
    fn a_secret_is_covered_in_every_form_and_nothing_else_is_touched() {
        let hidden = Hidden::default();
        let plain = note(format!("before it is known: {KEY}"));
        assert_eq!(hidden.cover(plain.clone()), plain);
        hidden.hide("g", &[Secret::new(KEY.into())]).unwrap();
        assert_ne!(hidden.cover(plain.clone()), plain);
        let told = |event: &Event| serde_json::to_string(event).unwrap();
        for text in [
            format!("x {KEY} y"),
            "c2stY2FuYXJ5LTdoSjJrUTl4VjRtQjFuWjg=".to_owned(),
            "sk%2Dcanary%2D7hJ2kQ9xV4mB1nZ8".to_owned(),
        ] {
            let covered = hidden.cover(note(text.clone()));
            assert!(told(&covered).contains("****"), "{text}: {}", told(&covered));
            assert!(!told(&covered).contains("7hJ2kQ9xV4mB1nZ8"), "{}", told(&covered));
        }
        // Bytes that are no text.
        let mut bytes = vec![0xff];
        bytes.extend(KEY.bytes());
        let covered = hidden.cover(note(bytes));
        assert!(!told(&covered).contains("7hJ2kQ9x"), "{}", told(&covered));
        let other = note("nothing of it");
        assert_eq!(hidden.cover(other.clone()), other);
    }

    #[test]
    fn what_was_renewed_stays_hidden() {
        let hidden = Hidden::default();
        hidden.hide("g", &[Secret::new(KEY.into())]).unwrap();
        hidden.hide("g", &[Secret::new(b"sk-renewed-3fL6pW0sT5yC".to_vec())]).unwrap();
        let both = note(format!("{KEY} sk-renewed-3fL6pW0sT5yC"));
        let covered = serde_json::to_string(&hidden.cover(both)).unwrap();
        assert!(!covered.contains("canary") && !covered.contains("renewed"), "{covered}");
    }
}
