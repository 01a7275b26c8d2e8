//! Where secrets come from: variables, files, programs, logins.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, reason = "in a test a failure is a panic")]

mod files;
mod locks;
mod logins;
mod places;
mod renewals;
mod support;
