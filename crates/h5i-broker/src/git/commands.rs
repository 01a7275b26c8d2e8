//! What a push says of references, before the objects: `git-receive-pack`'s packet lines up to the
//! first flush. gitprotocol-pack(5), gitprotocol-common(5).
//!
//! Servers differ in what they forgive, so only what git itself writes is taken: what is judged
//! here and what the server reads must be the same commands.

use bytes::{Bytes, BytesMut};
use h5i_policy::GitUse;

use super::refused;
use crate::refusal::Refusal;

/// Largest list of commands, in bytes, and their most.
const LARGEST: usize = 64 * 1024;
const MOST: usize = 1000;

/// Reads the commands of a push as its bytes come.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    /// Everything that came, as it came.
    came: BytesMut,
    /// How much of that was read.
    read: usize,
    /// Whether their end was read.
    ended: bool,
    references: Vec<Vec<u8>>,
    /// Length of the object ids; the same in all of a push.
    id: Option<usize>,
}

impl Commands {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.came.extend_from_slice(bytes);
        while !self.ended {
            let Some(line) = packet(&self.came[self.read..])? else {
                let too_many = self.came.len() > LARGEST;
                return if too_many { Err(refused(TOO_MANY)) } else { Ok(()) };
            };
            match line {
                Packet::Flush => {
                    self.read += 4;
                    self.ended = true;
                }
                Packet::Line(length) => {
                    let line = self.came[self.read + 4..self.read + length].to_vec();
                    self.read += length;
                    self.line(&line)?;
                }
            }
        }
        if self.read > LARGEST {
            return Err(refused(TOO_MANY));
        }
        // Git asks so whether it may push at all. Nothing else has no commands.
        if self.references.is_empty() && self.came.len() > self.read {
            return Err(refused(MALFORMED));
        }
        Ok(())
    }

    /// Whether everything that is judged was read, though more bytes may come.
    pub(crate) fn is_whole(&self) -> bool {
        self.ended && !self.references.is_empty()
    }

    /// Whether the body may end here.
    pub(crate) fn may_end(&self) -> bool {
        self.ended
    }

    /// Everything that came: the commands, and what of the rest came with them.
    pub(crate) fn came(self) -> Bytes {
        self.came.freeze()
    }

    /// The references so far, in the order of the commands.
    pub(crate) fn references(&self) -> &[Vec<u8>] {
        &self.references
    }

    /// Judges every reference.
    pub(crate) fn judge(&self, git: &GitUse) -> Result<(), Refusal> {
        if self.references.iter().all(|reference| git.pushes_to(reference)) {
            return Ok(());
        }
        Err(refused("it would push to a reference that is not listed"))
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if let Some(id) = line.strip_prefix(b"shallow ") {
            return if self.is_id(id) { Ok(()) } else { Err(refused(MALFORMED)) };
        }
        if line.starts_with(b"push-cert") {
            return Err(refused("its push is signed, and names its references elsewhere"));
        }
        // The first command has the capabilities behind it.
        let command = match line.iter().position(|byte| *byte == 0) {
            Some(at) if self.references.is_empty() => {
                let mut all = line[at + 1..].split(|byte| *byte == b' ');
                // A service may take more by them than a push.
                if all.any(|one| one.starts_with(b"push-options")) {
                    return Err(refused("its push has options"));
                }
                &line[..at]
            }
            _ => line,
        };
        let mut words = command.splitn(3, |byte| *byte == b' ');
        let (Some(old), Some(new), Some(reference)) = (words.next(), words.next(), words.next())
        else {
            return Err(refused(MALFORMED));
        };
        if !self.is_id(old) || !self.is_id(new) || !is_reference(reference) {
            return Err(refused(MALFORMED));
        }
        if self.references.len() == MOST {
            return Err(refused(TOO_MANY));
        }
        self.references.push(reference.to_vec());
        if new.iter().all(|digit| *digit == b'0') {
            return Err(refused("it would delete a reference"));
        }
        Ok(())
    }

    fn is_id(&mut self, id: &[u8]) -> bool {
        let length = *self.id.get_or_insert(id.len());
        let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        matches!(length, 40 | 64) && id.len() == length && id.iter().all(digit)
    }
}

pub(super) const MALFORMED: &str = "its push is not as git writes it";
const TOO_MANY: &str = "its push has more than 1,000 references, or 64 KiB of them";

/// What stands at the beginning of bytes.
enum Packet {
    Flush,
    /// So many bytes, with the four of the length.
    Line(usize),
}

/// `None` when it is not all there. Everything that a line can't be is told by its first four
/// bytes.
fn packet(bytes: &[u8]) -> Result<Option<Packet>, Refusal> {
    let Some(digits) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let mut length = 0;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return Err(refused(MALFORMED)),
        };
        length = length * 16 + usize::from(value);
    }
    match length {
        0 => Ok(Some(Packet::Flush)),
        // Other delimiters, which end the commands for some, and a line of nothing.
        1..=4 => Err(refused(MALFORMED)),
        _ if bytes.len() < length => Ok(None),
        _ => Ok(Some(Packet::Line(length))),
    }
}

/// Whether git takes this for the whole name of a reference. git-check-ref-format(1).
fn is_reference(name: &[u8]) -> bool {
    let unfit = |byte: &u8| {
        matches!(byte, 0..=0x20 | 0x7f | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\')
    };
    let component =
        |part: &[u8]| !part.is_empty() && !part.starts_with(b".") && !part.ends_with(b".lock");
    name.starts_with(b"refs/")
        && !name.iter().any(unfit)
        && !name.windows(2).any(|two| two == b".." || two == b"@{")
        && !name.ends_with(b".")
        && name.split(|byte| *byte == b'/').all(component)
}
