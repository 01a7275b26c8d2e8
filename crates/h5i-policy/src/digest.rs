//! The name of a policy by its contents.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::resolved::ResolvedPolicy;

/// SHA-256 over a resolved policy: `h5i-policy-v1`, a NUL byte, and the policy as canonical JSON
/// (RFC 8785), every default written out, sets sorted.
///
/// It changes exactly when the policy does. The profile's name and its purpose are no part of the
/// policy. Printed as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PolicyDigest([u8; 32]);

/// Why a text is not a [`PolicyDigest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a policy digest is sha256: and 64 lower-case hexadecimal digits")]
pub struct DigestError;

/// Why a frozen policy is not the one that its digest names, or can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrozenError {
    /// The text is another one than was frozen.
    #[error("its digest is {found}, not {expected}")]
    Changed {
        /// Digest of the text as it stands.
        found: PolicyDigest,
        /// Digest that was written down when it was frozen.
        expected: PolicyDigest,
    },
    /// It is what was frozen, but no policy of this version.
    #[error("cannot read it")]
    Malformed(#[source] serde_json::Error),
}

const DOMAIN: &[u8] = b"h5i-policy-v1\0";
const PREFIX: &str = "sha256:";

impl ResolvedPolicy {
    /// The policy as canonical JSON (RFC 8785): what the digest is over.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "every key is text and no number is a float, so there is nothing to fail on"
    )]
    pub fn canonical_json(&self) -> String {
        serde_json_canonicalizer::to_string(self).expect("a policy is representable in JSON")
    }

    /// The digest of this policy.
    #[must_use]
    pub fn digest(&self) -> PolicyDigest {
        PolicyDigest::of_canonical_json(self.canonical_json().as_bytes())
    }

    /// Reads a policy that was frozen as [`canonical_json`](Self::canonical_json), and proves by
    /// its digest that these are the bytes.
    ///
    /// # Errors
    /// [`FrozenError::Changed`] for any other text, also one that means the same;
    /// [`FrozenError::Malformed`] for what another version froze.
    pub fn from_canonical_json(json: &[u8], expected: PolicyDigest) -> Result<Self, FrozenError> {
        let found = PolicyDigest::of_canonical_json(json);
        if found != expected {
            return Err(FrozenError::Changed { found, expected });
        }
        serde_json::from_slice(json).map_err(FrozenError::Malformed)
    }
}

impl PolicyDigest {
    /// The digest of a policy by its canonical JSON.
    fn of_canonical_json(json: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(DOMAIN);
        hasher.update(json);
        Self(hasher.finalize().into())
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PolicyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PolicyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PolicyDigest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let hex = text.strip_prefix(PREFIX).ok_or(DigestError)?.as_bytes();
        if hex.len() != 64 {
            return Err(DigestError);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn digit(hex: u8) -> Result<u8, DigestError> {
    match hex {
        b'0'..=b'9' => Ok(hex - b'0'),
        b'a'..=b'f' => Ok(hex - b'a' + 10),
        _ => Err(DigestError),
    }
}

impl TryFrom<String> for PolicyDigest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<PolicyDigest> for String {
    fn from(digest: PolicyDigest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{DigestError, FrozenError, PolicyDigest};
    use crate::resolved::ResolvedPolicy;

    #[test]
    fn digests_print_and_parse_as_one_text() {
        let digest = ResolvedPolicy::default().digest();
        let text = digest.to_string();
        assert_eq!(text.len(), 71);
        assert_eq!(text.parse(), Ok(digest));
        for bad in [&text[1..], &text[7..], &text[..70], &text.to_uppercase(), ""] {
            assert_eq!(bad.parse::<PolicyDigest>(), Err(DigestError), "{bad:?}");
        }
    }

    #[test]
    fn a_frozen_policy_is_read_only_from_the_bytes_that_were_frozen() {
        let policy = ResolvedPolicy::default();
        let (json, digest) = (policy.canonical_json(), policy.digest());
        let read = |text: &str| ResolvedPolicy::from_canonical_json(text.as_bytes(), digest);
        assert_eq!(read(&json).expect("as it was frozen"), policy);
        // One byte changed, one added, one space that means nothing, and nothing at all.
        let changed = json.replace("\"process\"", "\"container\"");
        assert_ne!(changed, json);
        for text in [changed, format!("{json}\n"), json.replace(':', ": "), String::new()] {
            let error = read(&text).expect_err(&text);
            assert!(matches!(error, FrozenError::Changed { .. }), "{error:?}");
        }
        // The digest alone makes no policy of other words.
        let other = b"{\"later\":1}";
        let of_other = PolicyDigest::of_canonical_json(other);
        let error = ResolvedPolicy::from_canonical_json(other, of_other).expect_err("no policy");
        assert!(matches!(error, FrozenError::Malformed(_)), "{error:?}");
    }
}
