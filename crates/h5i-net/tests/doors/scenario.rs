//! The rehearsals.

mod flows;

/// Id of the door, claim, rehearsal.
pub(crate) const ALL: &[(&str, &str, fn())] =
    &[("F1", "a listed address is reached and another is refused at once", flows::by_address)];
