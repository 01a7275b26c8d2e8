//! Attempts on budgets.

use std::time::Duration;

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
    ("take-memory", |a| take_memory(number(a[0]), held(a))),
    ("take-memory-file", |a| take_memory_file(number(a[0]), held(a))),
    ("take-segment", |a| take_segment(number(a[0]), held(a))),
    ("take-semaphores", |a| take_semaphores(number(a[0]), held(a))),
    ("take-messages", |a| take_messages(number(a[0]), held(a))),
    ("share-memory", |a| share_memory(number(a[0]), number(a[1]), held(a))),
    ("write-removed", |a| write_removed(a[0], number(a[1]), held(a))),
    ("write-closed", |a| write_closed(a[0], number(a[1]), held(a))),
    ("make-files", |a| make_files(a[0], number(a[1]))),
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

const MIB: usize = 1 << 20;

/// How long what was taken is held, so that it can be measured.
const HELD: Duration = Duration::from_secs(1);
/// The same where it must be stopped meanwhile, however late the machine is.
const HELD_LONG: Duration = Duration::from_secs(60);

fn held(arguments: &[&str]) -> Duration {
    if arguments.last() == Some(&"long") { HELD_LONG } else { HELD }
}

/// Takes memory, MiB by MiB, and holds it.
fn take_memory(mebibytes: i64, held: Duration) -> Outcome {
    let taken: Vec<Vec<u8>> = (0..mebibytes).map(|_| vec![1; MIB]).collect();
    std::thread::sleep(held);
    Ok(taken.len().to_string())
}

/// The same in a file of memory that is mapped nowhere.
fn take_memory_file(mebibytes: i64, held: Duration) -> Outcome {
    let fd = call(libc::SYS_memfd_create, &mut [A::S("large"), A::N(0)])?;
    write_all(fd, mebibytes)?;
    std::thread::sleep(held);
    Ok(mebibytes.to_string())
}

/// The same in a System V segment that nobody has attached.
fn take_segment(mebibytes: i64, held: Duration) -> Outcome {
    let size = || A::N(mebibytes * i64::try_from(MIB).unwrap());
    let mode = A::N((libc::IPC_CREAT | 0o600).into());
    let segment = call(libc::SYS_shmget, &mut [A::N(libc::IPC_PRIVATE.into()), size(), mode])?;
    let at = call(libc::SYS_shmat, &mut [A::N(segment), A::N(0), A::N(0)])?;
    // The kernel writes each page: zeros, from a file, to where the segment stands.
    let zero = open("/dev/zero", libc::O_RDONLY)?;
    let filled = call(libc::SYS_read, &mut [A::N(zero), A::N(at), size()]);
    call(libc::SYS_shmdt, &mut [A::N(at)])?;
    std::thread::sleep(held);
    call(libc::SYS_shmctl, &mut [A::N(segment), A::N(libc::IPC_RMID.into()), A::N(0)])?;
    Ok((filled? >> 20).to_string())
}

/// So many sets of 16,000 semaphores, a MiB each.
fn take_semaphores(sets: i64, held: Duration) -> Outcome {
    let mode = || A::N((libc::IPC_CREAT | 0o600).into());
    let mut made = Vec::new();
    for _ in 0..sets {
        let private = A::N(libc::IPC_PRIVATE.into());
        made.push(call(libc::SYS_semget, &mut [private, A::N(16_000), mode()])?);
    }
    std::thread::sleep(held);
    for set in made {
        call(libc::SYS_semctl, &mut [A::N(set), A::N(0), A::N(libc::IPC_RMID.into())])?;
    }
    Ok(sets.to_string())
}

/// So many MiB of messages, in queues of 16 KiB.
fn take_messages(mebibytes: i64, held: Duration) -> Outcome {
    let mode = || A::N((libc::IPC_CREAT | 0o600).into());
    let mut made = Vec::new();
    for _ in 0..mebibytes * 64 {
        let queue = call(libc::SYS_msgget, &mut [A::N(libc::IPC_PRIVATE.into()), mode()])?;
        made.push(queue);
        for _ in 0..2 {
            // A message is its type, and bytes.
            let message = [1_u8; 8 + 8000];
            call(libc::SYS_msgsnd, &mut [A::N(queue), A::In(&message), A::N(8000), A::N(0)])?;
        }
    }
    std::thread::sleep(held);
    for queue in made {
        call(libc::SYS_msgctl, &mut [A::N(queue), A::N(libc::IPC_RMID.into()), A::N(0)])?;
    }
    Ok(mebibytes.to_string())
}

/// Takes memory once and has children that share it.
fn share_memory(mebibytes: i64, children: i64, held: Duration) -> Outcome {
    let taken: Vec<Vec<u8>> = (0..mebibytes).map(|_| vec![1; MIB]).collect();
    let mut pids = Vec::new();
    for _ in 0..children {
        match fork() {
            0 => stay(),
            pid => pids.push(pid),
        }
    }
    std::thread::sleep(held);
    for pid in pids {
        call(libc::SYS_kill, &mut [A::N(pid.into()), A::N(9)]).ok();
        wait(pid);
    }
    Ok(taken.len().to_string())
}

fn write_all(fd: i64, mebibytes: i64) -> Result<(), i32> {
    let bytes = vec![1; MIB];
    for _ in 0..mebibytes {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let length = A::N(i64::try_from(rest.len()).unwrap());
            let written = call(libc::SYS_write, &mut [A::N(fd), A::In(rest), length])?;
            rest = &rest[usize::try_from(written).unwrap()..];
        }
    }
    Ok(())
}

/// Writes to a file that no directory has any more.
fn write_removed(path: &str, mebibytes: i64, held: Duration) -> Outcome {
    let fd = open(path, libc::O_RDWR | libc::O_CREAT)?;
    std::fs::remove_file(path).map_err(|e| crate::call::of(&e))?;
    write_all(fd, mebibytes)?;
    std::thread::sleep(held);
    Ok(mebibytes.to_string())
}

/// Writes to a file of a directory that nobody may look into.
fn write_closed(directory: &str, mebibytes: i64, held: Duration) -> Outcome {
    std::fs::create_dir(directory).map_err(|e| crate::call::of(&e))?;
    let fd = open(&format!("{directory}/large"), libc::O_RDWR | libc::O_CREAT)?;
    let closed = &mut [A::N(crate::call::AT_FDCWD), A::S(directory), A::N(0)];
    call(libc::SYS_fchmodat, closed)?;
    write_all(fd, mebibytes)?;
    std::thread::sleep(held);
    Ok(mebibytes.to_string())
}

/// Makes empty files until it is refused.
fn make_files(directory: &str, most: i64) -> Outcome {
    for made in 0..most {
        let path = format!("{directory}/{made}");
        let fd = match open(&path, libc::O_WRONLY | libc::O_CREAT) {
            Err(errno) => return Ok(format!("{made} errno {errno}")),
            Ok(fd) => fd,
        };
        call(libc::SYS_close, &mut [A::N(fd)])?;
    }
    std::thread::sleep(HELD);
    Ok(most.to_string())
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
