//! The header by which a credential is shown to a service.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A header with one place for the secret: `authorization: Bearer {}`, or
/// `authorization: Basic {basic:USER}` where the service wants a user's name and the secret as its
/// password, in Base64 (RFC 7617), as git hosts do.
///
/// The name is a token in lower case, the value is printable ASCII with exactly one place. RFC 9110,
/// section 5.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderTemplate {
    name: String,
    before: String,
    user: Option<String>,
    after: String,
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
    /// There is no `{}` or more than one.
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

impl HeaderTemplate {
    /// The header's name, in lower case.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user whose password the secret is, where both go into the header together: in Base64,
    /// with a colon between them.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// What stands before and after the place in the header's value.
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
        if OF_THE_CONNECTION.contains(&name.as_str()) {
            return Err(HeaderTemplateError::ConnectionHeader);
        }
        let value = value.trim_matches(' ');
        if !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return Err(HeaderTemplateError::BadValue);
        }
        let (before, user, after) = place(value).ok_or(HeaderTemplateError::NoPlace)?;
        if place(after).is_some() {
            return Err(HeaderTemplateError::NoPlace);
        }
        if user.is_some_and(|user| user.contains(':')) {
            return Err(HeaderTemplateError::BadUser);
        }
        let (before, after) = (before.to_owned(), after.to_owned());
        Ok(Self { name, before, user: user.map(str::to_owned), after })
    }
}

/// The first place of a value: what stands before it, whose password goes there, and what follows.
fn place(value: &str) -> Option<(&str, Option<&str>, &str)> {
    value.match_indices('{').find_map(|(at, _)| {
        let (inside, after) = value[at + 1..].split_once('}')?;
        match inside.strip_prefix("basic:") {
            None if inside.is_empty() => Some((&value[..at], None, after)),
            None => None,
            Some(user) => Some((&value[..at], Some(user), after)),
        }
    })
}

impl fmt::Display for HeaderTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.before)?;
        match &self.user {
            Some(user) => write!(f, "{{basic:{user}}}{}", self.after),
            None => write!(f, "{{}}{}", self.after),
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
        ] {
            let template: HeaderTemplate = written.parse().expect(written);
            assert_eq!(template.to_string(), canonical);
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
            ("x: token", E::NoPlace),
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
