//! The path and query of a request, normalised once. What is matched is what is sent.

use h5i_policy::{Allowed, Pattern};

/// An encoded slash, normalised.
const SLASH: &str = "%2F";
/// Longest target, in bytes.
const LONGEST: usize = 16 * 1024;

/// Where a request goes, within its service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Starts with `/`. Unreserved characters stand for themselves; what is encoded is so in upper
    /// case.
    path: String,
    /// What the path is for a service that takes an encoded slash for a slash, where it has one.
    parted: Option<String>,
    /// As it came.
    query: Option<String>,
}

/// Why a target is refused. None of it is repaired: what one side repairs, the other may read in
/// another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetFault {
    /// It does not start with `/`.
    NotAPath,
    /// More than 16 KiB.
    TooLong,
    /// A character that must be encoded.
    Character,
    /// `%` without two hexadecimal digits, or an encoded `%` that makes the next two digits an
    /// encoding.
    Encoding,
    /// An encoded `\`, `.` or control character, or bytes that are not UTF-8.
    Encoded,
    /// An empty, `.` or `..` segment.
    Segment,
    /// `;`, which some services cut a segment at.
    Parameter,
    /// In the query, what some services take for the parameter that carries a credential.
    Twofold,
}

impl TargetFault {
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::NotAPath => "the request target must be a path",
            Self::TooLong => "the request target is longer than 16 KiB",
            Self::Character => "the request target has a character that must be percent-encoded",
            Self::Encoding => {
                "the request target has a percent sign that encodes nothing, or twice"
            }
            Self::Encoded => {
                "the path has an encoded backslash, dot or control character, or is not UTF-8"
            }
            Self::Segment => "the path has an empty, `.` or `..` segment",
            Self::Parameter => "the path has a `;`",
            Self::Twofold => {
                "the query has what some services take for the parameter of the credential; leave \
                 it out"
            }
        }
    }
}

impl Target {
    /// Reads an origin-form: a path, and a query after the first `?`.
    pub(crate) fn new(text: &str) -> Result<Self, TargetFault> {
        if text.len() > LONGEST {
            return Err(TargetFault::TooLong);
        }
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (text, None),
        };
        let path = normal(path)?;
        let parted = path.contains(SLASH).then(|| path.replace(SLASH, "/"));
        whole_segments(parted.as_ref().unwrap_or(&path))?;
        query.map_or(Ok(()), check_query)?;
        Ok(Self { path, parted, query: query.map(str::to_owned) })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// What is sent.
    pub(crate) fn origin_form(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Whether the path is listed. One with an encoded slash, as in npm's `@scope%2fname`, has to be
    /// so in both ways in which a service may read it.
    pub(crate) fn is_in(&self, paths: &Allowed<Pattern>) -> bool {
        match paths {
            Allowed::Any => true,
            Allowed::Only(list) => {
                let listed = |path: &String| {
                    let is_dir = path.ends_with('/');
                    list.iter().any(|pattern| pattern.matches(path.as_bytes(), is_dir))
                };
                listed(&self.path) && self.parted.iter().all(listed)
            }
            _ => false,
        }
    }
}

fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// The byte that `%XX` at the start of `rest` encodes.
pub(crate) fn encoded(rest: &[u8]) -> Option<u8> {
    let (Some(high), Some(low)) = (hex(*rest.get(1)?), hex(*rest.get(2)?)) else { return None };
    Some(high << 4 | low)
}

fn normal(path: &str) -> Result<String, TargetFault> {
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') {
        return Err(TargetFault::NotAPath);
    }
    let mut out = String::with_capacity(path.len());
    // What the path means, to see whether it is text.
    let mut meant = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let byte = encoded(&bytes[at..]).ok_or(TargetFault::Encoding)?;
                match byte {
                    b'\\' | b'.' | 0..=0x1f | 0x7f => return Err(TargetFault::Encoded),
                    b';' => return Err(TargetFault::Parameter),
                    b'%' if starts_like_encoding(&bytes[at + 3..]) => {
                        return Err(TargetFault::Encoding);
                    }
                    _ if unreserved(byte) => out.push(char::from(byte)),
                    _ => {
                        out.push('%');
                        out.extend(path[at + 1..at + 3].chars().map(|c| c.to_ascii_uppercase()));
                    }
                }
                meant.push(byte);
                at += 3;
            }
            b';' => return Err(TargetFault::Parameter),
            b'/' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b'=' | b':'
            | b'@' => {
                out.push(char::from(byte));
                meant.push(byte);
                at += 1;
            }
            _ if unreserved(byte) => {
                out.push(char::from(byte));
                meant.push(byte);
                at += 1;
            }
            _ => return Err(TargetFault::Character),
        }
    }
    if std::str::from_utf8(&meant).is_err() {
        return Err(TargetFault::Encoded);
    }
    whole_segments(&out)?;
    Ok(out)
}

fn whole_segments(path: &str) -> Result<(), TargetFault> {
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        if segment == "." || segment == ".." || (segment.is_empty() && !last) {
            return Err(TargetFault::Segment);
        }
    }
    Ok(())
}

/// Whether decoding twice would find an encoding where decoding once leaves `%` and this.
fn starts_like_encoding(rest: &[u8]) -> bool {
    let digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_hexdigit);
    // A digit may itself be encoded; that is as good as one.
    (digit(0) || rest.first() == Some(&b'%')) && (digit(1) || rest.contains(&b'%'))
}

