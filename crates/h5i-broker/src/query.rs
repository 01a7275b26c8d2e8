//! The query of a request, as far as one of its parameters is the host's to write.

use h5i_policy::QueryName;
use zeroize::Zeroizing;

use crate::target::{Target, TargetFault};
use crate::token::TokenDigest;

/// A query, parted.
#[derive(Debug, PartialEq, Eq)]
struct Parted<'a> {
    /// The values under the name, as they came.
    own: Vec<&'a str>,
    /// The other parameters, as they came and in their order.
    rest: Vec<&'a str>,
}

/// Parts what is under a name, in whatever percent-encoding, from the rest.
///
/// # Errors
/// [`TargetFault::Twofold`] where something else is a parameter of that name for some services:
/// `;` or another `?` for `&`, `key[]`, blanks and NUL at the end of a name, `.` and blanks for `_`,
/// a name that is encoded twice. A name in another case is another name.
fn part<'a>(query: &'a str, name: &QueryName) -> Result<Parted<'a>, TargetFault> {
    let mut parted = Parted { own: Vec::new(), rest: Vec::new() };
    for parameter in query.split('&') {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if decoded(key.as_bytes()) == name.as_str().as_bytes() {
            parted.own.push(value);
            continue;
        }
        let mut within = parameter.split([';', '?']);
        if within.any(|part| is_like(part.split('=').next().unwrap_or_default(), name)) {
            return Err(TargetFault::Twofold);
        }
        parted.rest.push(parameter);
    }
    Ok(parted)
}

/// What percent-encoding and `+` stand for, as in a form (application/x-www-form-urlencoded).
pub(crate) fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (byte, crate::target::encoded(&text[at..])) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) => out.push(b' '),
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}

/// Layers of percent-encoding that are looked through; whatever has more is like any name.
const LAYERS: usize = 4;

/// Whether some services read a key as this name.
fn is_like(key: &str, name: &QueryName) -> bool {
    let mut key = decoded(key.as_bytes());
    for layer in 0.. {
        let again = decoded(&key);
        if again == key {
            break;
        }
        if layer == LAYERS {
            return true;
        }
        key = again;
    }
    let end = key.iter().position(|byte| *byte == 0).unwrap_or(key.len());
    let key = &key[..end];
    // A list or table of that name, and a name with a bracket that is never closed.
    let whole = key.iter().position(|byte| *byte == b'[').map_or(key, |at| &key[..at]);
    let loosely = |key: &[u8]| -> Vec<u8> {
        let other = |byte: &u8| if matches!(byte, b'.' | b' ' | b'[') { b'_' } else { *byte };
        key.trim_ascii().iter().map(other).collect()
    };
    let name = loosely(name.as_str().as_bytes());
    loosely(key) == name || loosely(whole) == name
}

/// Bytes as they stand in a query for nothing but themselves: all but letters, digits and `-._~`
/// percent-encoded. RFC 3986, section 2.
pub(crate) fn percent_encoded(bytes: &[u8]) -> Zeroizing<String> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    // All at once: a string that grows leaves copies behind.
    let mut out = Zeroizing::new(String::with_capacity(3 * bytes.len()));
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.push('%');
            for half in [byte >> 4, byte & 15] {
                out.push(char::from(DIGITS[usize::from(half)]));
            }
        }
    }
    out
}

impl Target {
    /// The tokens that a client shows under a name.
    ///
    /// # Errors
    /// As [`part`].
    pub(crate) fn presented(&self, name: &QueryName) -> Result<Vec<TokenDigest>, TargetFault> {
        let own = match self.query() {
            Some(query) => part(query, name)?.own,
            None => Vec::new(),
        };
        Ok(own.into_iter().map(|value| TokenDigest::of(&decoded(value.as_bytes()))).collect())
    }

