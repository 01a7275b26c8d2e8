//! Messages between the supervisor and the box's side, with descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::wire::{MAX_FDS, Message};

const SIZE: usize = size_of::<Message>();
const _: () = assert!(SIZE == 48);

/// Sends one message. The kernel keeps message borders (`SOCK_SEQPACKET`).
pub(crate) fn send(socket: impl AsFd, message: &Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let bytes = encode(message);
    let parts = [IoSlice::new(&bytes)];
    rustix::io::retry_on_intr(|| sendmsg(&socket, &parts, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one message. `None` at the end of the conversation.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<(Message, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0u8; SIZE];
    let got = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(got) => break got.bytes,
            // A peer that ended with something unread is told of once, ahead of its last words.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    match got {
        0 => Ok(None),
        SIZE => Ok(Some((decode(&bytes), fds))),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

fn encode(m: &Message) -> [u8; SIZE] {
    let mut bytes = [0u8; SIZE];
    bytes[0..4].copy_from_slice(&m.kind.to_ne_bytes());
    bytes[4..8].copy_from_slice(&m.code.to_ne_bytes());
    bytes[8..16].copy_from_slice(&m.run.to_ne_bytes());
    bytes[16..24].copy_from_slice(&m.value.to_ne_bytes());
    bytes[24..32].copy_from_slice(&m.user_us.to_ne_bytes());
    bytes[32..40].copy_from_slice(&m.system_us.to_ne_bytes());
    bytes[40..48].copy_from_slice(&m.max_rss_kib.to_ne_bytes());
    bytes
}

fn decode(bytes: &[u8; SIZE]) -> Message {
    let word = |at: usize| {
        let mut word = [0u8; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_ne_bytes(word)
    };
    let half = |at: usize| {
        let mut half = [0u8; 4];
        half.copy_from_slice(&bytes[at..at + 4]);
        u32::from_ne_bytes(half)
    };
    Message {
        kind: half(0),
        code: half(4),
        run: word(8),
        value: word(16).cast_signed(),
        user_us: word(24),
        system_us: word(32),
        max_rss_kib: word(40),
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn the_last_words_of_a_peer_that_left_something_unread_are_heard() {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        send(&ours, &Message { kind: 1, ..Message::default() }, &[]).unwrap();
        send(&theirs, &Message { kind: 2, ..Message::default() }, &[]).unwrap();
        drop(theirs);
        let heard = receive(&ours).unwrap().map(|(message, _)| message.kind);
        assert_eq!(heard, Some(2));
        assert!(receive(&ours).unwrap().is_none());
    }
}
