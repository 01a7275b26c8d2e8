//! Credentials that are known by themselves.

use super::names;

/// A prefix that an issuer publishes, which bytes follow it, and how many must. They are fewer than
/// the issuer's: of a doubtful value only a copy is lost.
struct Shape {
    prefix: &'static str,
    follows: fn(u8) -> bool,
    least: usize,
}

const fn shape_of(prefix: &'static str, follows: fn(u8) -> bool, least: usize) -> Shape {
    Shape { prefix, follows, least }
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}
fn word(byte: u8) -> bool {
    alphanumeric(byte) || byte == b'_'
}
fn dashed(byte: u8) -> bool {
    word(byte) || byte == b'-'
}
fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}
fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

const SHAPES: &[Shape] = &[
    shape_of("sk-ant-", dashed, 8),
    shape_of("sk-proj-", dashed, 12),
    shape_of("sk-", alphanumeric, 20),
    shape_of("ghp_", alphanumeric, 16),
    shape_of("gho_", alphanumeric, 16),
    shape_of("ghu_", alphanumeric, 16),
    shape_of("ghs_", alphanumeric, 16),
    shape_of("ghr_", alphanumeric, 16),
    shape_of("github_pat_", word, 16),
    shape_of("glpat-", dashed, 12),
    shape_of("npm_", alphanumeric, 16),
    shape_of("pypi-", dashed, 24),
    shape_of("cio", alphanumeric, 32),
    shape_of("AKIA", upper, 12),
    shape_of("ASIA", upper, 12),
    shape_of("AIza", dashed, 30),
    shape_of("xoxb-", dashed, 10),
    shape_of("xoxp-", dashed, 10),
    shape_of("xoxa-", dashed, 10),
    shape_of("xoxr-", dashed, 10),
    shape_of("xoxs-", dashed, 10),
    shape_of("xapp-", dashed, 10),
    shape_of("hf_", alphanumeric, 20),
    shape_of("sk_live_", word, 12),
    shape_of("rk_live_", word, 12),
    shape_of("SG.", dotted, 30),
    shape_of("eyJ", dotted, 30),
    shape_of("AGE-SECRET-KEY-1", upper, 30),
];

const KNOWN: &str = "a credential of a known shape";
const PRIVATE_KEY: &str = "a private key";
const URL: &str = "a password in a URL";
const ASSIGNED: &str = "a credential inside of a value";
const RANDOM: &str = "looks random under a suspicious name";

/// How long a random-looking run of characters is, at least.
const LONGEST_WORD: usize = 32;

/// Why a text that stands under a name, or under none, holds a credential.
pub(super) fn credential(name: Option<&str>, text: &str) -> Option<&'static str> {
    let random = || name.is_some_and(names::suspicious) && has_random(text);
    shape(text).or_else(|| assigns(text).then_some(ASSIGNED)).or_else(|| random().then_some(RANDOM))
}

/// Why a text holds a credential by its shape alone.
pub(super) fn shape(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let known = |shape: &Shape| {
        text.match_indices(shape.prefix).any(|(at, prefix)| {
            let inside = at.checked_sub(1).is_some_and(|before| word(bytes[before]))
                // The letter of an escape, as in `\n`, belongs to no word.
                && at.checked_sub(2).is_none_or(|before| bytes[before] != b'\\');
            let rest = &bytes[at + prefix.len()..];
            let next = rest.get(..shape.least);
            !inside && next.is_some_and(|next| next.iter().all(|byte| (shape.follows)(*byte)))
        })
    };
    if SHAPES.iter().any(known) {
        return Some(KNOWN);
    }
    let key = text.match_indices("-----BEGIN ").any(|(at, begin)| {
        let rest = &text[at + begin.len()..];
        let name = &rest[..rest.find("-----").unwrap_or(0)];
        name.ends_with("PRIVATE KEY") || name.ends_with("PRIVATE KEY BLOCK")
    });
    if key {
        return Some(PRIVATE_KEY);
    }
    let url = text.match_indices("://").any(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let authority = rest.split(|c: char| "/?#\"'<>".contains(c) || c.is_whitespace()).next();
        let user = authority.and_then(|authority| authority.rsplit_once('@'));
        user.and_then(|(user, _)| user.split_once(':')).is_some_and(|(_, pass)| !pass.is_empty())
    });
    url.then_some(URL)
}

/// Whether a text assigns something to a name that credentials have: `--token=x`, `API_KEY: x`,
/// `?access_token=x`, `Bearer x`.
pub(super) fn assigns(text: &str) -> bool {
    assigned(text).into_iter().any(is_value)
}

/// What a text assigns to names that credentials have.
pub(super) fn assigned(text: &str) -> Vec<&str> {
    const QUOTES: [char; 5] = [' ', '\t', '"', '\'', '\\'];
    let in_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let mut values = Vec::new();
    for (at, _) in text.char_indices().filter(|(_, c)| matches!(c, '=' | ':')) {
        let before = text[..at].trim_end_matches(QUOTES).trim_end_matches('+');
        let name = before.trim_end_matches(in_name).len();
        let value = beginning(&text[at + 1..]).trim_start_matches('=').trim_start_matches(QUOTES);
        if names::credential(&before[name..], is_number(value)).is_some() {
            values.push(first_word(value));
        }
    }
    for scheme in ["Bearer ", "bearer ", "Basic "] {
        for (at, scheme) in text.match_indices(scheme) {
            let inside = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
            let value = first_word(beginning(&text[at + scheme.len()..]).trim_start());
            if !inside && value.len() >= 8 {
                values.push(value);
            }
        }
    }
    values
}

