//! Git itself, through the broker, to a repository that git itself serves.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod fetch;
mod push;
mod world;
