//! The box's network namespace, made by the stage while the init builds the root: it is the most
//! expensive of all, and the two need nothing of each other.

use crate::list::Slots;
use crate::socket;
use crate::sys::{self, nr};
use crate::wire::{MAX_FDS, MSG_DESCRIPTOR, MSG_FAILED, Message};

const CLONE_NEWNET: usize = 0x4000_0000;
const O_RDONLY_CLOEXEC: usize = 0o2_000_000;

/// In the stage: makes the namespace and sends it, or the errno.
pub fn make(slots: &Slots, socket_slot: u64, own_slot: u64) {
    // SAFETY: a flag only; this process has one thread.
    let made = unsafe { sys::call(nr::UNSHARE, [CLONE_NEWNET, 0, 0, 0, 0, 0]) };
    let mut fd = -1;
    if made >= 0 {
        let own = slots.at(own_slot) as usize;
        let args = [own, c"net".as_ptr() as usize, O_RDONLY_CLOEXEC, 0, 0, 0];
        // SAFETY: a constant C string below a directory that is open.
        fd = unsafe { sys::call(nr::OPENAT, args) };
    }
    let failed = if made < 0 { made } else { fd };
    let (message, fd) = if failed < 0 {
        (Message { kind: MSG_FAILED, value: -failed as i64, ..Message::default() }, None)
    } else {
        (Message { kind: MSG_DESCRIPTOR, ..Message::default() }, Some(fd as i32))
    };
    // An init that is gone is noticed by the watch that follows.
    let _ = socket::send(slots.at(socket_slot), &message, fd);
    sys::close(fd.unwrap_or(-1));
}

/// In the init: waits for the namespace and enters it; the errno when it can't.
pub fn enter(slots: &Slots, socket_slot: u64) -> Result<(), i64> {
    const EPIPE: i64 = 32;
    let mut fds = [-1; MAX_FDS];
    match socket::receive(slots.at(socket_slot), &mut fds) {
        Some((message, 1)) if message.kind == MSG_DESCRIPTOR => {
            // SAFETY: numbers only.
            let entered =
                unsafe { sys::call(nr::SETNS, [fds[0] as usize, CLONE_NEWNET, 0, 0, 0, 0]) };
            sys::close(fds[0]);
            if entered < 0 { Err(-entered as i64) } else { Ok(()) }
        }
        Some((message, _)) if message.kind == MSG_FAILED => Err(message.value),
        _ => Err(EPIPE),
    }
}
