//! SHA-256 digests as they are written in logs and bundles.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest; its text is `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// What a digest's text begins with.
const PREFIX: &str = "sha256:";

/// The text is not `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is written as `sha256:` and 64 lower-case hex digits")]
#[non_exhaustive]
pub struct DigestFormError;

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of everything that `source` gives, read in pieces.
    ///
    /// # Errors
    /// What `source` fails with.
    pub fn of_reader(mut source: impl Read) -> io::Result<Self> {
        let mut hash = Sha256::new();
        io::copy(&mut source, &mut hash)?;
        Ok(Self(hash.finalize().into()))
    }

    /// The digest that a hash has come to.
    pub(crate) fn of_hash(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }

    /// As it is written. Each record has one or two; formatting byte by byte costs more than hashing.
    fn text(&self) -> String {
        let mut text = String::with_capacity(PREFIX.len() + 2 * self.0.len());
        text.push_str(PREFIX);
        for byte in self.0 {
            for digit in [byte >> 4, byte & 0xf] {
                text.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
            }
        }
        text
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Passes on what it reads, and knows the digest of it.
#[derive(Debug)]
pub(crate) struct DigestReader<R> {
    source: R,
    hash: Sha256,
}

impl<R: Read> DigestReader<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, hash: Sha256::new() }
    }

    /// The digest of all that the source gives, the rest of it included.
    ///
    /// # Errors
    /// What the source fails with.
    pub(crate) fn finish(mut self) -> io::Result<Digest> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(Digest::of_hash(self.hash))
    }
}

impl<R: Read> Read for DigestReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        self.hash.update(into.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// Passes on what is written, and knows the digest of it.
#[derive(Debug)]
pub(crate) struct DigestWriter<W> {
    target: W,
    hash: Sha256,
}

impl<W> DigestWriter<W> {
    pub(crate) fn new(target: W) -> Self {
        Self { target, hash: Sha256::new() }
    }

    /// Where it was written, and the digest of all that was.
    pub(crate) fn finish(self) -> (W, Digest) {
        (self.target, Digest::of_hash(self.hash))
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestFormError;

    fn from_str(text: &str) -> Result<Self, DigestFormError> {
        let hex = text.strip_prefix(PREFIX).ok_or(DigestFormError)?.as_bytes();
        let mut bytes = [0; 32];
        if hex.len() != 2 * bytes.len() {
            return Err(DigestFormError);
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let &[high, low] = pair else { return Err(DigestFormError) };
            *byte = nibble(high)? << 4 | nibble(low)?;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, DigestFormError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(DigestFormError),
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestFormError;
    fn try_from(text: String) -> Result<Self, DigestFormError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.text()
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn the_digest_of_nothing_is_the_known_one_and_parses_back() {
        let empty = Digest::of(b"");
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(empty.to_string(), text);
        assert_eq!(text.parse(), Ok(empty));
        assert_eq!(Digest::of_reader(&b""[..]).expect("memory"), empty);
    }

    #[test]
    fn other_spellings_are_refused() {
        let text = Digest::of(b"x").to_string();
        for wrong in
            [text.to_uppercase(), text[7..].to_owned(), text[..70].to_owned(), format!("{text}0")]
        {
            wrong.parse::<Digest>().expect_err("one spelling only");
        }
    }
}
