//! Names of hosts in their one canonical form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A host name in its canonical form: ASCII letters, digits and `-`, lower case, no trailing dot,
/// labels of 1 to 63 bytes, at most 253 bytes in all.
///
/// Names outside ASCII are refused and not converted: two spellings of one name that a person
/// can't tell apart must not become two rules. The `xn--` form is accepted as it is. A name whose
/// last label is a number is refused, because resolvers read it as an address (`0x7f.1`). RFC 1123,
/// section 2.1; RFC 5890.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// Why a text is not a [`HostName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostNameError {
    /// Nothing, or only a dot.
    #[error("a host name must not be empty")]
    Empty,
    /// A character outside ASCII.
    #[error("a host name must be ASCII")]
    NotAscii,
    /// A character other than letters, digits, `-` and `.`.
    #[error("a host name must be of letters, digits, `-` and `.`")]
    BadCharacter,
    /// An empty label, one longer than 63 bytes, or one that starts or ends with `-`.
    #[error("each label of a host name has 1 to 63 characters and no `-` at its ends")]
    BadLabel,
    /// Longer than 253 bytes.
    #[error("a host name must not be longer than 253 characters")]
    TooLong,
    /// Its last label is a number, so that resolvers read it as an address.
    #[error("a host name that ends in a number would be read as an address")]
    LooksLikeAddress,
}

impl HostNameError {
    /// What to do instead.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotAscii => "write the name's ASCII form, which starts with xn--",
            Self::LooksLikeAddress => "write the address in its usual form, such as 192.0.2.1",
            _ => "write a name such as api.example.com",
        }
    }
}

impl HostName {
    /// Checks `text` and brings it to its canonical form.
    ///
    /// # Errors
    /// One variant of [`HostNameError`] for each rule.
    pub fn new(text: &str) -> Result<Self, HostNameError> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(HostNameError::Empty);
        }
        if !name.is_ascii() {
            return Err(HostNameError::NotAscii);
        }
        if name.len() > 253 {
            return Err(HostNameError::TooLong);
        }
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.') {
            return Err(HostNameError::BadCharacter);
        }
        let name = name.to_ascii_lowercase();
        for label in name.split('.') {
            if label.is_empty()
                || label.len() > 63
                || label.starts_with('-')
                || label.ends_with('-')
            {
                return Err(HostNameError::BadLabel);
            }
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return Err(HostNameError::LooksLikeAddress);
        }
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The labels from left to right.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// Whether it is `localhost` or below it: the own machine's name, whoever asks (RFC 6761, 6.3).
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        self.labels().next_back() == Some("localhost")
    }

    /// Whether `self` stands below `domain`, at any depth, and is not `domain` itself.
    #[must_use]
    pub fn is_below(&self, domain: &Self) -> bool {
        self.0.strip_suffix(&domain.0).is_some_and(|rest| rest.ends_with('.'))
    }
}

/// Whether resolvers may read `label` as a part of an IPv4 address: decimal, octal or hexadecimal.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
        None => label.bytes().all(|b| b.is_ascii_digit()),
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostName {
    type Err = HostNameError;
    fn from_str(text: &str) -> Result<Self, HostNameError> {
        Self::new(text)
    }
}

impl TryFrom<String> for HostName {
    type Error = HostNameError;
    fn try_from(text: String) -> Result<Self, HostNameError> {
        Self::new(&text)
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::{HostName, HostNameError};

    #[test]
    fn case_and_trailing_dot_are_no_part_of_a_name() {
        let name = HostName::new("API.Example.COM.").expect("name");
        assert_eq!(name.as_str(), "api.example.com");
        assert_eq!(Ok(name), HostName::new("api.example.com"));
    }

    #[test]
    fn what_is_not_a_name_is_refused_by_its_reason() {
        for (text, error) in [
            ("", HostNameError::Empty),
            (".", HostNameError::Empty),
            ("bücher.example", HostNameError::NotAscii),
            ("a\u{202e}b", HostNameError::NotAscii),
            ("a_b.example", HostNameError::BadCharacter),
            ("a b", HostNameError::BadCharacter),
            ("a/b", HostNameError::BadCharacter),
            ("a..b", HostNameError::BadLabel),
            (".a", HostNameError::BadLabel),
            ("-a.example", HostNameError::BadLabel),
            ("a-.example", HostNameError::BadLabel),
            ("2130706433", HostNameError::LooksLikeAddress),
            ("0x7f.1", HostNameError::LooksLikeAddress),
            ("127.0x1", HostNameError::LooksLikeAddress),
            ("0x", HostNameError::LooksLikeAddress),
        ] {
            assert_eq!(HostName::new(text), Err(error), "{text:?}");
        }
        assert_eq!(HostName::new(&format!("{}.x", "a".repeat(64))), Err(HostNameError::BadLabel));
        HostName::new(&format!("{}.x", "a".repeat(63))).expect("a name");
        HostName::new(&"a.".repeat(127)).expect("a name");
        assert_eq!(HostName::new(&format!("{}a.b", "a.".repeat(126))), Err(HostNameError::TooLong));
        HostName::new("xn--bcher-kva.example").expect("a name");
    }

    #[test]
    fn below_means_a_whole_label_below() {
        let domain = HostName::new("example.com").expect("name");
        for (name, below) in [
            ("a.example.com", true),
            ("a.b.example.com", true),
            ("example.com", false),
            ("notexample.com", false),
            ("example.com.evil.example", false),
        ] {
            assert_eq!(HostName::new(name).expect("name").is_below(&domain), below, "{name}");
        }
    }
}
