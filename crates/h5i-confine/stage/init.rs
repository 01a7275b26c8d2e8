//! The box's init: reaps, and forks each run from the list that the supervisor sends.

use crate::list::{List, Next, Slots};
use crate::socket;
use crate::sys::{self, PIDFD_OPEN, nr};
use crate::wire::{
    CONTROL_FD, ExecFailure, MAX_FDS, MSG_DESCRIPTOR, MSG_ENDED, MSG_START, MSG_STARTED, Message,
    OP_HAND_OUT,
};

/// Runs alive at once; a further start is refused with EAGAIN.
const MAX_RUNS: usize = 512;
const SIGCHLD: usize = 17;
const POLLIN: i16 = 1;
const EAGAIN: i32 = 11;

#[repr(C)]
struct PollFd {
    fd: i32,
    events: i16,
    revents: i16,
}

/// What `wait4` writes: two times and fourteen longs, of which the first is the peak in KiB.
#[repr(C)]
#[derive(Clone, Copy)]
struct Usage {
    user: [i64; 2],
    system: [i64; 2],
    rest: [i64; 14],
}

struct Runs {
    pids: [i64; MAX_RUNS],
    ids: [u64; MAX_RUNS],
}

/// Serves runs until the supervisor's end of the control socket is closed, then ends the box.
pub fn serve(slots: &Slots) -> ! {
    for &fd in &slots.0 {
        sys::close(fd);
    }
    // A caller that ignores SIGCHLD has handed that on, and the kernel would reap by itself.
    let default = [0usize; 4];
    // SAFETY: the kernel's struct sigaction, all zero: SIG_DFL, no flags, an empty mask.
    let _ = unsafe {
        sys::call(nr::RT_SIGACTION, [SIGCHLD, &default as *const usize as usize, 0, 8, 0, 0])
    };
    let mask: u64 = 1 << (SIGCHLD - 1);
    // SAFETY: SIG_BLOCK (0) with a pointer to an eight-byte set that lives during the call.
    let _ = unsafe {
        sys::call(nr::RT_SIGPROCMASK, [0, &mask as *const u64 as usize, 0, 8, 0, 0])
    };
    // SAFETY: a new signalfd for the same set; SFD_CLOEXEC|SFD_NONBLOCK.
    let signals = unsafe {
        sys::call(nr::SIGNALFD4, [usize::MAX, &mask as *const u64 as usize, 8, 0o2_004_000, 0, 0])
    };
    if signals < 0 {
        sys::exit(70);
    }
    let mut runs = Runs { pids: [0; MAX_RUNS], ids: [0; MAX_RUNS] };
    let mut polls = [
        PollFd { fd: CONTROL_FD, events: POLLIN, revents: 0 },
        PollFd { fd: signals as i32, events: POLLIN, revents: 0 },
    ];
    loop {
        let args = [&mut polls as *mut PollFd as usize, 2, 0, 0, 0, 0];
        // SAFETY: ppoll on two entries that live during the call, no timeout, no mask.
        let _ = unsafe { sys::call_again(nr::PPOLL, args) };
        if polls[1].revents != 0 {
            let mut info = [0u8; 128];
            // SAFETY: reads one signalfd_siginfo of 128 bytes into the buffer.
            let _ = unsafe {
                sys::call(nr::READ, [signals as usize, &mut info as *mut u8 as usize, 128, 0, 0, 0])
            };
            reap(&mut runs);
        }
        if polls[0].revents != 0 {
            let mut fds = [-1; MAX_FDS];
            match socket::receive(CONTROL_FD, &mut fds) {
                Some((message, count)) if message.kind == MSG_START => {
                    start(&mut runs, message.run, &fds[..count.min(MAX_FDS)]);
                    for &fd in &fds[..count.min(MAX_FDS)] {
                        sys::close(fd);
                    }
                }
                _ => sys::exit(0),
            }
        }
    }
}

