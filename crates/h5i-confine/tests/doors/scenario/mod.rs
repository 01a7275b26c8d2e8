//! The doors that take more than one attempt.

mod attacks;
mod life;
mod limits;
mod measured;
mod nested;
mod network;
mod observe;
mod outcomes;
mod parents;
mod placements;
mod programs;
mod starts;
mod stdio;

use std::fmt::Debug;

use crate::door::Scenario;

/// What a rehearsal finds where the host lacks what it needs.
pub(crate) const NOT_RUN: &str = "not run";

pub(crate) fn all() -> impl Iterator<Item = Scenario> {
    [
        limits::ALL,
        measured::ALL,
        attacks::ALL,
        life::ALL,
        nested::ALL,
        network::ALL,
        observe::ALL,
        parents::ALL,
        placements::ALL,
        outcomes::ALL,
        programs::ALL,
        starts::ALL,
        stdio::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}

const fn scenario(
    id: &'static str,
    claim: &'static str,
    check: fn(&crate::world::World) -> Result<String, String>,
) -> Scenario {
    Scenario { id, claim, check }
}

/// Says what is the case when it is not what must be.
fn must(holds: bool, what: &str, seen: impl Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what}: {seen:?}")) }
}
