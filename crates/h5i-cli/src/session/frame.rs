//! One message of the conversation between a session's holder and another process: a version and a
//! length, then JSON of one type, with descriptors.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Both sides speak exactly this; another one is another program.
const VERSION: u32 = 0x6835_0001;
/// The largest message: a command line with its environment is 2 MiB at most on Linux, and JSON may
/// write a byte as several.
const MOST: usize = 16 * 1024 * 1024;
/// The most descriptors of a message.
pub(super) const MOST_FDS: usize = 4;
const HEAD: usize = 8;

/// Sends one message.
///
/// # Errors
/// What the kernel says; `InvalidInput` for what is too large.
pub(super) fn send(
    mut stream: &UnixStream,
    message: &impl Serialize,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - HEAD;
    let told = u32::try_from(length).ok().filter(|_| length <= MOST && fds.len() <= MOST_FDS);
    let Some(told) = told else { return Err(io::ErrorKind::InvalidInput.into()) };
    bytes[..4].copy_from_slice(&VERSION.to_ne_bytes());
    bytes[4..HEAD].copy_from_slice(&told.to_ne_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Descriptors arrive with the first byte, so the head goes with them; the rest may take longer.
    let parts = [IoSlice::new(&bytes)];
    let sent =
        rustix::io::retry_on_intr(|| sendmsg(stream, &parts, &mut control, SendFlags::NOSIGNAL))?;
    stream.write_all(&bytes[sent..])
}

/// Receives one message; `None` at the end of the conversation.
///
/// # Errors
/// `InvalidData` for what is no message of this version, `UnexpectedEof` for half a one, or what the
/// kernel says.
pub(super) fn receive<T: DeserializeOwned>(
    stream: &UnixStream,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut head = [0; HEAD];
    let mut fds = Vec::new();
    let mut have = 0;
    while have < HEAD {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut head[have..])];
        let got = match recvmsg(stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(got) => got.bytes,
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::CONNRESET) if have == 0 => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        match got {
            0 if have == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            got => have += got,
        }
    }
    let [v0, v1, v2, v3, l0, l1, l2, l3] = head;
    let version = u32::from_ne_bytes([v0, v1, v2, v3]);
    let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX);
    if version != VERSION || length > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // What was announced is made room for as it comes.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((serde_json::from_slice(&bytes)?, fds)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::{MOST, VERSION, receive, send};

    #[test]
    fn a_message_arrives_with_its_descriptors_whatever_its_size() {
        let (here, there) = UnixStream::pair().unwrap();
        let long = "x".repeat(3_000_000);
        let sent = long.clone();
        let sender = std::thread::spawn(move || {
            send(&here, &"short", &[here.as_fd(), here.as_fd()]).unwrap();
            send(&here, &sent, &[]).unwrap();
        });
        let (short, fds) = receive::<String>(&there).unwrap().unwrap();
        assert_eq!((short.as_str(), fds.len()), ("short", 2));
        let (got, none) = receive::<String>(&there).unwrap().unwrap();
        assert!(got == long && none.is_empty());
        drop(fds);
        sender.join().unwrap();
        assert!(receive::<String>(&there).unwrap().is_none());
    }

    #[test]
    fn another_version_a_flood_and_half_a_message_are_refused() {
        let told = |version: u32, length: u32, rest: &[u8]| {
            let (mut here, there) = UnixStream::pair().unwrap();
            here.write_all(&version.to_ne_bytes()).unwrap();
            here.write_all(&length.to_ne_bytes()).unwrap();
            here.write_all(rest).unwrap();
            drop(here);
            receive::<String>(&there).map(|got| got.unwrap().0).map_err(|e| e.kind())
        };
        assert_eq!(told(VERSION, 4, b"\"ok\""), Ok("ok".to_owned()));
        assert_eq!(told(VERSION + 1, 4, b"\"ok\""), Err(std::io::ErrorKind::InvalidData));
        let flood = u32::try_from(MOST + 1).unwrap();
        assert_eq!(told(VERSION, flood, b""), Err(std::io::ErrorKind::InvalidData));
        assert_eq!(told(VERSION, 9, b"\"ok\""), Err(std::io::ErrorKind::UnexpectedEof));
        assert_eq!(told(VERSION, 2, b"{}"), Err(std::io::ErrorKind::InvalidData));
    }
}
