//! The doors of the network: every attempt made from inside a network namespace, with its expected
//! outcome and its twin, the same attempt where it must succeed.
//!
//! `doors [FILTER]…` rehearses those whose id or claim contains a filter. An ordinary user's process
//! takes a user namespace first; nothing leaves the machine, for the "internet" is one more network
//! namespace. `doors measure` measures instead.
#![allow(unsafe_code, reason = "namespaces are entered by raw calls; each block says why")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "a test program: a failure is a panic or an exit code, and its output is its report"
)]

mod dns;
mod hello;
mod measure;
mod namespaces;
mod scenario;
mod server;
mod world;

use std::process::ExitCode;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use h5i_testkit::{Need, have, not_run};

/// How long one rehearsal may take.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--list") {
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    if !have("doors", Need::UserNamespaces) {
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    namespaces::take_user_namespace();
    // Both ends of every flow, and the relay's two, are this process's.
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, files).unwrap();
    if args.iter().any(|arg| arg == "measure") {
        std::thread::spawn(measure::run).join().unwrap();
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut failed) = (0, 0);
    for (id, claim, check) in scenario::ALL {
        let wanted =
            |filter: &&String| id.contains(filter.as_str()) || claim.contains(filter.as_str());
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
    for (test, need) in not_run() {
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
