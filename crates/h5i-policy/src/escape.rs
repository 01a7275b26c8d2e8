//! Untrusted text as it may be shown to a person.

use std::fmt;

/// Text of unknown origin, printed so that it can't act on a terminal or deceive the eye.
///
/// Control characters, bidirectional overrides, invisible characters and line separators come out
/// as `\u{…}`; everything else is printed as it is. A cut is shown by `…`.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

/// Longest text, in characters, that [`Escaped`] prints before it cuts.
const LONGEST: usize = 200;

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, c) in self.0.chars().enumerate() {
            if at == LONGEST {
                return f.write_str("…");
            }
            inert(c, f)?;
        }
        Ok(())
    }
}

/// As [`Escaped`], without a cut: for what a person is asked to consent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<'a>(pub(crate) &'a str);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| inert(c, f))
    }
}

/// As [`Escaped`], cut at its beginning: whose a name of the network is stands at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail<'a>(pub(crate) &'a str);

impl fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.0.chars().count().saturating_sub(LONGEST);
        if cut > 0 {
            f.write_str("…")?;
        }
        self.0.chars().skip(cut).try_for_each(|c| inert(c, f))
    }
}

fn inert(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_deceptive(c) {
        write!(f, "\\u{{{:x}}}", u32::from(c))
    } else {
        fmt::Write::write_char(f, c)
    }
}

/// Whether `c` changes how its neighbours are shown, or is not shown itself.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{Escaped, Tail, Whole};

    #[test]
    fn escape_sequences_and_overrides_are_made_visible() {
        let shown = Escaped("a\u{1b}[2J\u{202e}b\nc").to_string();
        assert_eq!(shown, "a\\u{1b}[2J\\u{202e}b\\u{a}c");
    }

    #[test]
    fn ordinary_text_of_any_script_is_untouched() {
        assert_eq!(Escaped("naïve/文書 (2)").to_string(), "naïve/文書 (2)");
    }

    #[test]
    fn long_text_is_cut_visibly() {
        let shown = Escaped(&"x".repeat(1000)).to_string();
        assert_eq!(shown.chars().count(), 201);
        assert!(shown.ends_with('…'));
    }
    #[test]
    fn what_is_consented_to_is_whole_and_a_name_that_is_cut_keeps_its_end() {
        let name = format!("api.example.com.{}evil.example", "x.".repeat(200));
        assert_eq!(Whole(&name).to_string(), name);
        assert_eq!(Whole("a\u{202e}b").to_string(), "a\\u{202e}b");
        let tail = Tail(&name).to_string();
        assert!(tail.starts_with('…') && tail.ends_with(".evil.example"), "{tail}");
        assert_eq!(tail.chars().count(), 201);
        assert_eq!(Tail("a.example").to_string(), "a.example");
    }
}
