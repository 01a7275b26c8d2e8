//! A harness in some odd condition that starts a box of its own.

use std::process::ExitCode;

pub(crate) fn main(_name: &str, _dir: &str) -> ExitCode {
    ExitCode::FAILURE
}
