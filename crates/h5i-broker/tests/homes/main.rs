//! Seeded homes: no credential in any format at any depth (DOORS G10), and everything else whole.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, reason = "in a test a failure is a panic")]

mod examples;
mod placeholders;
mod properties;
mod seeding;
mod whole;