/// As much of a text as says what it begins with.
fn beginning(text: &str) -> &str {
    text.char_indices().nth(300).map_or(text, |(end, _)| &text[..end])
}

fn first_word(text: &str) -> &str {
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    word.trim_end_matches(['"', '\'', ',', ';', ')', '\\'])
}

/// Whether what is assigned is something: not nothing, a reference to a variable, or a place to fill
/// in.
pub(super) fn is_value(value: &str) -> bool {
    let flag = matches!(value, "true" | "false" | "null" | "none" | "None" | "yes" | "no");
    let place = value.starts_with('<') && value.ends_with('>');
    let says = value.chars().any(char::is_alphanumeric);
    says && !flag && !place && !is_reference(value)
}

/// `$NAME` or `${NAME}`, and nothing else.
pub(super) fn is_reference(value: &str) -> bool {
    let Some(name) = value.strip_prefix('$') else { return false };
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    !name.is_empty() && name.bytes().all(word)
}

fn is_number(value: &str) -> bool {
    first_word(value).parse::<f64>().is_ok()
}

/// Whether there is a run of characters that looks random: letters and digits, few of them twice.
fn has_random(text: &str) -> bool {
    let in_run = |c: char| c.is_ascii_alphanumeric() || "+_=-".contains(c);
    text.split(|c| !in_run(c)).filter(|run| run.len() >= LONGEST_WORD).any(|run| {
        let mut counts = [0_u32; 128];
        for byte in run.bytes() {
            counts[usize::from(byte) % 128] += 1;
        }
        let length = f64::from(u32::try_from(run.len()).unwrap_or(u32::MAX));
        let bits: f64 = counts
            .iter()
            .filter(|count| **count > 0)
            .map(|count| f64::from(*count) / length)
            .map(|share| -share * share.log2())
            .sum();
        let mixed = run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic());
        mixed && bits >= 3.0
    })
}

#[cfg(test)]
mod tests {
    use super::{assigns, credential, shape};

    #[test]
    fn known_shapes_are_found_anywhere_in_a_text() {
        let x = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6";
        for text in [
            format!("sk-ant-api03-{x}"),
            format!("run --key sk-{x}"),
            format!("ghp_{x}"),
            format!("\\nghp_{x}"),
            format!("npm_{x}"),
            format!("pypi-AgE{x}"),
            format!("(xoxb-{x})"),
            format!("eyJhbGciOiJIUzI1NiJ9.eyJ{x}.{x}"),
            "AKIAABCDEFGHIJKLMNOP".to_owned(),
            format!("-----BEGIN OPENSSH {}-----", "PRIVATE KEY"),
            "https://user:hunter2@example.com/x".to_owned(),
            "git+ssh://:hunter2@example.com".to_owned(),
        ] {
            assert!(shape(&text).is_some(), "{text}");
        }
    }

    #[test]
    fn what_only_resembles_them_is_not() {
        for text in [
            "task-management-is-a-word",
            "npm_config_registry_and_more",
            "https://user@example.com:8080/x",
            "https://example.com/a:b@c",
            "-----BEGIN CERTIFICATE-----",
            "ghp_short",
        ] {
            assert_eq!(shape(text), None, "{text}");
        }
    }

    #[test]
    fn an_assignment_inside_of_a_text_is_found() {
        for text in [
            "--token=abc",
            "--api-key = abc",
            "curl -H 'Authorization: Bearer abcdefgh'",
            "Authorization: Basic abcdefgh",
            "Bearer abcdefgh",
            "X_API_KEY=abc node",
            "?access_token=abc",
            "{\"password\": \"abc\"}",
            "\\\"token\\\":\\\"abc\\\"",
            "password: 1234",
            "a=b;secret=c",
        ] {
            assert!(assigns(text), "{text}");
        }
        for text in [
            "token",
            "token:",
            "max_tokens=100",
            "TOKEN=$TOKEN",
            "TOKEN=${TOKEN}",
            "token = <yours>",
            "author=me",
            "the bearer of news",
            "Bearer of",
            "auth: true",
            "http://a:80",
            "key=value",
            "gh auth:*",
        ] {
            assert!(!assigns(text), "{text}");
        }
    }

    #[test]
    fn what_looks_random_counts_under_a_suspicious_name() {
        let random = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b";
        assert!(credential(Some("deploy_key"), random).is_some());
        for (name, text) in [
            (Some("commit"), random),
            (None, random),
            (Some("deploy_key"), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
            (Some("key"), "a-long-name-that-is-made-of-words-only"),
            (Some("key"), "9f86d081884c7d65"),
        ] {
            assert_eq!(credential(name, text), None, "{text}");
        }
    }
}
