//! The door table: every attempt at a boundary, made from inside a real box on this host, with its
//! expected outcome and its twin, the same attempt where it must succeed.
//!
//! `doors [FILTER]…` rehearses the doors whose id or claim contains a filter. The same program,
//! started as `attempt NAME ARGS…` in a box or outside, makes one attempt and prints how it went;
//! started as `parent NAME DIR` it is a harness in some odd condition that starts a box of its own.
#![allow(unsafe_code, reason = "attempts are raw system calls; each block says why it is sound")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test program: a failure is a panic or an exit code, and its output is its report"
)]

mod attempt;
mod call;
mod door;
mod interpreter;
mod parent;
mod scenario;
mod table;
mod world;

use std::process::ExitCode;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use h5i_testkit::{Need, have, not_run};

use crate::door::Scenario;
use crate::world::World;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["attempt", name, rest @ ..] => {
            attempt::main(name, rest);
            ExitCode::SUCCESS
        }
        ["own-namespaces", name, rest @ ..] => {
            if let Err(errno) = attempt::own_namespaces() {
                println!("no namespaces: errno {errno}");
                return ExitCode::FAILURE;
            }
            attempt::main(name, rest);
            ExitCode::SUCCESS
        }
        ["parent", name, dir] => parent::main(name, dir),
        _ => rehearse(&args),
    }
}

fn rehearse(args: &[&str]) -> ExitCode {
    if args.contains(&"--list") {
        return ExitCode::SUCCESS;
    }
    // Flags of the usual test harness mean nothing here.
    let filters: Vec<&str> = args.iter().copied().filter(|a| !a.starts_with('-')).collect();
    let wanted = |id: &str, claim: &str| {
        filters.is_empty() || filters.iter().any(|f| id.contains(f) || claim.contains(f))
    };
    if !have("doors", Need::UserNamespaces) || !have("doors", Need::Landlock(6)) {
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    // Rehearsals that hang are left behind with their threads, and what they look at with them.
    let world: &'static World = Box::leak(Box::new(World::new()));
    let (mut passed, mut failed) = (0, 0);
    let mut report = |id: &str, claim: &str, result: Result<String, String>| {
        let (word, detail, most) = match &result {
            // Listed at the end, with what it needs.
            Ok(detail) if detail == scenario::NOT_RUN => return,
            Ok(detail) => ("held", detail, 120),
            Err(why) => ("LEAKED", why, 2000),
        };
        if result.is_ok() {
            passed += 1
        } else {
            failed += 1
        }
        let shown: String = detail.escape_debug().take(most).collect();
        println!("{id:<5} {word:<6} {claim}: {shown}");
    };
    for door in table::all(world).into_iter().filter(|d| wanted(d.id, &d.claim)) {
        let (id, claim) = (door.id, door.claim.clone());
        report(id, &claim, rehearsal(move || door.rehearse(world)));
    }
    for Scenario { id, claim, check } in scenario::all().filter(|s| wanted(s.id, s.claim)) {
        report(id, claim, rehearsal(move || check(world)));
    }
    for (test, need) in not_run() {
        println!("not run: {test}: needs {need}");
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How long one rehearsal may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// A panic fails one rehearsal and not all of them, and so does a hang.
fn rehearsal(
    check: impl FnOnce() -> Result<String, String> + Send + 'static,
) -> Result<String, String> {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        send.send(check()).ok();
    });
    match receive.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(format!("no end after {PATIENCE:?}")),
        Err(RecvTimeoutError::Disconnected) => Err("the rehearsal panicked; see above".to_owned()),
    }
}
