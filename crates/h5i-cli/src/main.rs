//! The `h5i` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    h5i::command_line::main()
}
