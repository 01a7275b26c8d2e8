//! The unmounting of the host's files, done by the stage while the init goes on: the kernel waits for
//! every processor before such a mount is gone, and the init has other things to do meanwhile. No run
//! starts before it is done.

use crate::list::Slots;
use crate::socket;
use crate::sys::{self, nr};
use crate::wire::{MAX_FDS, MSG_DESCRIPTOR, MSG_FAILED, MSG_READY, Message};

const EPIPE: i64 = 32;
const MNT_DETACH: usize = 2;

/// In the init: has the stage unmount the root whose descriptor is in a slot.
pub fn ask(slots: &Slots, socket_slot: u64, host_slot: u64) -> Result<(), i64> {
    let message = Message { kind: MSG_DESCRIPTOR, ..Message::default() };
    let sent = socket::send(slots.at(socket_slot), &message, Some(slots.at(host_slot)));
    if sent { Ok(()) } else { Err(EPIPE) }
}

/// In the init: returns once it is unmounted; the errno when it could not be.
pub fn wait(slots: &Slots, socket_slot: u64) -> Result<(), i64> {
    let mut fds = [-1; MAX_FDS];
    match socket::receive(slots.at(socket_slot), &mut fds) {
        Some((message, _)) if message.kind == MSG_READY => Ok(()),
        Some((message, _)) if message.kind == MSG_FAILED => Err(message.value),
        _ => Err(EPIPE),
    }
}

/// In the stage: does it when it is asked; returns when it has, or when nobody will ask.
pub fn serve(socket: i32) {
    let mut fds = [-1; MAX_FDS];
    let Some((_, 1)) = socket::receive(socket, &mut fds) else { return };
    let failed = unmount(fds[0]);
    let message = if failed < 0 {
        Message { kind: MSG_FAILED, value: -failed as i64, ..Message::default() }
    } else {
        Message { kind: MSG_READY, ..Message::default() }
    };
    // An init that is gone is noticed by the watch that follows.
    let _ = socket::send(socket, &message, None);
}

/// Unmounts what the descriptor shows, with everything below; negative is the error.
fn unmount(host: i32) -> isize {
    // SAFETY: takes a number.
    let mut done = unsafe { sys::call(nr::FCHDIR, [host as usize, 0, 0, 0, 0, 0]) };
    sys::close(host);
    if done >= 0 {
        let here = c".".as_ptr() as usize;
        // SAFETY: a constant C string.
        done = unsafe { sys::call(nr::UMOUNT2, [here, MNT_DETACH, 0, 0, 0, 0]) };
    }
    if done >= 0 {
        // SAFETY: a constant C string.
        done = unsafe { sys::call(nr::CHDIR, [c"/".as_ptr() as usize, 0, 0, 0, 0, 0]) };
    }
    done
}
