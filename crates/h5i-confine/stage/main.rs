//! The stage: a static program without a C library, executed from a sealed memfd.
//!
//! It executes the list of system calls that the parent compiled, forks the box's init at the place
//! that the list names, and then keeps watch: when the supervisor's end of the control socket is
//! closed, by intent or because it died, the box's init is killed and with it everything in the
//! box's pid namespace. It stands outside that pid namespace, so nothing in the box can name it.
#![no_std]
#![no_main]

mod init;
mod keeper;
mod list;
mod leaving;
mod network;
mod numbers;
mod socket;
mod sys;
#[allow(dead_code, reason = "the library uses the rest")]
#[path = "../src/wire.rs"]
mod wire;

use list::{Failure, List, Next, Slots};
use sys::{PIDFD_OPEN, nr};
use wire::{
    CONTROL_FD, FIRST_SLOTS, LIST_FD, MAX_FDS, MSG_DESCRIPTOR, MSG_FAILED, MSG_LIST, MSG_READY,
    MSG_SLOTS, Message, OP_BECOME_INIT, OP_ENTER_NETWORK, OP_HAND_OUT, OP_HOST_LEFT, OP_LEAVE_HOST,
    OP_NEXT_LIST, OP_SERVE,
};

const SIGCHLD: usize = 17;
const SIGKILL: usize = 9;
const PR_SET_PDEATHSIG: usize = 1;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit(70)
}

extern "C" fn main(_stack: *const usize) -> ! {
    // SAFETY: closes every descriptor above the two that the parent placed; numbers only.
    let _ = unsafe { sys::call(sys::CLOSE_RANGE, [LIST_FD as usize + 1, u32::MAX as usize, 0, 0, 0, 0]) };
    // The places of input and output stay taken, so that nothing received lands there; each run
    // puts its own there.
    for fd in 0..CONTROL_FD as usize {
        // SAFETY: dup3 takes numbers; the control socket is open.
        let _ = unsafe {
            sys::call(sys::nr::DUP3, [CONTROL_FD as usize, fd, 0o2_000_000, 0, 0, 0])
        };
    }
    // It was open across this program's exec, and is not across the next one.
    // SAFETY: as above, from one of the places just taken.
    let _ = unsafe { sys::call(sys::nr::DUP3, [0, CONTROL_FD as usize, 0o2_000_000, 0, 0, 0]) };
    let Some(mut list) = List::map(LIST_FD) else { fail(u32::MAX, 22) };
    sys::close(LIST_FD);
    let mut slots = Slots::empty();
    let mut kept = 0;
    let mut i = 0;
    while i < list.head().calls as usize {
        let next = list.step(&list.call(i), &mut slots, &mut kept);
        i += 1;
        match next {
            Ok(Next::Done) => {}
            Ok(Next::Operation(call)) => match call.nr {
                OP_BECOME_INIT => become_init(&mut slots, call.args),
                OP_NEXT_LIST => {
                    list.unmap();
                    list = next_list();
                    receive_slots(&list, &mut slots);
                    i = 0;
                }
                OP_ENTER_NETWORK => {
                    if let Err(errno) = network::enter(&slots, call.args[0]) {
                        fail(call.step, errno);
                    }
                }
                OP_LEAVE_HOST => {
                    if let Err(errno) = leaving::ask(&slots, call.args[0], call.args[1]) {
                        fail(call.step, errno);
                    }
                }
                OP_HOST_LEFT => {
                    if let Err(errno) = leaving::wait(&slots, call.args[0]) {
                        fail(call.step, errno);
                    }
                }
                OP_HAND_OUT => hand_out(&slots, call.args[0], call.args[1] as u32, call.step),
                OP_SERVE => {
                    list.unmap();
                    let ready = Message { kind: MSG_READY, ..Message::default() };
                    if !socket::send(CONTROL_FD, &ready, None) {
                        sys::exit(0);
                    }
                    init::serve(&slots)
                }
                _ => fail(call.step, 38),
            },
            Err(Failure { step, errno }) => fail(step, errno),
        }
    }
    fail(u32::MAX, 22)
}

fn fail(step: u32, errno: i64) -> ! {
    let message = Message { kind: MSG_FAILED, code: step, value: errno, ..Message::default() };
    let _ = socket::send(CONTROL_FD, &message, None);
    sys::exit(70)
}

