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
    shape_of("sk-or-v1-", alphanumeric, 20),
    shape_of("sk-svcacct-", dashed, 12),
    shape_of("sk-admin-", dashed, 12),
    shape_of("gsk_", alphanumeric, 20),
    shape_of("xai-", alphanumeric, 20),
    shape_of("pplx-", alphanumeric, 20),
    shape_of("nvapi-", dashed, 20),
    shape_of("csk-", alphanumeric, 20),
    shape_of("r8_", alphanumeric, 20),
    shape_of("lsv2_pt_", word, 16),
    shape_of("lsv2_sk_", word, 16),
    shape_of("pcsk_", word, 20),
    shape_of("ya29.", dashed, 16),
    shape_of("GOCSPX-", dashed, 16),
    shape_of("dop_v1_", alphanumeric, 32),
    shape_of("doo_v1_", alphanumeric, 32),
    shape_of("dor_v1_", alphanumeric, 32),
    shape_of("dp.pt.", alphanumeric, 20),
    shape_of("dp.st.", dotted, 20),
    shape_of("hvs.", dashed, 20),
    shape_of("hvb.", dashed, 20),
    shape_of("hvr.", dashed, 20),
    shape_of("tskey-", dashed, 12),
    shape_of("glrt-", dashed, 12),
    shape_of("gldt-", dashed, 12),
    shape_of("glcbt-", dashed, 12),
    shape_of("glptt-", dashed, 12),
    shape_of("ATATT3", dashed, 20),
    shape_of("ATBB", alphanumeric, 24),
    shape_of("dckr_pat_", dashed, 16),
    shape_of("dckr_oat_", dashed, 16),
    shape_of("rubygems_", alphanumeric, 32),
    shape_of("sbp_", alphanumeric, 32),
    shape_of("sb_secret_", dashed, 16),
    shape_of("pscale_tkn_", dashed, 16),
    shape_of("pscale_pw_", dashed, 16),
    shape_of("glsa_", word, 20),
    shape_of("glc_", alphanumeric, 30),
    shape_of("NRAK-", upper, 20),
    shape_of("sntrys_", dashed, 20),
    shape_of("sntryu_", alphanumeric, 32),
    shape_of("lin_api_", alphanumeric, 20),
    shape_of("ntn_", alphanumeric, 30),
    shape_of("figd_", dashed, 20),
    shape_of("PMAK-", dashed, 20),
    shape_of("shpat_", alphanumeric, 20),
    shape_of("shpss_", alphanumeric, 20),
    shape_of("whsec_", alphanumeric, 20),
    shape_of("xoxc-", dashed, 10),
    shape_of("xoxd-", dashed, 10),
    shape_of("xoxe.", dotted, 10),
    shape_of("pul-", alphanumeric, 30),
    shape_of("sk_test_", word, 12),
    shape_of("rk_test_", word, 12),
];

const KNOWN: &str = "a credential of a known shape";
const PRIVATE_KEY: &str = "a private key";
const URL: &str = "a password in a URL";
const URL_USER: &str = "a user in a URL that is as long as a token";
const PROXY: &str = "a password before an address";
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
    in_url(text).or_else(|| before_address(text).then_some(PROXY))
}

/// What ends the part of a URL that says whom to ask.
fn ends_authority(c: char) -> bool {
    "/?#\"'<>".contains(c) || c.is_whitespace()
}

/// A credential in a URL: a password, or a user that is as long as a token, as `https://TOKEN@host`.
fn in_url(text: &str) -> Option<&'static str> {
    text.match_indices("://").find_map(|(at, mark)| {
        let authority = text[at + mark.len()..].split(ends_authority).next()?;
        let (user, _) = authority.rsplit_once('@')?;
        match user.split_once(':') {
            Some((_, password)) => (!password.is_empty() && !is_reference(password)).then_some(URL),
            None => (user.len() >= TOKEN_USER && !is_reference(user)).then_some(URL_USER),
        }
    })
}

/// The shortest user of a URL that is taken for a token.
const TOKEN_USER: usize = 16;

/// `user:password@host:port`, as proxies are written without a scheme.
fn before_address(text: &str) -> bool {
    text.match_indices('@').any(|(at, _)| {
        let begins = |c: char| ends_authority(c) || "=,;@".contains(c);
        let before = text[..at].rsplit(begins).next().unwrap_or_default();
        let address = text[at + 1..].split(ends_authority).next().unwrap_or_default();
        let port = address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
        });
        let password = before.split_once(':');
        port && password
            .is_some_and(|(user, pass)| !user.is_empty() && !pass.is_empty() && !is_reference(pass))
    })
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
    // `-u user:password`, as in curl.
    for option in ["-u ", "--user ", "--proxy-user "] {
        for (at, option) in text.match_indices(option) {
            let inside = text[..at].chars().next_back().is_some_and(|c| !c.is_whitespace());
            let pair = first_word(beginning(&text[at + option.len()..]).trim_start_matches(QUOTES));
            values.extend(password_of(pair).filter(|_| !inside));
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

/// The password of `user:password`. Numbers are those of a user and a group.
pub(super) fn password_of(pair: &str) -> Option<&str> {
    let (user, password) = pair.split_once(':')?;
    let number = user.bytes().all(|byte| byte.is_ascii_digit());
    (!number && !password.is_empty()).then_some(password)
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
            format!("https://{x}@example.com/x.git"),
            "proxy=user:hunter2@proxy.example.com:8080".to_owned(),
            format!("gsk_{x}"),
            format!("hvs.{x}"),
            format!("sk-or-v1-{x}"),
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
            "https://user:$PASSWORD@example.com",
            "https://${A_RATHER_LONG_NAME}@example.com",
            "git@example.com:me/x.git",
            "npm:@scope/name@1:2",
            "mailto:me@example.com",
            "workspace:name@1.2.3",
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
            "curl -u me:abc x",
            "curl --user 'me:abc' x",
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
            "docker run -u 1000:1000 x",
            "sudo -u me make:all",
            "curl -u me:$PASSWORD x",
            "curl -u me x",
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
