//! The token by which a run shows that a grant is its own.

use std::io;

use data_encoding::BASE64URL_NOPAD;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What is kept of a token. Who reads the host's memory finds no token that could be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// Of the text that a client presents.
    pub(crate) fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// In a time that tells nothing of where they differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// A new token of 256 random bits. The text is for the run, and is kept nowhere here.
pub(crate) fn new_token() -> io::Result<(String, TokenDigest)> {
    let mut bytes = [0_u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let text = format!("h5i_{}", BASE64URL_NOPAD.encode(&bytes));
    let digest = TokenDigest::of(text.as_bytes());
    Ok((text, digest))
}

#[cfg(test)]
mod tests {
    use super::{TokenDigest, new_token};

    #[test]
    fn a_token_is_known_by_its_digest_and_no_other() {
        let (text, digest) = new_token().expect("random bytes");
        assert!(digest.is(&TokenDigest::of(text.as_bytes())));
        assert_eq!(text.len(), 4 + 43);
        let (other, _) = new_token().expect("random bytes");
        assert!(!digest.is(&TokenDigest::of(other.as_bytes())));
        assert!(!digest.is(&TokenDigest::of(&text.as_bytes()[..46])));
    }
}
