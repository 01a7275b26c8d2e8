//! Redacts bytes that come in parts, as if they had come at once.

use super::{Hit, mark, secret_at};

/// Bytes that are held back until it is known what they are: more than any shape needs to be known.
const HOLD: usize = 128;
/// Bytes before a secret that decide whether it is one.
const CONTEXT: usize = 2;

/// Replaces secrets of known shapes in bytes that come in parts, wherever they are parted, as
/// [`redact`](super::redact) does in all of them. It keeps at most a part and 130 bytes.
#[derive(Debug, Default)]
pub struct Redactor {
    buffer: Vec<u8>,
    /// How many bytes of the buffer were given out already.
    given: usize,
    /// What belongs to a secret that has not ended yet.
    open: Option<fn(u8) -> bool>,
}

impl Redactor {
    /// Takes a part; yields what is certain by now.
    pub fn push(&mut self, part: &[u8]) -> Vec<u8> {
        let mut rest = part;
        if let Some(alphabet) = self.open {
            let more = part.iter().take_while(|byte| alphabet(**byte)).count();
            self.buffer.extend_from_slice(&part[..more]);
            self.forget(self.buffer.len());
            rest = &part[more..];
            if rest.is_empty() {
                return Vec::new();
            }
            self.open = None;
        }
        self.buffer.extend_from_slice(rest);
        let certain = self.buffer.len().saturating_sub(HOLD);
        self.clean(certain)
    }

    /// There is no more; yields the rest.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        if self.open.is_some() {
            return Vec::new();
        }
        let all = self.buffer.len();
        self.clean(all)
    }

    /// Gives out everything before `certain`, and a secret that begins there in full.
    fn clean(&mut self, certain: usize) -> Vec<u8> {
        let (mut clean, mut from, mut at) = (Vec::new(), self.given, self.given);
        let end = self.buffer.len();
        while at < certain {
            let Some(Hit { shape, end: stop, alphabet }) = secret_at(&self.buffer, at) else {
                at += 1;
                continue;
            };
            clean.extend_from_slice(&self.buffer[from..at]);
            mark(&mut clean, shape);
            (from, at) = (stop, stop);
            if stop == end {
                self.open = alphabet;
            }
        }
        clean.extend_from_slice(&self.buffer[from..at.max(from)]);
        self.forget(at);
        clean
    }

    /// Everything before `given` was given out.
    fn forget(&mut self, given: usize) {
        let kept = given.min(CONTEXT);
        self.buffer.drain(..given - kept);
        self.given = kept;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Redactor;
    use crate::secret::{SHAPES, redact};

    fn in_parts(content: &[u8], parts: &[usize]) -> Vec<u8> {
        let mut redactor = Redactor::default();
        let (mut clean, mut rest) = (Vec::new(), content);
        for part in parts.iter().cycle() {
            let (now, later) = rest.split_at((*part).min(rest.len()));
            clean.extend(redactor.push(now));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        clean.extend(redactor.finish());
        clean
    }

    #[test]
    fn every_shape_is_redacted_wherever_it_is_parted() {
        let key = format!("{}RSA {}", "-----BEGIN ", "PRIVATE KEY-----");
        let mut all: Vec<Vec<u8>> = vec![key.into_bytes()];
        all.extend(SHAPES.iter().map(|s| [s.prefix, &b"A".repeat(s.least + 3)].concat()));
        for secret in all {
            let content = [b"log: ", &secret[..], b" end ", &b"x".repeat(300)].concat();
            let whole = redact(&content);
            assert!(!whole.windows(secret.len()).any(|window| window == secret));
            for part in 1..160 {
                assert_eq!(in_parts(&content, &[part]), whole, "{part}");
            }
        }
    }

    fn fragment() -> impl Strategy<Value = Vec<u8>> {
        let shape = (0..SHAPES.len(), 0..90_usize)
            .prop_map(|(which, length)| [SHAPES[which].prefix, &b"A".repeat(length)].concat());
        prop_oneof![
            shape,
            Just([&b"-----BEGIN "[..], b"OPENSSH PRIVATE KEY-----"].concat()),
            Just(b"-----BEGIN ".to_vec()),
            "[ \\\\a-zA-Z0-9_.\n-]{0,40}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..20),
        ]
    }

    proptest! {
        #[test]
        fn parts_are_redacted_as_the_whole(
            fragments in proptest::collection::vec(fragment(), 0..12),
            parts in proptest::collection::vec(1..200_usize, 1..6),
        ) {
            let content = fragments.concat();
            prop_assert_eq!(in_parts(&content, &parts), redact(&content));
        }
    }
}
