//! Words and numbers of a report.

use crate::escape::Escaped;
use crate::secret::redact;

/// The longest piece of untrusted text that is shown, in bytes.
const MAX_SHOWN: usize = 400;

/// Untrusted bytes as a code span: redacted, inert, on one line, bounded.
pub(super) fn code(bytes: &[u8]) -> String {
    let clean = redact(bytes);
    let shown = clean.get(..MAX_SHOWN).unwrap_or(&clean);
    let mut text = Escaped::new(shown).to_string();
    if shown.len() < clean.len() {
        text.push('…');
    }
    // The fence is longer than any run of backticks inside.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    if longest == 0 && !text.is_empty() {
        return format!("`{text}`");
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

/// Trusted words that may come from a file all the same: inert, without Markdown.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in Escaped::new(&redact(text.as_bytes())).to_string().chars() {
        if matches!(c, '*' | '_' | '`' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A number with its noun.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A size with its unit.
pub(super) fn size(bytes: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

/// A span of time with its unit.
pub(super) fn span(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..120_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        120_000..7_200_000 => format!("{} min", millis / 60_000),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}