fn check_query(query: &str) -> Result<(), TargetFault> {
    let bytes = query.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'%' => {
                encoded(&bytes[at..]).ok_or(TargetFault::Encoding)?;
            }
            b'"' | b'#' | b'<' | b'>' | b'\\' | b'`' => return Err(TargetFault::Character),
            b'!'..=b'~' => {}
            _ => return Err(TargetFault::Character),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plain_passes_and_has_one_spelling() {
        for (text, path) in [
            ("/", "/"),
            ("/v1/messages", "/v1/messages"),
            ("/v1/messages?beta=true", "/v1/messages"),
            ("/V1/%6dessages", "/V1/messages"),
            ("/a%20b/%c3%a9", "/a%20b/%C3%A9"),
            ("/a/", "/a/"),
            ("/a...b/..c/c../.d", "/a...b/..c/c../.d"),
            ("/100%25", "/100%25"),
            ("/@scope/x:y,(z)*'!$&+=~", "/@scope/x:y,(z)*'!$&+=~"),
        ] {
            assert_eq!(Target::new(text).expect(text).path(), path, "{text}");
        }
        let target = Target::new("/a?x=/../%2e;//[1]|{}&y?").expect("a query is not a path");
        assert_eq!(target.origin_form(), "/a?x=/../%2e;//[1]|{}&y?");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        use TargetFault as F;
        for (text, fault) in [
            ("", F::NotAPath),
            ("*", F::NotAPath),
            ("a", F::NotAPath),
            ("?x", F::NotAPath),
            ("/a//b", F::Segment),
            ("//a", F::Segment),
            ("/a//", F::Segment),
            ("/./a", F::Segment),
            ("/a/..", F::Segment),
            ("/a/../b", F::Segment),
            ("/a/%2e%2e/b", F::Encoded),
            ("/a/.%2E/b", F::Encoded),
            ("/a%2f/b", F::Segment),
            ("/a%2f%2Fb", F::Segment),
            ("/%2fa", F::Segment),
            ("/a/..%2fb", F::Segment),
            ("/a%2f.%2fb", F::Segment),
            ("/a%2f%2e%2e%2fb", F::Encoded),
            ("/a%252fb", F::Encoding),
            ("/a%5Cb", F::Encoded),
            ("/a%00b", F::Encoded),
            ("/a%0d%0ab", F::Encoded),
            ("/a%ff", F::Encoded),
            ("/a%c0%af", F::Encoded),
            ("/a\\b", F::Character),
            ("/a b", F::Character),
            ("/a#b", F::Character),
            ("/\u{e9}", F::Character),
            ("/a%", F::Encoding),
            ("/a%2", F::Encoding),
            ("/a%zz", F::Encoding),
            ("/a%252e", F::Encoding),
            ("/a%25%32%65", F::Encoding),
            ("/a;b", F::Parameter),
            ("/a%3bb", F::Parameter),
            ("/a?b#c", F::Character),
            ("/a?b c", F::Character),
            ("/a?b%", F::Encoding),
        ] {
            assert_eq!(Target::new(text), Err(fault), "{text:?}");
        }
        assert_eq!(Target::new(&format!("/{}", "a".repeat(LONGEST))), Err(F::TooLong));
    }

    #[test]
    fn an_encoded_slash_passes_where_both_readings_are_listed() {
        let only = |texts: &[&str]| {
            Allowed::Only(texts.iter().map(|text| Pattern::new(text).expect("pattern")).collect())
        };
        let target = Target::new("/@acme%2fsite").expect("one name or two");
        assert_eq!(target.origin_form(), "/@acme%2Fsite");
        for (list, listed) in [
            (&["/@acme/site"][..], false),
            (&["/@acme%2Fsite"], false),
            (&["/@acme/**"], false),
            (&["/@acme/**", "/@acme%2F*"], true),
            (&["/@acme*/**"], false),
            (&["/**"], true),
        ] {
            assert_eq!(target.is_in(&only(list)), listed, "{list:?}");
        }
        let branch = Target::new("/repos/acme/site/branches/a%2Fb").expect("a branch");
        assert!(branch.is_in(&only(&["/repos/acme/site/**"])));
        assert!(!branch.is_in(&only(&["/repos/acme/other/**"])));
        // Neither as a part of what is listed nor as something next to it.
        let next = Target::new("/repos/acme%2Fsite/x").expect("a path");
        assert!(!next.is_in(&only(&["/repos/acme/site/**"])));
        assert!(next.is_in(&Allowed::Any));
    }

    #[test]
    fn case_is_kept_and_compared() {
        let only = |text| Allowed::Only([Pattern::new(text).expect("pattern")].into());
        let target = |text| Target::new(text).expect(text);
        assert!(target("/repos/acme/x").is_in(&only("/repos/acme/**")));
        assert!(!target("/Repos/acme/x").is_in(&only("/repos/acme/**")));
        assert!(!target("/repos/acme2/x").is_in(&only("/repos/acme/**")));
        assert!(target("/").is_in(&Allowed::Any));
        assert!(!target("/").is_in(&Allowed::Only([].into())));
    }
}
