//! Names as the most forgiving file system would compare them.

use unicode_normalization::UnicodeNormalization as _;

use crate::escape::{is_bidi_control, is_invisible};

/// The key under which a folding file system could take two names for one.
///
/// Canonical decomposition, lower, upper and lower case (so that `ẞ` and `ß` meet `ss`, and `ſ`
/// meets `s`), decomposition again, code points that HFS+ or ext4's folding ignore left out. Bytes that are
/// not UTF-8 stay. It errs towards "the same".
pub(crate) fn fold_name(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let mut key = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        let folded: String = chunk
            .valid()
            .chars()
            .filter(|&c| !is_bidi_control(c) && !is_invisible(c) && !is_variation_selector(c))
            .nfd()
            .flat_map(char::to_lowercase)
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
            .map(|c| if c == 'ς' { 'σ' } else { c })
            .nfd()
            .collect();
        key.extend_from_slice(folded.as_bytes());
        key.extend_from_slice(chunk.invalid());
    }
    key
}

/// Variation selectors choose a glyph; ext4's case folding ignores them.
fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}