    /// What is sent with this parameter in the place of all that the client has under its name.
    ///
    /// # Errors
    /// As [`part`].
    pub(crate) fn carrying(
        &self,
        name: &QueryName,
        value: &[u8],
    ) -> Result<Zeroizing<String>, TargetFault> {
        let parted = self.query().map(|query| part(query, name)).transpose()?;
        let rest = parted.map(|parted| parted.rest.join("&")).unwrap_or_default();
        let and = if rest.is_empty() { "" } else { "&" };
        let value = percent_encoded(value);
        let parts = [self.path(), "?", &rest, and, name.as_str(), "=", &value];
        let mut out = Zeroizing::new(String::with_capacity(parts.iter().map(|p| p.len()).sum()));
        parts.iter().for_each(|part| out.push_str(part));
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn carrying(target: &str, name: &str) -> Result<String, TargetFault> {
        let target = Target::new(target).expect(target);
        target.carrying(&name.parse().expect(name), b"S/1").map(|sent| sent.as_str().to_owned())
    }

    #[test]
    fn the_parameter_is_there_once_whatever_the_client_sent() {
        for (target, sent) in [
            ("/a", "/a?key=S%2F1"),
            ("/a?", "/a?key=S%2F1"),
            ("/a?x=1", "/a?x=1&key=S%2F1"),
            ("/a?key=mine", "/a?key=S%2F1"),
            ("/a?key", "/a?key=S%2F1"),
            ("/a?x=1&key=mine&y=%26&key=&%6bey=mine&%6B%65%79=mine", "/a?x=1&y=%26&key=S%2F1"),
            ("/a?key=mine;b=c&d", "/a?d&key=S%2F1"),
            ("/a?a=1;b=2&&c", "/a?a=1;b=2&&c&key=S%2F1"),
            // Others: in another case, and what only holds the name.
            ("/a?KEY=1&keys=2&xkey=3&k.ey=4", "/a?KEY=1&keys=2&xkey=3&k.ey=4&key=S%2F1"),
            ("/a?next=%2Fb%3Fkey%3D1", "/a?next=%2Fb%3Fkey%3D1&key=S%2F1"),
            ("/a?x=key", "/a?x=key&key=S%2F1"),
        ] {
            assert_eq!(carrying(target, "key"), Ok(sent.to_owned()), "{target}");
        }
        assert_eq!(carrying("/a?key=1", "KEY"), Ok("/a?key=1&KEY=S%2F1".to_owned()));
    }

    #[test]
    fn what_is_that_parameter_for_some_services_is_refused() {
        for query in [
            "x=1;key=2",
            ";key",
            "x;%6bey=2",
            "?key=2",
            "x=/b?key=2",
            "key[]=2",
            "key%5B0%5D=2",
            "+key=2",
            "key+=2",
            "key%20=2",
            "%09key=2",
            "key%00=2",
            "key%00x=2",
            "%256bey=2",
            "%25256bey=2",
        ] {
            assert_eq!(
                carrying(&format!("/a?{query}"), "key"),
                Err(TargetFault::Twofold),
                "{query}"
            );
            carrying(&format!("/a?{query}"), "other").expect(query);
        }
        let deep = format!("/a?%{}25=1", "25".repeat(4000));
        assert_eq!(carrying(&deep, "other"), Err(TargetFault::Twofold));
        for query in ["api.key=2", "api+key=2", "api%20key=2", "api_key[x]=2", "api[key=2"] {
            assert_eq!(carrying(&format!("/a?{query}"), "api_key"), Err(TargetFault::Twofold));
        }
        // As it is asked for it is the host's own.
        assert_eq!(carrying("/a?api.key=2", "api.key"), Ok("/a?api.key=S%2F1".to_owned()));
    }

    proptest! {
        #[test]
        fn every_reading_finds_the_parameter_once(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "key", "%6b", "ey", "KEY", "x", "=", "=", "&", "&", "&", ";", "?", "+", "%20",
                    "%25", "6b", "%00", ".", "[", "]", "%5B", "mine",
                ]),
                0..12,
            )
        ) {
            let Ok(sent) = carrying(&format!("/a?{}", parts.concat()), "key") else { return Ok(()) };
            let query = sent.strip_prefix("/a?").expect("the path");
            // Other separators, names read leniently, and again decoded.
            for separators in [&['&'][..], &['&', ';'], &['&', ';', '?']] {
                let own: Vec<&str> = query
                    .split(separators)
                    .filter(|one| {
                        let name = one.split('=').next().unwrap_or_default();
                        let name = decoded(&decoded(name.as_bytes()));
                        let end = name.iter().position(|b| matches!(b, 0 | b'[')).unwrap_or(name.len());
                        name[..end].trim_ascii() == b"key"
                    })
                    .collect();
                prop_assert_eq!(own, ["key=S%2F1"], "{}", sent);
            }
        }
    }

    #[test]
    fn a_value_stands_for_nothing_but_itself() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let text = percent_encoded(&all);
        assert_eq!(decoded(text.as_bytes()), all);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
        assert!(text.bytes().all(plain), "{}", text.as_str());
        assert_eq!(percent_encoded(b"a+b c&d=%").as_str(), "a%2Bb%20c%26d%3D%25");
    }
}
