//! One direction of a flow: bytes from one socket to the other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

/// Bytes moved at once.
const AT_ONCE: usize = 1 << 20;
/// Pipes that are kept for the next flow.
const KEPT: usize = 32;

/// Pipes with nothing in them. A flow has one only while bytes of it are under way.
#[derive(Debug, Default)]
pub(super) struct Pipes(Vec<Pipe>);

#[derive(Debug)]
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

impl Pipes {
    fn take(&mut self) -> io::Result<Pipe> {
        if let Some(pipe) = self.0.pop() {
            return Ok(pipe);
        }
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Pipe { out, into })
    }

    fn give(&mut self, pipe: Pipe) {
        if self.0.len() < KEPT {
            self.0.push(pipe);
        }
    }
}

/// A socket and what is known of it.
#[derive(Debug)]
pub(super) struct End {
    pub(super) socket: OwnedFd,
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The other side reset it, or it could not be reached.
    pub(super) broken: bool,
}

impl End {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket, readable: false, writable: false, broken: false }
    }
}

/// One direction. What was read and not yet written is in `held` first, then in the pipe.
#[derive(Debug, Default)]
pub(super) struct Lane {
    held: Vec<u8>,
    written: usize,
    pipe: Option<Pipe>,
    piped: usize,
    ended: bool,
    shut: bool,
    bytes: u64,
}

/// How far a step came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It waits for a socket.
    Waits,
    /// So many bytes came; there may be more.
    Moved(usize),
    /// The source has ended, and the destination knows.
    Over,
}

impl Lane {
    /// Bytes that the destination has taken.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_over(&self) -> bool {
        self.shut
    }

    /// Bytes to be written before all that is spliced.
    pub(super) fn held(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }

    /// The source has said all.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Writes what was read; whether all of it is written.
    pub(super) fn flush(&mut self, to: &mut End, pipes: &mut Pipes) -> io::Result<bool> {
        while self.written < self.held.len() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&to.socket, &self.held[self.written..], flags) {
                Ok(count) => {
                    self.written += count;
                    self.bytes += count as u64;
                }
                Err(Errno::AGAIN) => {
                    to.writable = false;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.held.clear();
        self.written = 0;
        if let Some(pipe) = self.pipe.take() {
            while self.piped > 0 {
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
                match splice(&pipe.out, None, &to.socket, None, self.piped, flags) {
                    Ok(count) => {
                        self.piped -= count;
                        self.bytes += count as u64;
                    }
                    Err(Errno::AGAIN) => {
                        to.writable = false;
                        self.pipe = Some(pipe);
                        return Ok(false);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            pipes.give(pipe);
        }
        if self.held.capacity() > 4096 {
            self.held = Vec::new();
        }
        if self.ended && !self.shut {
            self.shut = true;
            match rustix::net::shutdown(&to.socket, Shutdown::Write) {
                Ok(()) | Err(Errno::NOTCONN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Moves what can be moved now without looking at it.
    pub(super) fn carry(
        &mut self,
        from: &mut End,
        to: &mut End,
        pipes: &mut Pipes,
    ) -> io::Result<Step> {
        if !self.flush(to, pipes)? {
            return Ok(Step::Waits);
        }
        if self.shut {
            return Ok(Step::Over);
        }
        if !from.readable {
            return Ok(Step::Waits);
        }
        let pipe = pipes.take()?;
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        match splice(&from.socket, None, &pipe.into, None, AT_ONCE, flags) {
            Ok(0) => {
                pipes.give(pipe);
                self.ended = true;
            }
            Ok(count) => {
                self.pipe = Some(pipe);
                self.piped = count;
                self.flush(to, pipes)?;
                return Ok(Step::Moved(count));
            }
            Err(Errno::AGAIN) => {
                from.readable = false;
                pipes.give(pipe);
                return Ok(Step::Waits);
            }
            Err(error) => return Err(error.into()),
        }
        self.flush(to, pipes)?;
        Ok(Step::Over)
    }
}

/// Reads what is there into `buffer`: `None` when there is nothing now, 0 at the end.
pub(super) fn read(from: &mut End, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match rustix::net::recv(from.socket.as_fd(), &mut *buffer, RecvFlags::DONTWAIT) {
        Ok((count, _)) => Ok(Some(count)),
        Err(Errno::AGAIN) => {
            from.readable = false;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
