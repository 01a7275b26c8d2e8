//! Attempts on budgets.

use super::{Attempt, number};
use crate::call::{A, Outcome, call, fork, leave, open, stay, wait};

pub(crate) const ALL: &[(&str, Attempt)] = &[
    ("fork-until", |a| fork_until(number(a[0]))),
    ("open-until", |a| {
        for opened in 0..number(a[0]) {
            if let Err(errno) = open("/dev/null", libc::O_RDONLY) {
                return Ok(format!("{opened} errno {errno}"));
            }
        }
        Ok(a[0].to_owned())
    }),
    ("refuse-many", |a| {
        for _ in 0..number(a[0]) {
            if call(libc::SYS_setns, &mut [A::N(-1), A::N(0)]) != Err(libc::EPERM) {
                return Ok("not refused".to_owned());
            }
        }
        Ok(a[0].to_owned())
    }),
    ("refuse-and-die", |a| refuse_and_die(number(a[0]))),
    ("refuse-kinds", |a| {
        for kind in 0..number(a[0]) {
            // A family of its own each time: each is a kind of refusal.
            call(libc::SYS_socket, &mut [A::N(100 + kind), A::N(1), A::N(0)]).ok();
        }
        Ok(a[0].to_owned())
    }),
];

/// Forks children that stay, until it is refused.
fn fork_until(most: i64) -> Outcome {
    let mut children = Vec::new();
    let mut refused = String::new();
    for _ in 0..most {
        let pid = fork();
        match pid {
            0 => stay(),
            -1 => {
                refused = format!(" errno {}", crate::call::errno());
                break;
            }
            _ => children.push(pid),
        }
    }
    let forked = children.len();
    for pid in children {
        call(libc::SYS_kill, &mut [A::N(pid.into()), A::N(9)]).ok();
        wait(pid);
    }
    Ok(format!("{forked}{refused}"))
}

/// Threads that make a refused call and are killed while they wait for the answer.
fn refuse_and_die(times: i64) -> Outcome {
    for _ in 0..times {
        let pid = fork();
        if pid == 0 {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    std::thread::spawn(|| call(libc::SYS_setns, &mut [A::N(-1), A::N(0)]).ok())
                })
                .collect();
            drop(threads);
            leave(0);
        }
        call(libc::SYS_kill, &mut [A::N(pid.into()), A::N(9)]).ok();
        wait(pid);
    }
    Ok(times.to_string())
}
