//! The doors that take more than one attempt.

use crate::door::Scenario;

pub(crate) fn all() -> impl Iterator<Item = Scenario> {
    std::iter::empty()
}
