//! Test support of the h5i crates: what a host must have, and scratch directories for boxes.
//!
//! Unpublished. A test whose host lacks something asks [`have`] and returns when it says no; the
//! miss is counted, written to standard error at once (past the capture of the test harness) and,
//! with `H5I_REQUIRE=all`, a failure.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod box_dirs;
mod clock;
mod git_service;
mod need;

pub use box_dirs::{BoxDirs, HOST_ID};
pub use clock::Moment;
pub use git_service::{GitAnswer, GitService, git};
pub use need::{Need, have, not_run};
