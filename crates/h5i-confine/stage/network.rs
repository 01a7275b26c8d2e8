//! The box's network namespace, made by the stage while the init builds the root: it is the most
//! expensive of all, and the two need nothing of each other.

use crate::list::Slots;
use crate::socket;
use crate::sys::{self, nr};
use crate::wire::{MAX_FDS, MSG_DESCRIPTOR, MSG_FAILED, Message};

const CLONE_NEWNET: usize = 0x4000_0000;
const O_RDONLY_CLOEXEC: usize = 0o2_000_000;

/// In the stage: makes the namespace, brings its loopback up and sends it, or the errno.
pub fn make(slots: &Slots, socket_slot: u64, own_slot: u64) {
    // SAFETY: a flag only; this process has one thread.
    let mut made = unsafe { sys::call(nr::UNSHARE, [CLONE_NEWNET, 0, 0, 0, 0, 0]) };
    let mut fd = -1;
    if made >= 0 {
        made = loopback_up();
    }
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

/// `struct ifreq` of netdevice(7): a name, then flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// Brings the loopback interface of this process's network namespace up; negative is the error.
fn loopback_up() -> isize {
    const AF_INET: usize = 2;
    const SOCK_DGRAM_CLOEXEC: usize = 0o2_000_002;
    const SIOCSIFFLAGS: usize = 0x8914;
    const IFF_UP_RUNNING: u16 = 0x41;
    // SAFETY: numbers only.
    let socket = unsafe { sys::call(nr::SOCKET, [AF_INET, SOCK_DGRAM_CLOEXEC, 0, 0, 0, 0]) };
    if socket < 0 {
        return socket;
    }
    let mut request = InterfaceRequest { name: [0; 16], flags: IFF_UP_RUNNING, rest: [0; 22] };
    request.name[0] = b'l';
    request.name[1] = b'o';
    let args = [socket as usize, SIOCSIFFLAGS, &raw const request as usize, 0, 0, 0];
    // SAFETY: the request is of the size that the kernel reads, and lives during the call.
    let up = unsafe { sys::call(nr::IOCTL, args) };
    sys::close(socket as i32);
    up
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
