//! The program: words in, bytes out, one exit code. The only place that prints.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use serde::Serialize;

use crate::args::{Cli, asks_for_json, slip, usage_failure};
use crate::envelope::Envelope;
use crate::failure::{Failure, Kind};
use crate::verbs::{Answer, Refusal, perform};

/// Runs the program on this process's command line.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let json = asks_for_json(&words);
    let cli = match Cli::of(words.iter().cloned()) {
        Ok(cli) => cli,
        Err(e) if !e.use_stderr() => {
            return exit_code(&write_out(e.to_string().as_bytes()), ExitCode::SUCCESS);
        }
        Err(e) if json => {
            let failure = slip(&words, &e).unwrap_or_else(|| usage_failure(&e));
            return answer_failure(&failure, None);
        }
        Err(e) => {
            if let Some(failure) = slip(&words, &e) {
                writeln!(anstream::stderr(), "{failure}").ok();
                return ExitCode::from(failure.kind.exit_code());
            }
            // clap's own text: it shows the usage as well.
            write!(anstream::stderr(), "{}", e.render().ansi()).ok();
            return ExitCode::from(Kind::Usage.exit_code());
        }
    };
    match perform(&cli) {
        Ok(answer) if json => answer_data(&answer),
        Ok(answer) => tell(&answer),
        Err(Refusal { failure, code }) if json => answer_failure(&failure, code),
        Err(Refusal { failure, code }) => {
            // With standard error closed there is nobody to tell; the exit code says it.
            writeln!(anstream::stderr(), "{failure}").ok();
            ExitCode::from(code.unwrap_or_else(|| failure.kind.exit_code()))
        }
    }
}

/// Prints a line on standard error, for verbs that speak before they end.
pub(crate) fn say(line: &str) {
    // With standard error closed there is nobody to tell.
    writeln!(anstream::stderr(), "{line}").ok();
}

/// Prints a line on standard output, for verbs whose answer has no end that could be waited for.
pub(crate) fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")
}

/// Prints data as the one object of an answer, for verbs whose data is not to be in memory as a whole.
pub(crate) fn print_data(data: &impl Serialize) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    Envelope::success(data).write_to(&mut out)?;
    out.flush()
}

fn tell(answer: &Answer) -> ExitCode {
    let written = write_out(&answer.text);
    // With standard error closed there is nobody to tell.
    write!(anstream::stderr(), "{}", answer.notes).ok();
    exit_code(&written, ExitCode::from(answer.code))
}

fn answer_data(answer: &Answer) -> ExitCode {
    if answer.data.is_null() {
        return ExitCode::from(answer.code);
    }
    let mut out = io::stdout().lock();
    exit_code(&Envelope::success(&answer.data).write_to(&mut out), ExitCode::from(answer.code))
}

fn answer_failure(failure: &Failure, code: Option<u8>) -> ExitCode {
    let code = ExitCode::from(code.unwrap_or_else(|| failure.kind.exit_code()));
    exit_code(&Envelope::failure(failure).write_to(&mut io::stdout().lock()), code)
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// `code`, unless the answer could not be written. A reader that went away is none of our business.
fn exit_code(written: &io::Result<()>, code: ExitCode) -> ExitCode {
    match written {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(Kind::Io.exit_code()),
        _ => code,
    }
}
