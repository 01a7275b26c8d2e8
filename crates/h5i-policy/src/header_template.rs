//! A header that the host writes into each request by a grant.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A header with one place for the secret: `authorization: Bearer {}`, or
/// `authorization: Basic {basic:USER}` where the service wants a user's name and the secret as its
/// password, in Base64 (RFC 7617), as git hosts do. Or one without a place, whose value is the
/// policy's and not the box's: `api-version: 2024-01`.
///
/// The name is a token in lower case, the value is printable ASCII with one place at most. Without a
/// place it has no brace, so that a misspelt place is none. RFC 9110, section 5.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderTemplate {
    name: String,
    before: String,
    place: Place,
    after: String,
}

/// What goes between the two parts of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    /// Nothing: the value is fixed.
    None,
    /// `{}`: the secret.
    Secret,
    /// `{basic:USER}`: the secret as this user's password.
    Password(String),
}

/// Why a text is not a [`HeaderTemplate`].
///
/// The text itself is in no variant: what is wrongly written here may be the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderTemplateError {
    /// There is no `: ` between a name and a value.
    #[error("a header is written as `name: value`")]
    NoName,
    /// The name is not a token.
    #[error("the header's name has a character that header names can't have")]
    BadName,
    /// The header decides how the message is framed or where it goes.
    #[error("this header belongs to the connection and can't carry a credential")]
    ConnectionHeader,
    /// The header is one that the broker sets, to look through the answer.
    #[error("the broker decides this header, so that it can look for the secret in the answer")]
    OfTheBroker,
    /// There is nothing, more than one place, or a brace that is none.
    #[error("the header's value needs exactly one {{}} or {{basic:USER}}, the place of the secret")]
    NoPlace,
    /// The user's name in `{basic:USER}` has a colon.
    #[error("the user's name in {{basic:USER}} can't have a colon, where the password begins")]
    BadUser,
    /// The value has a control character or one outside ASCII.
    #[error("the header's value must be printable ASCII")]
    BadValue,
}

/// Headers that a grant must not write.
const OF_THE_CONNECTION: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers by which a service would pack its answer, or send a part.
fn is_of_the_broker(name: &str) -> bool {
    name == "accept-encoding" || name == "range" || name.ends_with("-range")
}

impl HeaderTemplate {
    /// The header's name, in lower case.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the secret goes into it.
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        self.place != Place::None
    }

    /// The user whose password the secret is, where both go into the header together: in Base64,
    /// with a colon between them.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        match &self.place {
            Place::Password(user) => Some(user),
            Place::None | Place::Secret => None,
        }
    }

    /// What stands before and after the place in the header's value; the whole value and nothing
    /// where there is no place.
    #[must_use]
    pub fn around(&self) -> (&str, &str) {
        (&self.before, &self.after)
    }
}

impl FromStr for HeaderTemplate {
    type Err = HeaderTemplateError;
    fn from_str(text: &str) -> Result<Self, HeaderTemplateError> {
        let (name, value) = text.split_once(':').ok_or(HeaderTemplateError::NoName)?;
        let name = name.to_ascii_lowercase();
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(token) {
            return Err(HeaderTemplateError::BadName);
        }
        // Services that hand headers on as variables take one spelling for the other.
        let spelling = name.replace('_', "-");
        if OF_THE_CONNECTION.contains(&spelling.as_str()) {
            return Err(HeaderTemplateError::ConnectionHeader);
        }
        if is_of_the_broker(&spelling) {
            return Err(HeaderTemplateError::OfTheBroker);
        }
        let value = value.trim_matches(' ');
        if !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return Err(HeaderTemplateError::BadValue);
        }
        let (before, place, after) = match first_place(value) {
            Some((_, _, after)) if first_place(after).is_some() => {
                return Err(HeaderTemplateError::NoPlace);
            }
            Some((_, Place::Password(user), _)) if user.contains(':') => {
                return Err(HeaderTemplateError::BadUser);
            }
            Some(found) => found,
            None if value.is_empty() || value.contains(['{', '}']) => {
                return Err(HeaderTemplateError::NoPlace);
            }
            None => (value, Place::None, ""),
        };
        Ok(Self { name, before: before.to_owned(), place, after: after.to_owned() })
    }
}

