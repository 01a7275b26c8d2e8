//! Which part of a file is a secret.

use std::fmt;
use std::num::NonZeroU32;

/// The part of a file that a [`SecretRef`](crate::SecretRef) names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SecretPart {
    /// All of it.
    #[default]
    Whole,
    /// `#L2`: one line, from 1.
    Line(NonZeroU32),
    /// `#/tokens/access`: a string in a JSON document.
    Json(JsonPointer),
}

/// A JSON Pointer that names something below the root. RFC 6901.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPointer(String);

impl JsonPointer {
    /// The pointer as RFC 6901 writes it, which is how `serde_json` takes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        let fits = text.starts_with('/') && escapes && !text.chars().any(char::is_control);
        fits.then(|| Self(text.to_owned()))
    }
}

impl SecretPart {
    /// What stands behind the `#`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Some(line) = text.strip_prefix('L') else {
            return JsonPointer::parse(text).map(Self::Json);
        };
        // A sign, a space or a leading zero would be a second spelling.
        let digits = line.starts_with(|first: char| matches!(first, '1'..='9'));
        line.parse().ok().filter(|_| digits).map(Self::Line)
    }
}

impl fmt::Display for SecretPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Line(line) => write!(f, "#L{line}"),
            Self::Json(pointer) => write!(f, "#{}", pointer.0),
        }
    }
}