/// Waits for the list that the supervisor was still making. One that gave it up is not told.
fn next_list() -> List {
    let mut fds = [-1; MAX_FDS];
    let received = socket::receive(CONTROL_FD, &mut fds);
    let Some((Message { kind: MSG_LIST, .. }, 1)) = received else { sys::exit(0) };
    let Some(list) = List::map(fds[0]) else { fail(u32::MAX, 22) };
    sys::close(fds[0]);
    list
}

fn receive_slots(list: &List, slots: &mut Slots) {
    let wanted = list.head().received as usize;
    let mut have = 0;
    while have < wanted {
        let mut fds = [-1; MAX_FDS];
        match socket::receive(CONTROL_FD, &mut fds) {
            Some((message, count)) if message.kind == MSG_SLOTS && count > 0 => {
                for &fd in &fds[..count] {
                    let slot = FIRST_SLOTS as usize + have;
                    if slot < slots.0.len() {
                        slots.0[slot] = fd;
                    }
                    have += 1;
                }
            }
            _ => fail(u32::MAX, 22),
        }
    }
}

fn hand_out(slots: &Slots, slot: u64, tag: u32, step: u32) {
    let message = Message { kind: MSG_DESCRIPTOR, code: tag, ..Message::default() };
    if !socket::send(CONTROL_FD, &message, Some(slots.at(slot))) {
        fail(step, 32);
    }
}

/// Forks: the child returns and is the box's init, the parent watches and never returns.
fn become_init(slots: &mut Slots, [socket, own, network, ..]: [u64; 6]) {
    // SAFETY: clone(SIGCHLD) without CLONE_VM is fork; this process has one thread.
    let pid = unsafe { sys::call(nr::CLONE, [SIGCHLD, 0, 0, 0, 0, 0]) };
    if pid < 0 {
        fail(u32::MAX, -pid as i64);
    }
    if pid == 0 {
        // SAFETY: numbers only. The stage has one thread, so its death is the process's death.
        let _ = unsafe { sys::call(nr::PRCTL, [PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0]) };
        return;
    }
    if network != 0 {
        network::make(slots, socket, own);
    }
    // The init's end of the socket among them: only so is its death heard.
    let socket = slots.at(socket);
    for fd in &mut slots.0 {
        if *fd != socket {
            sys::close(*fd);
            *fd = -1;
        }
    }
    leaving::serve(socket);
    for fd in &mut slots.0 {
        sys::close(*fd);
        *fd = -1;
    }
    watch(pid as usize)
}

/// Waits for the supervisor or the init to end, sees to it that the other ends too, and exits when
/// every process of the box is gone.
fn watch(init: usize) -> ! {
    #[repr(C)]
    struct PollFd {
        fd: i32,
        events: i16,
        revents: i16,
    }
    let header: [u32; 2] = [0x2008_0522, 0];
    let none = [0u32; 6];
    // SAFETY: version 3 header and three words of data, all zero: gives up every capability.
    let _ = unsafe {
        sys::call(nr::CAPSET, [&header as *const u32 as usize, &none as *const u32 as usize, 0, 0, 0, 0])
    };
    // SAFETY: pidfd_open takes numbers; the pid is this process's unreaped child.
    let pidfd = unsafe { sys::call(PIDFD_OPEN, [init, 0, 0, 0, 0, 0]) };
    let mut polls = [
        PollFd { fd: CONTROL_FD, events: 0, revents: 0 },
        PollFd { fd: pidfd as i32, events: 1, revents: 0 },
    ];
    if pidfd >= 0 {
        let args = [&mut polls as *mut PollFd as usize, 2, 0, 0, 0, 0];
        // SAFETY: ppoll on two entries that live during the call, no timeout, no mask.
        let _ = unsafe { sys::call_again(nr::PPOLL, args) };
    }
    // SAFETY: numbers only; the child is not yet reaped, so the pid is still its own.
    let _ = unsafe { sys::call(nr::KILL, [init, SIGKILL, 0, 0, 0, 0]) };
    // An init is reaped only after the last process of its namespace.
    // SAFETY: waits for one child; no status or usage is asked for.
    let _ = unsafe { sys::call_again(nr::WAIT4, [init, 0, 0, 0, 0, 0]) };
    sys::exit(0)
}
