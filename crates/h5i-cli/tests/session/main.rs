//! One session for many commands: runs that join, sessions that are kept, ports that are brought out,
//! and what is left when one of the processes dies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[allow(dead_code, unused_macros, reason = "the contract's tests use the rest")]
#[path = "../support/back_ends.rs"]
mod back_ends;
mod budgets;
mod bursts;
mod ends;
mod exported;
mod forwarded;
mod going;
#[path = "../support/holder_figures.rs"]
mod holder_figures;
mod joined;
mod keepers;
mod many;
mod planted;
mod reactions;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../pty/seat.rs"]
mod seat;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/shapes.rs"]
mod shapes;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/stand.rs"]
mod stand;
mod started;
#[path = "../support/mod.rs"]
mod support;
mod terminals;
