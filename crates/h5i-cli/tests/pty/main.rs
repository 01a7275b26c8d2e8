//! The program at a terminal and in a pipeline, as a person uses it: the tests hold the other side of
//! a real terminal and wait for what it shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[allow(dead_code, unused_macros, reason = "the contract's tests use the rest")]
#[path = "../support/back_ends.rs"]
mod back_ends;
mod end;
mod full_screen;
mod grip;
mod jobs;
mod keys;
mod pipes;
mod prompt;
mod redirected;
mod seat;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/shapes.rs"]
mod shapes;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/stand.rs"]
mod stand;
#[path = "../support/mod.rs"]
mod support;
