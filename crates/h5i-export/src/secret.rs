//! Secrets of known shapes.
//!
//! Prefixes that issuers publish so that scanners can find them, each with the alphabet and the
//! least length of what follows. A secret without such a shape is not found.

mod planted;
mod stream;

use std::sync::LazyLock;

pub use planted::{PlantedError, PlantedValues};
pub use stream::Redactor;

/// One known shape.
struct Shape {
    name: &'static str,
    prefix: &'static [u8],
    /// Which bytes may follow the prefix.
    alphabet: fn(u8) -> bool,
    /// How many must.
    least: usize,
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
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

const fn shape(
    name: &'static str,
    prefix: &'static [u8],
    alphabet: fn(u8) -> bool,
    least: usize,
) -> Shape {
    Shape { name, prefix, alphabet, least }
}

const SHAPES: &[Shape] = &[
    shape("cloud access key id", b"AKIA", upper, 16),
    shape("cloud session key id", b"ASIA", upper, 16),
    shape("code host token", b"ghp_", word, 36),
    shape("code host token", b"gho_", word, 36),
    shape("code host token", b"ghu_", word, 36),
    shape("code host token", b"ghs_", word, 36),
    shape("code host token", b"ghr_", word, 36),
    shape("code host token", b"github_pat_", word, 22),
    shape("code host token", b"glpat-", dashed, 20),
    shape("model API key", b"sk-ant-", dashed, 24),
    shape("model API key", b"sk-proj-", dashed, 24),
    shape("model API key", b"sk-", word, 40),
    shape("model hub token", b"hf_", word, 30),
    shape("cloud API key", b"AIza", dashed, 35),
    shape("chat token", b"xoxb-", dashed, 20),
    shape("chat token", b"xoxp-", dashed, 20),
    shape("chat token", b"xoxa-", dashed, 20),
    shape("chat token", b"xapp-", dashed, 20),
    shape("payment key", b"sk_live_", word, 20),
    shape("payment key", b"rk_live_", word, 20),
    shape("package token", b"npm_", word, 36),
    shape("package token", b"pypi-AgE", dashed, 40),
    shape("mail key", b"SG.", dotted, 50),
    shape("signed web token", b"eyJhbGciOi", dotted, 60),
    shape("age secret key", b"AGE-SECRET-KEY-1", upper, 50),
    shape("model API key", b"sk-or-v1-", word, 40),
    shape("model API key", b"sk-svcacct-", dashed, 24),
    shape("model API key", b"sk-admin-", dashed, 24),
    shape("model API key", b"gsk_", word, 40),
    shape("model API key", b"xai-", word, 60),
    shape("model API key", b"pplx-", word, 40),
    shape("model API key", b"nvapi-", dashed, 40),
    shape("model API key", b"csk-", word, 40),
    shape("model API key", b"r8_", word, 30),
    shape("model API key", b"lsv2_pt_", word, 32),
    shape("model API key", b"lsv2_sk_", word, 32),
    shape("database key", b"pcsk_", word, 40),
    shape("cloud access token", b"ya29.", dashed, 30),
    shape("OAuth client secret", b"GOCSPX-", dashed, 24),
    shape("cloud access token", b"dop_v1_", word, 60),
    shape("cloud access token", b"doo_v1_", word, 60),
    shape("cloud access token", b"dor_v1_", word, 60),
    shape("secret manager token", b"dp.pt.", word, 40),
    shape("secret manager token", b"dp.st.", dotted, 40),
    shape("secret manager token", b"hvs.", dashed, 24),
    shape("secret manager token", b"hvb.", dashed, 24),
    shape("secret manager token", b"hvr.", dashed, 24),
    shape("network key", b"tskey-", dashed, 20),
    shape("code host token", b"glrt-", dashed, 20),
    shape("code host token", b"gldt-", dashed, 20),
    shape("code host token", b"glcbt-", dashed, 20),
    shape("code host token", b"glptt-", dashed, 20),
    shape("code host token", b"ATATT3", dashed, 60),
    shape("code host token", b"ATBB", word, 32),
    shape("image registry token", b"dckr_pat_", dashed, 20),
    shape("image registry token", b"dckr_oat_", dashed, 20),
    shape("package token", b"rubygems_", word, 48),
    shape("database key", b"sbp_", word, 40),
    shape("database key", b"sb_secret_", dashed, 20),
    shape("database key", b"pscale_tkn_", dashed, 32),
    shape("database key", b"pscale_pw_", dashed, 32),
    shape("monitoring key", b"glsa_", word, 40),
    shape("monitoring key", b"glc_", word, 40),
    shape("monitoring key", b"NRAK-", upper, 27),
    shape("monitoring key", b"sntrys_", dashed, 40),
    shape("monitoring key", b"sntryu_", word, 60),
    shape("issue tracker key", b"lin_api_", word, 40),
    shape("issue tracker key", b"ntn_", word, 40),
    shape("design tool token", b"figd_", dashed, 40),
    shape("API client key", b"PMAK-", dashed, 50),
    shape("shop token", b"shpat_", word, 32),
    shape("shop token", b"shpss_", word, 32),
    shape("payment key", b"whsec_", word, 32),
    shape("chat token", b"xoxc-", dashed, 20),
    shape("chat token", b"xoxd-", dashed, 20),
    shape("chat token", b"xoxe.", dotted, 20),
    shape("cloud access token", b"pul-", word, 40),
];

/// The shapes by the first byte of their prefixes.
static BY_FIRST: LazyLock<[Vec<&Shape>; 256]> = LazyLock::new(|| {
    let mut all = [const { Vec::new() }; 256];
    for shape in SHAPES {
        if let Some(first) = shape.prefix.first() {
            all[usize::from(*first)].push(shape);
        }
    }
    all
});

const KEY_BEGIN: &[u8] = b"-----BEGIN ";
/// Whether a secret may begin with a byte.
const BEGINS: [bool; 256] = {
    let mut begins = [false; 256];
    let mut at = 0;
    while at < SHAPES.len() {
        begins[SHAPES[at].prefix[0] as usize] = true;
        at += 1;
    }
    begins[KEY_BEGIN[0] as usize] = true;
    begins
};
const KEY_END: &[u8] = b"-----";
/// What a key calls itself between its two marks.
const KEY_NAMES: [&[u8]; 2] = [b"PRIVATE KEY", b"PRIVATE KEY BLOCK"];
/// The longest such name that is looked at, in bytes.
const MAX_KEY_NAME: usize = 64;

/// One secret that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretFound {
    /// What it looks like.
    pub shape: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends, in bytes; a private key's mark stands for the key.
    pub end: usize,
}

