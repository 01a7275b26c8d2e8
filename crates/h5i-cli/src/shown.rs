//! Untrusted bytes on their way to a person.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Prints bytes so that they are inert on a terminal and can be told apart.
///
/// Printable text stays as it is. Control characters, bidirectional and invisible format
/// characters, line separators and bytes that are not UTF-8 become `\n`, `\t`, `\u{…}` or `\xNN`;
/// a backslash becomes `\\`, so that two different inputs never print alike.
#[derive(Clone, Copy)]
pub struct Shown<'a>(&'a [u8]);

impl<'a> Shown<'a> {
    /// Shows bytes of any origin.
    #[must_use]
    pub const fn bytes(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Shows text of any origin.
    #[must_use]
    pub const fn text(text: &'a str) -> Self {
        Self(text.as_bytes())
    }

    /// Shows a path.
    #[must_use]
    pub fn path(path: &'a Path) -> Self {
        Self(path.as_os_str().as_bytes())
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    c if is_active(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                    c => fmt::Write::write_char(f, c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Whether a character moves the cursor, reorders text or shows nothing.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::Shown;

    #[test]
    fn ordinary_text_stays_as_it_is() {
        assert_eq!(Shown::text("src/größe 1.rs").to_string(), "src/größe 1.rs");
    }

    #[test]
    fn escape_sequences_bidi_and_stray_bytes_become_inert() {
        let shown = Shown::bytes(b"a\x1b[2Jb\xffc\n\xe2\x80\xae\\").to_string();
        assert_eq!(shown, "a\\u{1b}[2Jb\\xffc\\n\\u{202e}\\\\");
    }
}
