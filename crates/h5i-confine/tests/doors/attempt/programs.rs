//! Programs that are started in odd ways.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use super::{Attempt, number};
use crate::call::{A, Outcome, call, fork, leave, of, open, stay, wait};

pub(crate) const ALL: &[(&str, Attempt)] = &[
    // Started by `vfork` or what is like it.
    ("spawn", |a| {
        let status = Command::new(a[0]).args(&a[1..]).status().map_err(|e| of(&e))?;
        Ok(format!("{:?}", status.code()))
    }),
    ("spawn-many", |a| spawn_many(number(a[0]), number(a[1]))),
    ("from-descriptor", |a| from_descriptor(open(a[0], libc::O_RDONLY)?)),
    ("from-memory", |a| {
        let program = std::fs::read(a[0]).map_err(|e| of(&e))?;
        let memory = call(libc::SYS_memfd_create, &mut [A::S("hidden"), A::N(1)])?;
        let size = i64::try_from(program.len()).unwrap_or(0);
        call(libc::SYS_write, &mut [A::N(memory), A::In(&program), A::N(size)])?;
        from_descriptor(memory)
    }),
    // The calling thread takes the process over.
    ("from-thread", |a| {
        let words: Vec<String> = a.iter().map(ToString::to_string).collect();
        let thread =
            std::thread::spawn(move || of(&Command::new(&words[0]).args(&words[1..]).exec()));
        Err(thread.join().unwrap_or(0))
    }),
    ("under-another-name", |a| {
        const PR_SET_NAME: i64 = 15;
        call(libc::SYS_prctl, &mut [A::N(PR_SET_NAME), A::S("kworker) 1 (x")])?;
        Err(of(&Command::new(a[0]).args(&a[1..]).exec()))
    }),
    // Waits for its child a while after that has ended; yields its wait status.
    ("reap-late", |a| {
        let child = Command::new(a[1]).args(&a[2..]).spawn().map_err(|e| of(&e))?;
        std::thread::sleep(Duration::from_millis(u64::try_from(number(a[0])).unwrap_or(0)));
        Ok(wait(i32::try_from(child.id()).unwrap_or(0)).to_string())
    }),
    ("fail-and-end", |a| {
        of(&Command::new(a[0]).exec());
        if a[1] == "exit" {
            // The call that ends a thread alone.
            call(libc::SYS_exit, &mut [A::N(3)])?;
        }
        call(libc::SYS_kill, &mut [A::N(std::process::id().into()), A::N(9)])?;
        stay();
    }),
    ("without-leader", |a| {
        let (program, left) = (a[0].to_owned(), number(a[1]));
        std::thread::spawn(move || {
            let own = std::process::id();
            let stat = format!("/proc/{own}/task/{own}/stat");
            // The first thread is gone but for its number.
            while !std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")) {}
            if left > 0 {
                let left = (left - 1).to_string();
                of(&Command::new(&program)
                    .args(["attempt", "without-leader", &program, &left])
                    .exec());
            }
            call(libc::SYS_exit_group, &mut [A::N(7)])
        });
        call(libc::SYS_exit, &mut [A::N(0)])?;
        stay();
    }),
    // Two programs by turns, each with its memory where the other one had it.
    ("unrandomised", |a| {
        const ADDR_NO_RANDOMIZE: i64 = 0x4_0000;
        call(libc::SYS_personality, &mut [A::N(ADDR_NO_RANDOMIZE)])?;
        let left = number(a[2]);
        if left == 0 {
            leave(0);
        }
        let left = (left - 1).to_string();
        Err(of(&Command::new(a[0]).args(["attempt", "unrandomised", a[1], a[0], &left]).exec()))
    }),
    ("without-arguments", |a| {
        let pid = fork();
        if pid == 0 {
            call(libc::SYS_execve, &mut [A::S(a[0]), A::N(8), A::N(0)]).ok();
            leave(9);
        }
        Ok(format!("{}", wait(pid) >> 8))
    }),
];

/// Executes what a descriptor is, in a child; yields its code.
fn from_descriptor(descriptor: i64) -> Outcome {
    let pid = fork();
    if pid == 0 {
        let words = [c"by-descriptor".as_ptr() as u64, c"x".as_ptr() as u64, 0];
        let argv: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let args = &mut [
            A::N(descriptor),
            A::S(""),
            A::In(&argv),
            A::N(0),
            A::N(libc::AT_EMPTY_PATH.into()),
        ];
        call(libc::SYS_execveat, args).ok();
        leave(99);
    }
    Ok(format!("{}", wait(pid) >> 8))
}

/// Starts as many programs, from as many threads, and waits for each.
fn spawn_many(programs: i64, threads: i64) -> Outcome {
    let each = programs / threads;
    let all: Vec<_> = (0..threads)
        .map(|thread| {
            std::thread::spawn(move || {
                (0..each).all(|n| {
                    let named = format!("{thread}-{n}");
                    Command::new("/bin/true").arg(named).status().is_ok_and(|end| end.success())
                })
            })
        })
        .collect();
    let fine = all.into_iter().all(|thread| thread.join().unwrap_or(false));
    Ok(format!("{fine} {}", each * threads))
}