/// Every secret of a known shape in `content`, in order.
pub fn find_secrets(content: &[u8]) -> impl Iterator<Item = SecretFound> {
    let mut at = 0;
    let mut line = 1;
    std::iter::from_fn(move || {
        while at < content.len() {
            let start = at;
            if content[start] == b'\n' {
                line += 1;
            }
            if let Some(Hit { shape, end, .. }) = secret_at(content, start) {
                at = end;
                return Some(SecretFound { shape, line, start, end });
            }
            at += 1;
        }
        None
    })
}

/// `content` with every secret of a known shape replaced by `[redacted: SHAPE]`.
#[must_use]
pub fn redact(content: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(content.len());
    let mut from = 0;
    for found in find_secrets(content) {
        clean.extend_from_slice(&content[from..found.start]);
        mark(&mut clean, found.shape);
        from = found.end;
    }
    clean.extend_from_slice(&content[from..]);
    clean
}

/// Puts in place of a secret what it was.
fn mark(clean: &mut Vec<u8>, shape: &str) {
    clean.extend_from_slice(b"[redacted: ");
    clean.extend_from_slice(shape.as_bytes());
    clean.push(b']');
}

/// A secret, and where it ends.
struct Hit {
    shape: &'static str,
    end: usize,
    /// What more of it may follow at the end; nothing for a private key's mark.
    alphabet: Option<fn(u8) -> bool>,
}

