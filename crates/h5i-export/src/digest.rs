//! SHA-256 digests as they are written in logs and bundles.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest; its text is `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

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
    pub fn of_reader(mut source: impl std::io::Read) -> std::io::Result<Self> {
        let mut hash = Sha256::new();
        std::io::copy(&mut source, &mut hash)?;
        Ok(Self(hash.finalize().into()))
    }

    /// The digest that a hash has come to.
    pub(crate) fn of_hash(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
        let hex = text.strip_prefix("sha256:").ok_or(DigestFormError)?.as_bytes();
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
        digest.to_string()
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