fn reap(runs: &mut Runs) {
    loop {
        let mut status = 0i32;
        let mut usage = Usage { user: [0; 2], system: [0; 2], rest: [0; 14] };
        let args = [
            usize::MAX,
            &mut status as *mut i32 as usize,
            1,
            &mut usage as *mut Usage as usize,
            0,
            0,
        ];
        // SAFETY: wait4(-1, …, WNOHANG) writes an i32 and a struct rusage that live here.
        let pid = unsafe { sys::call(nr::WAIT4, args) };
        if pid <= 0 {
            return;
        }
        for i in 0..MAX_RUNS {
            if runs.pids[i] == pid as i64 {
                runs.pids[i] = 0;
                let message = Message {
                    kind: MSG_ENDED,
                    code: status as u32,
                    run: runs.ids[i],
                    value: pid as i64,
                    user_us: (usage.user[0] * 1_000_000 + usage.user[1]) as u64,
                    system_us: (usage.system[0] * 1_000_000 + usage.system[1]) as u64,
                    max_rss_kib: usage.rest[0] as u64,
                };
                let _ = socket::send(CONTROL_FD, &message, None);
            }
        }
    }
}

/// Forks and lets the child execute its list: descriptor 0 is the list, 1 the status pipe, the rest
/// are the list's slots 0, 1, 2….
fn start(runs: &mut Runs, id: u64, fds: &[i32]) {
    if fds.len() < 2 {
        return;
    }
    let Some(free) = (0..MAX_RUNS).find(|&i| runs.pids[i] == 0) else {
        refuse(fds[1], id, EAGAIN);
        return;
    };
    // SAFETY: clone(SIGCHLD) without CLONE_VM is fork; this process has one thread.
    let pid = unsafe { sys::call(nr::CLONE, [SIGCHLD, 0, 0, 0, 0, 0]) };
    if pid == 0 {
        announce(id);
        child(fds);
    }
    if pid < 0 {
        refuse(fds[1], id, -pid as i32);
        return;
    }
    runs.pids[free] = pid as i64;
    runs.ids[free] = id;
}

/// The run's process says which one it is, and says it before anything else: so the supervisor knows
/// it when it asks to execute its program.
fn announce(id: u64) {
    // SAFETY: getpid takes nothing.
    let pid = unsafe { sys::call(nr::GETPID, [0; 6]) };
    // SAFETY: pidfd_open takes numbers; a process is there as long as it runs.
    let pidfd = unsafe { sys::call(PIDFD_OPEN, [pid as usize, 0, 0, 0, 0, 0]) } as i32;
    let message = Message { kind: MSG_STARTED, run: id, value: pid as i64, ..Message::default() };
    let _ = socket::send(CONTROL_FD, &message, (pidfd >= 0).then_some(pidfd));
    sys::close(pidfd);
}

/// A run that was not forked has its end all the same: that of one that found no program.
fn refuse(status: i32, id: u64, errno: i32) {
    report(status, ExecFailure { step: u32::MAX, errno });
    let message = Message { kind: MSG_ENDED, code: 127 << 8, run: id, ..Message::default() };
    let _ = socket::send(CONTROL_FD, &message, None);
}

fn child(fds: &[i32]) -> ! {
    let empty = 0u64;
    // SAFETY: SIG_SETMASK (2) with a pointer to an eight-byte set that lives during the call.
    let _ = unsafe {
        sys::call(nr::RT_SIGPROCMASK, [2, &empty as *const u64 as usize, 0, 8, 0, 0])
    };
    let mut slots = Slots::empty();
    for (slot, &fd) in slots.0.iter_mut().zip(&fds[2..]) {
        *slot = fd;
    }
    let mut kept = 0;
    if let Some(list) = List::map(fds[0]) {
        for i in 0..list.head().calls as usize {
            match list.step(&list.call(i), &mut slots, &mut kept) {
                Ok(Next::Done) => {}
                Ok(Next::Operation(call)) if call.nr == OP_HAND_OUT => {
                    let code = call.args[1] as u32;
                    let message = Message { kind: MSG_DESCRIPTOR, code, ..Message::default() };
                    let _ = socket::send(CONTROL_FD, &message, Some(slots.at(call.args[0])));
                }
                Ok(Next::Operation(_)) => break,
                Err(failure) => {
                    let errno = failure.errno as i32;
                    report(fds[1], ExecFailure { step: failure.step, errno });
                    sys::exit_seen(127);
                }
            }
        }
    }
    report(fds[1], ExecFailure { step: u32::MAX, errno: 22 });
    sys::exit_seen(127)
}

fn report(pipe: i32, failure: ExecFailure) {
    let args =
        [pipe as usize, &failure as *const ExecFailure as usize, size_of::<ExecFailure>(), 0, 0, 0];
    // SAFETY: writes one plain struct that lives during the call.
    let _ = unsafe { sys::call_again(nr::WRITE, args) };
}
