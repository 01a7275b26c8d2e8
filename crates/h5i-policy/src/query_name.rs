//! The name of the query parameter by which a credential is shown to a service.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a parameter in the query of a request: `key`.
///
/// Letters, digits and `-._~`, which stand for themselves in a query (RFC 3986, section 2.3), 1 to
/// 64 of them; case-sensitive. Not `none`, which says elsewhere in a policy that there is nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QueryName(String);

/// Why a text is not a [`QueryName`].
///
/// The text itself is in no variant: what is wrongly written here may be the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryNameError {
    /// It is empty, too long, or has another character.
    #[error("the name of a query's parameter is of letters, digits and `-._~`, and has at most 64")]
    BadName,
    /// It says that there is none.
    #[error("`none` names no parameter")]
    None,
}

impl QueryNameError {
    /// What to do instead.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::BadName => "write the name alone, as in query = \"key\"; the secret follows it",
            Self::None => "leave it out",
        }
    }
}

/// Longest name, in bytes.
const LONGEST: usize = 64;

impl QueryName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for QueryName {
    type Err = QueryNameError;
    fn from_str(text: &str) -> Result<Self, QueryNameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(plain) {
            return Err(QueryNameError::BadName);
        }
        if text == crate::units::budget::NONE {
            return Err(QueryNameError::None);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for QueryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for QueryName {
    type Error = QueryNameError;
    fn try_from(text: String) -> Result<Self, QueryNameError> {
        text.parse()
    }
}

impl From<QueryName> for String {
    fn from(name: QueryName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::{QueryName, QueryNameError as E};

    #[test]
    fn a_name_has_one_spelling() {
        for text in ["key", "KEY", "api-key", "api_key", "sub.key", "~", "None", &"k".repeat(64)] {
            assert_eq!(text.parse::<QueryName>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_a_query_could_read_otherwise_is_refused() {
        for text in [
            "",
            "key=",
            "key={}",
            "a&key",
            "key#",
            "%6bey",
            "a b",
            "a+b",
            "key;",
            "key[]",
            "?key",
            "/key",
            "k\u{e9}y",
            "key\0",
            "key\n",
            "$key",
            &"k".repeat(65),
        ] {
            assert_eq!(text.parse::<QueryName>(), Err(E::BadName), "{text:?}");
        }
        assert_eq!("none".parse::<QueryName>(), Err(E::None));
    }
}
