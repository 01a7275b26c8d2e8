//! Words and numbers of a report.

use crate::escape::Escaped;
use crate::secret::redact;

/// The longest piece of untrusted text that is shown, in bytes.
const MAX_SHOWN: usize = 400;

/// Untrusted bytes as one line of inert text: redacted, bounded.
pub(super) fn shown(bytes: &[u8]) -> String {
    let clean = redact(bytes);
    let part = clean.get(..MAX_SHOWN).unwrap_or(&clean);
    let mut text = Escaped::new(part).to_string();
    if part.len() < clean.len() {
        text.push('…');
    }
    text
}

/// As much of untrusted bytes as [`shown`] needs to show the same: what is longer is redacted as a
/// whole before it is cut, so that no secret is cut to what is not known for one.
pub(super) fn kept(bytes: &[u8]) -> Vec<u8> {
    if bytes.len() <= MAX_SHOWN {
        return bytes.to_vec();
    }
    let mut clean = redact(bytes);
    // One byte more says that there was more.
    clean.truncate(MAX_SHOWN + 1);
    clean
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
