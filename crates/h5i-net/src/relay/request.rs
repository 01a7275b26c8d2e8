//! HTTP/1 as the client sends it: each request of a connection must name an allowed host.
//!
//! Strict, because the server's parser must not see another request than this one does: what RFC
//! 9112 lets a server read in two ways ends the connection.

use h5i_policy::HostName;

use crate::event::Refusal;

mod head;

use head::{Body, Head};

/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// The longest line of a chunk: sixteen digits and the end of the line.
const LONGEST_CHUNK_LINE: usize = 18;

/// The requests of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    state: State,
    held: Vec<u8>,
    port: u16,
    count: u64,
    last: Option<HostName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the head of a request.
    Head,
    /// So many bytes of the body are left.
    Body(u64),
    ChunkLine,
    /// So many bytes are left, the end of the line included.
    Chunk(u64),
    Trailers,
    /// The client asked to speak something else; what that is must be seen in the answer.
    Upgrade(Upgrade),
}

/// What the client asked to speak from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upgrade {
    WebSocket,
    /// HTTP/2 and all else, where a host could be named out of sight.
    Other,
}

impl Requests {
    pub(crate) fn new(port: u16) -> Self {
        Self { state: State::Head, held: Vec::new(), port, count: 0, last: None }
    }

    /// The host that was named last.
    pub(crate) fn name(&self) -> Option<&HostName> {
        self.last.as_ref()
    }

    /// The upgrade whose answer must be seen before more of the client is read.
    pub(crate) fn waits_for(&self) -> Option<Upgrade> {
        match self.state {
            State::Upgrade(to) => Some(to),
            _ => None,
        }
    }

    /// The server did not switch: requests go on.
    pub(crate) fn stays(&mut self) {
        self.state = State::Head;
    }

    /// Whether the connection may end here.
    pub(crate) fn is_between(&self) -> bool {
        self.state == State::Head && self.held.is_empty()
    }

    /// Reads `input`, appends to `out` what may be sent, and yields how much was read: all of it,
    /// or up to the end of a request that asks for an upgrade.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        allowed: impl Fn(&HostName) -> bool,
    ) -> Result<usize, Refusal> {
        let mut rest = input;
        while !rest.is_empty() {
            match self.state {
                State::Body(left) | State::Chunk(left) => {
                    let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    let (taken, after) = rest.split_at(count);
                    self.pass(taken, left, out)?;
                    rest = after;
                }
                State::Head => {
                    let Some(after) = self.until(rest, b"\r\n\r\n", LONGEST_HEAD)? else { break };
                    rest = after;
                    self.head(&allowed)?;
                    out.append(&mut self.held);
                }
                State::ChunkLine => {
                    let Some(after) = self.until(rest, b"\r\n", LONGEST_CHUNK_LINE)? else { break };
                    rest = after;
                    let size = chunk_size(&self.held).ok_or(Refusal::MalformedRequest)?;
                    self.state = match size.checked_add(2) {
                        Some(2) => State::Trailers,
                        Some(with_end) => State::Chunk(with_end),
                        None => return Err(Refusal::MalformedRequest),
                    };
                    out.append(&mut self.held);
                }
                State::Trailers => {
                    let Some(after) = self.until(rest, b"\r\n", LONGEST_HEAD)? else { break };
                    rest = after;
                    if self.held == b"\r\n" {
                        self.state = State::Head;
                    } else if !head::is_field(&self.held[..self.held.len() - 2]) {
                        return Err(Refusal::MalformedRequest);
                    }
                    out.append(&mut self.held);
                }
                State::Upgrade(_) => return Ok(input.len() - rest.len()),
            }
        }
        Ok(input.len())
    }

    /// Sends bytes of a body on; a chunk ends with the end of a line.
    fn pass(&mut self, taken: &[u8], left: u64, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let is_chunk = matches!(self.state, State::Chunk(_));
        let mut left = left;
        for byte in taken {
            let expected = match left {
                2 if is_chunk => Some(b'\r'),
                1 if is_chunk => Some(b'\n'),
                _ => None,
            };
            if expected.is_some_and(|end| end != *byte) {
                return Err(Refusal::MalformedRequest);
            }
            left -= 1;
        }
        out.extend(taken);
        self.state = match (is_chunk, left) {
            (true, 0) => State::ChunkLine,
            (false, 0) => State::Head,
            (true, left) => State::Chunk(left),
            (false, left) => State::Body(left),
        };
        Ok(())
    }

    /// Holds bytes up to and with `end`; yields what follows it, `None` when it is not there yet.
    fn until<'a>(
        &mut self,
        rest: &'a [u8],
        end: &[u8],
        longest: usize,
    ) -> Result<Option<&'a [u8]>, Refusal> {
        for (at, byte) in rest.iter().enumerate() {
            self.held.push(*byte);
            if self.held.ends_with(end) {
                return Ok(Some(&rest[at + 1..]));
            }
            if self.held.len() >= longest {
                return Err(Refusal::MalformedRequest);
            }
        }
        Ok(None)
    }

    fn head(&mut self, allowed: &impl Fn(&HostName) -> bool) -> Result<(), Refusal> {
        let head = Head::read(&self.held).ok_or(Refusal::MalformedRequest)?;
        if head.port.is_some_and(|port| port != self.port) || !allowed(&head.host) {
            self.last = Some(head.host);
            return Err(Refusal::OtherName);
        }
        self.last = Some(head.host);
        self.count += 1;
        self.state = match (head.upgrade, head.body) {
            (None, Body::Length(0)) => State::Head,
            (None, Body::Length(length)) => State::Body(length),
            (None, Body::Chunked) => State::ChunkLine,
            // Which answer belongs to it is only plain for the first request.
            (Some(to), Body::Length(0)) if self.count == 1 => State::Upgrade(to),
            (Some(_), _) => return Err(Refusal::MalformedRequest),
        };
        Ok(())
    }
}

/// Hexadecimal digits and the end of the line; extensions are refused.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.strip_suffix(b"\r\n")?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The answer to a request for an upgrade, as far as it says whether the server switches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer(Vec<u8>);

/// Whether the server switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// It can't be seen yet.
    Open,
    Yes,
    No,
}

impl Answer {
    /// Reads what the server sent next.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<Switch, Refusal> {
        self.0.extend(bytes);
        loop {
            let Some(status) = self.0.get(9..12) else { return Ok(Switch::Open) };
            if !self.0.starts_with(b"HTTP/1.") {
                return Err(Refusal::MalformedRequest);
            }
            match status {
                b"101" => return Ok(Switch::Yes),
                [b'1', _, _] => {
                    let end = self.0.windows(4).position(|part| part == b"\r\n\r\n");
                    match end {
                        Some(at) => drop(self.0.drain(..at + 4)),
                        None if self.0.len() < LONGEST_HEAD => return Ok(Switch::Open),
                        None => return Err(Refusal::MalformedRequest),
                    }
                }
                _ => return Ok(Switch::No),
            }
        }
    }
}

#[cfg(test)]
mod tests;
