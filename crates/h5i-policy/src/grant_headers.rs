//! The headers that the host writes into each request by a grant.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::header_template::{HeaderTemplate, HeaderTemplateError};
use crate::units::budget;

/// Headers of different names, in the order of these; mostly one, or none.
///
/// Each takes the place of what the box sends under its name. Written as `"none"`, as one text, or
/// as a list of texts: one header has the same form however it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct GrantHeaders(BTreeSet<HeaderTemplate>);

/// Why there can be no such headers.
///
/// No value is in any variant: what is wrongly written here may be the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantHeadersError {
    /// One of them is no header.
    #[error(transparent)]
    Template(#[from] HeaderTemplateError),
    /// Two have one name; some services take `_` for `-`.
    #[error("{name} is written twice; `_` in a name counts as `-`")]
    Twice {
        /// The second one's name.
        name: String,
    },
    /// No header has a place, and the secret goes nowhere else.
    #[error("no header has {{}} or {{basic:USER}}, the place of the secret")]
    NoPlace,
}

impl GrantHeadersError {
    /// What to do instead, where that is known.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Template(_) => None,
            Self::Twice { .. } => Some("leave one of them out"),
            Self::NoPlace => {
                Some("write {} where the secret goes, as in \"authorization: Bearer {}\"")
            }
        }
    }
}

impl GrantHeaders {
    /// Adds a header.
    ///
    /// # Errors
    /// [`GrantHeadersError::Twice`], with nothing added.
    pub fn add(&mut self, header: HeaderTemplate) -> Result<(), GrantHeadersError> {
        let spelling = |header: &HeaderTemplate| header.name().replace('_', "-");
        if self.0.iter().any(|own| spelling(own) == spelling(&header)) {
            return Err(GrantHeadersError::Twice { name: header.name().to_owned() });
        }
        self.0.insert(header);
        Ok(())
    }

    /// Each header, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &HeaderTemplate> {
        self.0.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the secret goes into one of them.
    #[must_use]
    pub fn hold_secret(&self) -> bool {
        self.0.iter().any(HeaderTemplate::holds_secret)
    }
}

impl From<HeaderTemplate> for GrantHeaders {
    fn from(header: HeaderTemplate) -> Self {
        Self(BTreeSet::from([header]))
    }
}

/// The forms in which headers are written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    One(String),
    Many(Vec<String>),
}

impl TryFrom<Written> for GrantHeaders {
    type Error = GrantHeadersError;
    fn try_from(written: Written) -> Result<Self, GrantHeadersError> {
        let texts = match written {
            Written::One(text) if text == budget::NONE => Vec::new(),
            Written::One(text) => vec![text],
            Written::Many(texts) => texts,
        };
        let mut headers = Self::default();
        for text in texts {
            headers.add(text.parse()?)?;
        }
        Ok(headers)
    }
}

impl From<GrantHeaders> for Written {
    fn from(headers: GrantHeaders) -> Self {
        let mut texts: Vec<String> = headers.0.into_iter().map(String::from).collect();
        match texts.len() {
            0 => Self::One(budget::NONE.to_owned()),
            1 => Self::One(texts.remove(0)),
            _ => Self::Many(texts),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{GrantHeaders, GrantHeadersError};
    use crate::header_template::HeaderTemplate;

    fn read(written: Value) -> Result<GrantHeaders, String> {
        serde_json::from_value(written).map_err(|error| error.to_string())
    }

    fn one(text: &str) -> GrantHeaders {
        GrantHeaders::from(text.parse::<HeaderTemplate>().expect(text))
    }

    #[test]
    fn headers_have_one_canonical_form() {
        for (written, canonical) in [
            (json!("none"), json!("none")),
            (json!([]), json!("none")),
            (json!("X-Key: {}"), json!("x-key: {}")),
            (json!(["X-Key: {}"]), json!("x-key: {}")),
            (json!(["x-key: {}", "a-version: 1"]), json!(["a-version: 1", "x-key: {}"])),
        ] {
            let headers = read(written).expect("headers");
            let again = serde_json::to_value(&headers).expect("JSON");
            assert_eq!(again, canonical);
            assert_eq!(read(again), Ok(headers));
        }
    }

    #[test]
    fn one_name_is_not_written_twice_in_any_spelling() {
        for second in ["x-key: {}", "X-Key: 1", "x_key: {}"] {
            let mut headers = one("x-key: {}");
            let before = headers.clone();
            let error = headers.add(second.parse().expect(second)).expect_err(second);
            assert!(matches!(error, GrantHeadersError::Twice { .. }), "{error}");
            assert_eq!(headers, before);
        }
        let mut headers = one("x-key: {}");
        headers.add("x-key-2: {}".parse().expect("a header")).expect("another name");
        assert_eq!(headers.iter().count(), 2);
    }

    #[test]
    fn the_secret_goes_where_there_is_a_place() {
        for (written, holds) in [
            (json!("none"), false),
            (json!("a: 1"), false),
            (json!(["a: 1", "b: {}"]), true),
            (json!("a: {basic:u}"), true),
        ] {
            assert_eq!(read(written.clone()).expect("headers").hold_secret(), holds, "{written}");
        }
    }
}
