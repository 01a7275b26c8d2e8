//! The supervised tier: what a box reaches by its rules, and what is on record of the rest.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod apart;
#[path = "../contract/at_terminal.rs"]
mod at_terminal;
#[allow(dead_code, unused_macros, reason = "the contract's tests use the rest")]
#[path = "../support/back_ends.rs"]
mod back_ends;
mod changed;
mod doors;
mod groups;
#[path = "../support/holder_figures.rs"]
mod holder_figures;
mod learning;
mod openers;
mod server;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/shapes.rs"]
mod shapes;
mod short;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/stand.rs"]
mod stand;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod tried;
