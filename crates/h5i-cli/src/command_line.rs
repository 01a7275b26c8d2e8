//! The program: words in, bytes out, one exit code. The only place that prints.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::args::{Cli, Verb, asks_for_json, usage_failure};
use crate::envelope::Envelope;
use crate::failure::{Failure, Kind};

/// Runs the program on this process's command line.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::of(words.iter().cloned()) {
        Ok(cli) => cli,
        Err(e) if !e.use_stderr() => return written(&write_out(e.to_string().as_bytes())),
        Err(e) if asks_for_json(&words) => return answer_failure(&usage_failure(&e)),
        Err(e) => {
            // clap's own text: it shows the usage as well.
            write!(anstream::stderr(), "{}", e.render().ansi()).ok();
            return ExitCode::from(Kind::Usage.exit_code());
        }
    };
    match cli.verb {
        Verb::Completions { shell } => written(&write_out(&Cli::completions(shell))),
        _ => {
            let failure = Failure::told(Kind::Unavailable, "this build of h5i can't do that verb")
                .hint("h5i completions is all it does");
            if asks_for_json(&words) { answer_failure(&failure) } else { tell_failure(&failure) }
        }
    }
}

fn tell_failure(failure: &Failure) -> ExitCode {
    // With standard error closed there is nobody to tell; the exit code says it.
    writeln!(anstream::stderr(), "{failure}").ok();
    ExitCode::from(failure.kind.exit_code())
}

fn answer_failure(failure: &Failure) -> ExitCode {
    match Envelope::failure(failure).write_to(&mut io::stdout().lock()) {
        Ok(()) => ExitCode::from(failure.kind.exit_code()),
        Err(_) => ExitCode::from(Kind::Io.exit_code()),
    }
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// The exit code of a verb that only writes. A reader that went away is none of our business.
fn written(result: &io::Result<()>) -> ExitCode {
    match result {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(Kind::Io.exit_code()),
        _ => ExitCode::SUCCESS,
    }
}