/// The first place of a value, and what stands before and after it.
fn first_place(value: &str) -> Option<(&str, Place, &str)> {
    value.match_indices('{').find_map(|(at, _)| {
        let (inside, after) = value[at + 1..].split_once('}')?;
        let place = match inside.strip_prefix("basic:") {
            None if inside.is_empty() => Place::Secret,
            None => return None,
            Some(user) => Place::Password(user.to_owned()),
        };
        Some((&value[..at], place, after))
    })
}

impl fmt::Display for HeaderTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.before)?;
        match &self.place {
            Place::None => f.write_str(&self.after),
            Place::Secret => write!(f, "{{}}{}", self.after),
            Place::Password(user) => write!(f, "{{basic:{user}}}{}", self.after),
        }
    }
}

impl TryFrom<String> for HeaderTemplate {
    type Error = HeaderTemplateError;
    fn try_from(text: String) -> Result<Self, HeaderTemplateError> {
        text.parse()
    }
}

impl From<HeaderTemplate> for String {
    fn from(template: HeaderTemplate) -> Self {
        template.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{HeaderTemplate, HeaderTemplateError};

    #[test]
    fn templates_have_one_canonical_text() {
        for (written, canonical) in [
            ("Authorization:Bearer {}", "authorization: Bearer {}"),
            ("x-api-key: {}", "x-api-key: {}"),
            ("x-auth:  token={}; v=1 ", "x-auth: token={}; v=1"),
            ("x-auth: {{}", "x-auth: {{}"),
            ("Authorization: Basic {basic:}", "authorization: Basic {basic:}"),
            (
                "Authorization: Basic {basic:x-access-token}",
                "authorization: Basic {basic:x-access-token}",
            ),
            ("Api-Version:2024-01 ", "api-version: 2024-01"),
        ] {
            let template: HeaderTemplate = written.parse().expect(written);
            assert_eq!(template.to_string(), canonical);
            assert_eq!(template.holds_secret(), written.contains('}'), "{written}");
            assert_eq!(canonical.parse(), Ok(template));
        }
    }

    #[test]
    fn what_could_split_a_message_is_refused() {
        use HeaderTemplateError as E;
        for (text, error) in [
            ("Bearer {}", E::NoName),
            ("", E::NoName),
            (": {}", E::BadName),
            ("a b: {}", E::BadName),
            ("a\r\nb: {}", E::BadName),
            ("x: {}\r\ny: z", E::BadValue),
            ("x: é{}", E::BadValue),
            ("Host: {}", E::ConnectionHeader),
            ("content-length: {}", E::ConnectionHeader),
            ("Accept-Encoding: gzip", E::OfTheBroker),
            ("range: bytes=0-3", E::OfTheBroker),
            ("x-ms-range: {}", E::OfTheBroker),
            ("Transfer_Encoding: {}", E::ConnectionHeader),
            ("content_length: {}", E::ConnectionHeader),
            ("accept_encoding: gzip", E::OfTheBroker),
            ("x_ms_range: {}", E::OfTheBroker),
            ("x:", E::NoPlace),
            ("x: }", E::NoPlace),
            ("x: {}{}", E::NoPlace),
            ("x: {basic:a}{}", E::NoPlace),
            ("x: {}{basic:a}", E::NoPlace),
            ("x: {basic}", E::NoPlace),
            ("x: {secret}", E::NoPlace),
            ("x: {basic:a", E::NoPlace),
            ("x: {basic:a:b}", E::BadUser),
        ] {
            assert_eq!(text.parse::<HeaderTemplate>(), Err(error), "{text:?}");
        }
    }
}
