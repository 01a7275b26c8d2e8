//! Grants: what a box asks of services with a credential that it never has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod approved;
mod approved_refusals;
#[allow(dead_code, unused_macros, reason = "the contract's tests use the rest")]
#[path = "../support/back_ends.rs"]
mod back_ends;
mod changed;
mod homes;
mod intercepted;
mod kept_out;
mod placed;
mod repositories;
mod reverse;
mod service;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/shapes.rs"]
mod shapes;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/stand.rs"]
mod stand;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod with_grants;
