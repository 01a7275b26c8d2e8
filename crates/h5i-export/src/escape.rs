//! Untrusted bytes made visible before they reach a person.

use std::fmt;

/// Shows untrusted bytes as one line of inert text.
///
/// Printable text stays as it is. Control characters, ANSI escapes, bidirectional overrides and
/// invisible code points become `\u{…}`; bytes that are not UTF-8 become `\x…`; a backslash is
/// doubled, so that two different inputs never look alike. Nothing that a terminal or a browser
/// acts on as a control passes.
#[derive(Clone, Copy)]
pub struct Escaped<'a>(&'a [u8]);

impl<'a> Escaped<'a> {
    /// Wraps `bytes`; nothing is copied.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    '\r' => f.write_str("\\r")?,
                    '\\' => f.write_str("\\\\")?,
                    c if is_unprintable(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                    c => f.write_char(c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Whether `c` is a control or changes how its neighbours are shown.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control() || is_bidi_control(c) || is_invisible(c)
}

/// Bidirectional marks, embeddings, overrides and isolates (Unicode Standard Annex 9).
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Code points that leave no mark: those that HFS+ ignores in names, other zero-width and format
/// characters, line and paragraph separators, tags.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{180b}'..='\u{180e}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    fn shown(bytes: &[u8]) -> String {
        Escaped::new(bytes).to_string()
    }

    #[test]
    fn plain_text_is_shown_as_it_is() {
        assert_eq!(shown("src/größe 1.rs".as_bytes()), "src/größe 1.rs");
    }

    #[test]
    fn escapes_and_overrides_become_inert() {
        assert_eq!(shown(b"\x1b[2Ja\nb\x07"), "\\u{1b}[2Ja\\nb\\u{7}");
        assert_eq!(shown("a\u{202e}b\u{9b}c".as_bytes()), "a\\u{202e}b\\u{9b}c");
        assert_eq!(shown(b"\xff\x9b"), "\\xff\\x9b");
    }

    #[test]
    fn different_inputs_never_look_alike() {
        assert_ne!(shown(b"\\n"), shown(b"\n"));
        assert_ne!(shown(b"\\xff"), shown(b"\xff"));
    }
}
