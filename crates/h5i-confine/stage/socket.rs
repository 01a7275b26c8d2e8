//! Messages with descriptors over the control socket.

use crate::sys::{self, nr};
use crate::wire::{MAX_FDS, Message};

#[repr(C)]
struct Iov {
    base: usize,
    len: usize,
}

#[repr(C)]
struct Msghdr {
    name: usize,
    name_len: u32,
    pad: u32,
    iov: usize,
    iov_len: usize,
    control: usize,
    control_len: usize,
    flags: i32,
    pad2: u32,
}

/// `struct cmsghdr` with room for descriptors behind it.
#[repr(C, align(8))]
struct Control {
    len: usize,
    level: i32,
    kind: i32,
    fds: [i32; MAX_FDS],
}

const CONTROL_HEAD: usize = 16;
const SOL_SOCKET: i32 = 1;
const SCM_RIGHTS: i32 = 1;
const MSG_NOSIGNAL: usize = 0x4000;
const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;

fn header(iov: &Iov, control: usize, control_len: usize) -> Msghdr {
    Msghdr {
        name: 0,
        name_len: 0,
        pad: 0,
        iov: iov as *const Iov as usize,
        iov_len: 1,
        control,
        control_len,
        flags: 0,
        pad2: 0,
    }
}

/// Sends one message, with one descriptor or none; false when the other side is gone.
pub fn send(socket: i32, message: &Message, fd: Option<i32>) -> bool {
    let iov = Iov { base: message as *const Message as usize, len: size_of::<Message>() };
    let mut control = Control {
        len: CONTROL_HEAD + 4,
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        fds: [0; MAX_FDS],
    };
    let head = match fd {
        Some(fd) => {
            control.fds[0] = fd;
            header(&iov, &control as *const Control as usize, CONTROL_HEAD + 8)
        }
        None => header(&iov, 0, 0),
    };
    let args = [socket as usize, &head as *const Msghdr as usize, MSG_NOSIGNAL, 0, 0, 0];
    // SAFETY: head, iov, control and message live until the call returns.
    unsafe { sys::call_again(nr::SENDMSG, args) >= 0 }
}

/// Receives one message and its descriptors (close-on-exec); `None` at the end or on an error.
pub fn receive(socket: i32, fds: &mut [i32; MAX_FDS]) -> Option<(Message, usize)> {
    let mut message = Message::default();
    let iov = Iov { base: &mut message as *mut Message as usize, len: size_of::<Message>() };
    let mut control = Control { len: 0, level: 0, kind: 0, fds: [0; MAX_FDS] };
    let mut head = header(&iov, &mut control as *mut Control as usize, size_of::<Control>());
    let args = [socket as usize, &mut head as *mut Msghdr as usize, MSG_CMSG_CLOEXEC, 0, 0, 0];
    // SAFETY: head, iov, control and message live until the call returns and are large enough.
    let got = unsafe { sys::call_again(nr::RECVMSG, args) };
    if got != size_of::<Message>() as isize {
        return None;
    }
    let mut count = 0;
    if head.control_len >= CONTROL_HEAD && control.kind == SCM_RIGHTS {
        count = (control.len - CONTROL_HEAD) / 4;
        let mut i = 0;
        while i < count && i < MAX_FDS {
            fds[i] = control.fds[i];
            i += 1;
        }
    }
    Some((message, count))
}
