//! The person at the terminal.

use std::io::{self, BufRead as _};

use rustix::termios::isatty;

use crate::failure::{Failure, Kind};

/// What a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// `y` or `yes`.
    Given,
    /// Anything else, also nothing.
    Withheld,
}

/// Whether somebody reads standard error and can answer on standard input.
pub(crate) fn is_present() -> bool {
    isatty(io::stdin()) && isatty(io::stderr())
}

/// Asks a question and waits for a line.
///
/// # Errors
/// An I/O failure when the terminal can't be read.
pub(crate) fn ask(question: &str) -> Result<Consent, Failure> {
    crate::command_line::say(&format!("{question} [y/N]"));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|e| Failure::new(Kind::Io, &e))?;
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(Consent::Given),
        _ => Ok(Consent::Withheld),
    }
}