/// The secret that begins at `start`.
fn secret_at(content: &[u8], start: usize) -> Option<Hit> {
    let rest = &content[start..];
    let first = usize::from(*rest.first()?);
    // A cheap first look, at each byte of all that is read: most begin nothing.
    if !BEGINS[first] {
        return None;
    }
    if let Some(after) = rest.strip_prefix(KEY_BEGIN) {
        // `RSA `, `OPENSSH `, `ENCRYPTED ` or nothing, then the words of a private key.
        let kind = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b' ');
        let length = after.iter().take(MAX_KEY_NAME).take_while(|byte| kind(byte)).count();
        let name = &after[..length];
        let end = start + KEY_BEGIN.len() + length;
        let is_key = KEY_NAMES.iter().any(|key| name.ends_with(key));
        return (is_key && after[length..].starts_with(KEY_END)).then_some(Hit {
            shape: "private key",
            end: end + KEY_END.len(),
            alphabet: None,
        });
    }
    // A word that only happens to contain the prefix is not one; the letter of an escape, as in
    // `\n`, belongs to no word.
    let before = |back: usize| start.checked_sub(back).and_then(|at| content.get(at)).copied();
    if before(1).is_some_and(word) && before(2) != Some(b'\\') {
        return None;
    }
    BY_FIRST[first].iter().find_map(|shape| {
        let tail = rest.strip_prefix(shape.prefix)?;
        let length = tail.iter().take_while(|&&byte| (shape.alphabet)(byte)).count();
        (length >= shape.least).then(|| Hit {
            shape: shape.name,
            end: start + shape.prefix.len() + length,
            alphabet: Some(shape.alphabet),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{SHAPES, find_secrets, redact};

    #[test]
    fn every_shape_is_found_with_its_line_and_redacted() {
        for shape in SHAPES {
            let secret = [shape.prefix, &b"A".repeat(shape.least)].concat();
            let text = [b"first\nkey = \"", &secret[..], b"\"\nlast\n"].concat();
            let found: Vec<_> = find_secrets(&text).collect();
            assert_eq!(found.len(), 1, "{}", shape.name);
            assert_eq!((found[0].line, &text[found[0].start..found[0].end]), (2, &secret[..]));
            let clean = redact(&text);
            assert!(!clean.windows(secret.len()).any(|window| window == secret));
            assert!(
                clean.starts_with(b"first\nkey = \"[redacted: ") && clean.ends_with(b"]\"\nlast\n")
            );
        }
    }

    #[test]
    fn a_secret_after_an_escape_is_found_and_one_after_a_letter_is_not() {
        let secret = format!("ghp_{}", "A1b2".repeat(9));
        for (text, found) in [
            (format!("printf 'x\\n{secret}'"), 1),
            (format!("\"a\\t{secret}\""), 1),
            (format!("n{secret}"), 0),
        ] {
            assert_eq!(find_secrets(text.as_bytes()).count(), found, "{text}");
        }
    }

    #[test]
    fn a_private_key_is_found_by_its_first_line() {
        for kind in ["", "OPENSSH ", "RSA ", "ENCRYPTED ", "EC "] {
            let text = format!("x\n{}{kind}{}\nabc", "-----BEGIN ", "PRIVATE KEY-----");
            let lines: Vec<_> = find_secrets(text.as_bytes()).map(|found| found.line).collect();
            assert_eq!(lines, [2], "{text}");
        }
        let block = format!("{}PGP {}", "-----BEGIN ", "PRIVATE KEY BLOCK-----");
        assert_eq!(redact(block.as_bytes()), b"[redacted: private key]");
        let no_key = format!("{}RSA and {}", "-----BEGIN ", "PRIVATE KEY-----");
        assert_eq!(redact(no_key.as_bytes()), no_key.as_bytes());
    }

    #[test]
    fn shorter_ones_and_words_around_a_prefix_are_left() {
        for shape in SHAPES {
            let short = [shape.prefix, &b"A".repeat(shape.least - 1)].concat();
            let inside = [b"x", shape.prefix, &b"A".repeat(shape.least)].concat();
            assert_eq!(redact(&inside), inside, "{}", shape.name);
            if shape.prefix != b"sk-ant-" && shape.prefix != b"sk-proj-" {
                assert_eq!(redact(&short), short, "{}", shape.name);
            }
        }
        assert_eq!(redact(b"-----BEGIN PUBLIC KEY-----"), b"-----BEGIN PUBLIC KEY-----");
    }
}
