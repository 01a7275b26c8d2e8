//! The attempts: what the program does when it is started as `attempt NAME ARGS…`.

mod amounts;
mod files;
mod kernel;
mod mounts;
mod processes;
mod programs;
mod sockets;

pub(crate) use mounts::own_namespaces;

use crate::call::{A, Outcome, call};

pub(crate) type Attempt = fn(&[&str]) -> Outcome;

/// Makes one attempt and says in one line how it went. As `nameless NAME ARGS…`, by a process whose
/// name is no text.
pub(crate) fn main(name: &str, args: &[&str]) {
    if let ("nameless", [name, args @ ..]) = (name, args) {
        const PR_SET_NAME: i64 = 15;
        call(libc::SYS_prctl, &mut [A::N(PR_SET_NAME), A::In(b"\xff) \xfe\0")]).unwrap();
        return main(name, args);
    }
    let found = [
        amounts::ALL,
        files::ALL,
        kernel::ALL,
        mounts::ALL,
        processes::ALL,
        programs::ALL,
        sockets::ALL,
    ]
    .into_iter()
    .flatten()
    .find(|(known, _)| *known == name);
    let Some((_, attempt)) = found else {
        println!("no attempt is named {name}");
        return;
    };
    match attempt(args) {
        Ok(detail) => println!("ok {detail}"),
        Err(errno) => println!("errno {errno}"),
    }
}

/// A number in an attempt's arguments.
pub(crate) fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}
