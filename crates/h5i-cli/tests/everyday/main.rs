//! What people do all day, done in a box with the real tools: what works at home works there, and what
//! a box refuses fails plainly and at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[allow(dead_code, unused_macros, reason = "the contract's tests use the rest")]
#[path = "../support/back_ends.rs"]
mod back_ends;
mod building;
mod debugging;
mod packages;
mod refused;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/shapes.rs"]
mod shapes;
mod shells;
mod sockets;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/stand.rs"]
mod stand;
#[path = "../support/mod.rs"]
mod support;
mod surroundings;
mod table;
mod watching;
