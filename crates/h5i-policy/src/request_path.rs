//! What the patterns of a grant's request paths may be.

use crate::pattern::{Pattern, PatternError};

/// Why no request has a path that a text would match.
///
/// The broker compares patterns with the path of a request after one normalisation, without the
/// query; it refuses what could be read in two ways. A pattern that asks for something else would
/// be a grant of nothing that looks like one of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestPathError {
    /// It is no pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// It does not start with `/`.
    #[error("the path of a request starts with `/`")]
    Relative,
    /// It has an empty, `.` or `..` segment.
    #[error("no request passes whose path has an empty, `.` or `..` segment")]
    Segment,
    /// It has a `?`, which begins a query.
    #[error("the query of a request is no part of its path, and is not compared")]
    Query,
    /// It has a `#`, which begins a fragment.
    #[error("a request carries no fragment")]
    Fragment,
    /// It has a character that a request has to encode, or a `;`.
    #[error("no request passes whose path has {0:?}")]
    Character(char),
    /// It encodes what a request may not, or need not, or in lower case.
    #[error("no path has this encoding once it is normalised")]
    Encoding,
}

impl RequestPathError {
    /// What to do instead.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Pattern(error) => error.hint(),
            Self::Relative => "write /v1/** for all below /v1, or /** for all",
            Self::Segment => "write the path as the service has it, as in /v1/**",
            Self::Query => "leave the query out; `*` stands for a part of a segment",
            Self::Fragment => "leave it out",
            Self::Character(';') => "leave it out; `*` stands for a part of a segment",
            Self::Character(_) => "write it percent-encoded, as in %20 for a blank",
            Self::Encoding => {
                "write letters, digits and `-._~` as they are, and other encodings in upper case"
            }
        }
    }
}

/// Reads a pattern of request paths.
///
/// # Errors
/// One variant of [`RequestPathError`] for each rule.
pub(crate) fn request_path(text: &str) -> Result<Pattern, RequestPathError> {
    let Some(path) = text.strip_prefix('/') else {
        return Err(match text {
            "" => PatternError::Empty.into(),
            _ if text.starts_with('!') => PatternError::Negated.into(),
            _ => RequestPathError::Relative,
        });
    };
    let whole = path.strip_suffix('/').unwrap_or(path);
    if !whole.is_empty() && whole.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(RequestPathError::Segment);
    }
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '?' => return Err(RequestPathError::Query),
            '#' => return Err(RequestPathError::Fragment),
            '%' => {
                let digits = rest.as_str().get(..2).unwrap_or_default();
                rest.nth(1);
                if !is_kept_encoding(digits) {
                    return Err(RequestPathError::Encoding);
                }
            }
            // What a path has, and what patterns are written with.
            _ if c.is_ascii_alphanumeric() || "-._~/!$&'()*+,=:@[]^\\".contains(c) => {}
            // Told by the pattern's own rules.
            _ if c.is_control() => {}
            _ => return Err(RequestPathError::Character(c)),
        }
    }
    Ok(Pattern::new(text)?)
}

/// Whether normalisation leaves `%` with these digits as it is.
fn is_kept_encoding(digits: &str) -> bool {
    let upper = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    let Ok(byte) = u8::from_str_radix(digits, 16) else { return false };
    let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let never = byte.is_ascii_control() || matches!(byte, b'\\' | b';');
    digits.len() == 2 && digits.bytes().all(upper) && !plain && !never
}

#[cfg(test)]
mod tests {
    use super::{RequestPathError as E, request_path};
    use crate::pattern::PatternError;

    #[test]
    fn a_path_that_requests_have_is_a_pattern_of_one() {
        for text in [
            "/**",
            "/v1/messages",
            "/v1/models/**",
            "/repos/*/issues/[0-9]*",
            "/repos/[!x]*/x",
            "/a/",
            "/@acme%2Fsite",
            "/a%20b/%C3%A9",
            "/x:y,(z)'!$&+=~",
            "/a/..b/c..",
            "/literal\\*",
        ] {
            assert_eq!(request_path(text).expect(text).as_str(), text);
        }
    }

    #[test]
    fn a_path_that_no_request_has_is_refused() {
        for (text, error) in [
            ("", E::Pattern(PatternError::Empty)),
            ("/", E::Pattern(PatternError::Empty)),
            ("!/a", E::Pattern(PatternError::Negated)),
            ("/a[", E::Pattern(PatternError::BadClass)),
            ("/a\n", E::Pattern(PatternError::Control)),
            ("v1/messages", E::Relative),
            ("messages", E::Relative),
            ("**/messages", E::Relative),
            ("https://api.example.com/v1", E::Relative),
            ("//v1", E::Segment),
            ("/v1//x", E::Segment),
            ("/v1//", E::Segment),
            ("/v1/../x", E::Segment),
            ("/v1/./x", E::Segment),
            ("/v1/..", E::Segment),
            ("/v1?beta=true", E::Query),
            ("/v1/x?", E::Query),
            ("/v1#top", E::Fragment),
            ("/a b", E::Character(' ')),
            ("/a;b", E::Character(';')),
            ("/\u{e9}", E::Character('\u{e9}')),
            ("/a{b}", E::Character('{')),
            ("/a/%2e%2e/b", E::Encoding),
            ("/a/%2E", E::Encoding),
            ("/a%2fb", E::Encoding),
            ("/a%41", E::Encoding),
            ("/a%5C", E::Encoding),
            ("/a%3B", E::Encoding),
            ("/a%00", E::Encoding),
            ("/a%", E::Encoding),
            ("/a%+1", E::Encoding),
            ("/a%é", E::Encoding),
        ] {
            assert_eq!(request_path(text), Err(error), "{text:?}");
        }
    }
}
