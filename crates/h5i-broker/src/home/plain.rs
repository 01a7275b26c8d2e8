//! Prose.
//!
//! Of names alone nothing follows here: a text may be *about* tokens. A line goes when it holds a
//! known shape, or assigns what looks like a credential to a name that credentials have.

use super::{Removed, contents};

const ASSIGNED: &str = "a credential inside of a text";
/// How long an assigned value is, at least.
const LEAST: usize = 8;

pub(super) fn strip(text: &str) -> (String, Vec<Removed>) {
    let (mut clean, mut removed) = (String::with_capacity(text.len()), Vec::new());
    let mut key = false;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if key {
            // What stands between the two marks of a private key is the key.
            key = !line.contains("-----END ");
            continue;
        }
        let assigned =
            || contents::assigned(line).into_iter().any(looks_secret).then_some(ASSIGNED);
        match contents::shape(line).or_else(assigned) {
            Some(why) => {
                key = line.contains("PRIVATE KEY") && !line.contains("-----END ");
                removed.push(Removed::line(index + 1, why));
            }
            None => clean.push_str(line),
        }
    }
    (clean, removed)
}

/// Letters with digits, or in both cases, of some length.
fn looks_secret(value: &str) -> bool {
    let any = |of: fn(&u8) -> bool| value.bytes().any(|byte| of(&byte));
    let letters = any(u8::is_ascii_alphabetic);
    value.len() >= LEAST
        && contents::is_value(value)
        && ((letters && any(u8::is_ascii_digit))
            || (any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase) && !value.contains('(')))
}
