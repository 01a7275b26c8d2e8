//! The doors of the broker: every attempt with its expected outcome and its twin, by both ways into
//! the broker, against a service with a certificate of its own.
//!
//! `doors [FILTER]…` rehearses those whose id or claim contains a filter. `doors measure` measures
//! instead. Nothing leaves the machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "a test program: a failure is a panic or an exit code, and its output is its report"
)]

mod client;
mod measure;
mod scenario;
mod server;
mod world;

use std::process::ExitCode;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How long one rehearsal may take, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(600);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--list") {
        return ExitCode::SUCCESS;
    }
    // Every end of every stream is this process's.
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, files).unwrap();
    if args.iter().any(|arg| arg == "measure") {
        measure::run();
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let (mut passed, mut failed) = (0, 0);
    for (id, claim, check) in scenario::ALL {
        let wanted = |filter: &&String| id == filter || claim.contains(filter.as_str());
        if !filters.is_empty() && !filters.iter().any(wanted) {
            continue;
        }
        match rehearsal(check) {
            Ok(()) => {
                passed += 1;
                println!("{id:<5} held   {claim}");
            }
            Err(why) => {
                failed += 1;
                println!("{id:<5} LEAKED {claim}: {why}");
            }
        }
    }
    for (test, need) in h5i_testkit::not_run() {
        println!("not run: {test}: needs {need}");
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A panic fails one rehearsal and not all of them, and so does a hang.
fn rehearsal(check: &'static fn()) -> Result<(), String> {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        check();
        send.send(()).ok();
    });
    match receive.recv_timeout(PATIENCE) {
        Ok(()) => Ok(()),
        Err(RecvTimeoutError::Timeout) => Err(format!("no end after {PATIENCE:?}")),
        Err(RecvTimeoutError::Disconnected) => Err("it panicked; see above".to_owned()),
    }
}
