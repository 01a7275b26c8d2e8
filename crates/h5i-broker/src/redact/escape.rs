//! Escapes that stand for other bytes, read one byte at a time.

/// A way of writing bytes as several.
#[derive(Clone, Copy)]
pub(super) enum Escape {
    /// `%2F`. RFC 3986, section 2.1.
    Percent,
    /// `\/`, `\n`, `\u002f`. RFC 8259, section 7.
    Json,
    /// `&#43;`, `&#x2B;`, `&plus;`: references that end with a semicolon. HTML, section 13.5.
    Html,
}

/// Most digits of a numeric reference. Zeros may lead, so that some bound is needed; the largest
/// character has seven.
const MOST_DIGITS: usize = 8;

/// The named references that stand for one character of ASCII, in order. HTML, section 13.5.
const NAMES: &[(&[u8], u8)] = &[
    (b"AMP;", b'&'),
    (b"DiacriticalGrave;", b'`'),
    (b"GT;", b'>'),
    (b"Hat;", b'^'),
    (b"LT;", b'<'),
    (b"NewLine;", b'\n'),
    (b"QUOT;", b'"'),
    (b"Tab;", b'\t'),
    (b"UnderBar;", b'_'),
    (b"VerticalLine;", b'|'),
    (b"amp;", b'&'),
    (b"apos;", b'\''),
    (b"ast;", b'*'),
    (b"bsol;", b'\\'),
    (b"colon;", b':'),
    (b"comma;", b','),
    (b"commat;", b'@'),
    (b"dollar;", b'$'),
    (b"equals;", b'='),
    (b"excl;", b'!'),
    (b"grave;", b'`'),
    (b"gt;", b'>'),
    (b"lbrace;", b'{'),
    (b"lbrack;", b'['),
    (b"lcub;", b'{'),
    (b"lowbar;", b'_'),
    (b"lpar;", b'('),
    (b"lsqb;", b'['),
    (b"lt;", b'<'),
    (b"midast;", b'*'),
    (b"num;", b'#'),
    (b"percnt;", b'%'),
    (b"period;", b'.'),
    (b"plus;", b'+'),
    (b"quest;", b'?'),
    (b"quot;", b'"'),
    (b"rbrace;", b'}'),
    (b"rbrack;", b']'),
    (b"rcub;", b'}'),
    (b"rpar;", b')'),
    (b"rsqb;", b']'),
    (b"semi;", b';'),
    (b"sol;", b'/'),
    (b"verbar;", b'|'),
    (b"vert;", b'|'),
];

/// What the beginning of an escape is.
pub(super) enum Reading {
    /// It may become one.
    Open,
    /// It is one, for so many of these bytes.
    Whole([u8; 4], usize),
    /// It is none.
    Broken,
}

impl Escape {
    /// The byte that begins one.
    pub(super) fn lead(self) -> u8 {
        match self {
            Self::Percent => b'%',
            Self::Json => b'\\',
            Self::Html => b'&',
        }
    }

    /// What `written`, which starts with [`Escape::lead`], is.
    pub(super) fn read(self, written: &[u8]) -> Reading {
        match (self, written) {
            (Self::Percent, [_, digits @ ..]) => read_digits(digits, 2),
            (Self::Json, [_, b'u', digits @ ..]) => read_digits(digits, 4),
            (Self::Json | Self::Html, [_]) => Reading::Open,
            (Self::Html, [_, b'#', b'x' | b'X', digits @ ..]) => read_reference(digits, 16),
            (Self::Html, [_, b'#', digits @ ..]) => read_reference(digits, 10),
            (Self::Html, [_, name @ ..]) => read_name(name),
            (Self::Json, [_, letter]) => match letter {
                b'"' | b'\\' | b'/' => whole(*letter),
                b'b' => whole(8),
                b'f' => whole(12),
                b'n' => whole(b'\n'),
                b'r' => whole(b'\r'),
                b't' => whole(b'\t'),
                _ => Reading::Broken,
            },
            _ => Reading::Broken,
        }
    }
}

fn whole(byte: u8) -> Reading {
    Reading::Whole([byte, 0, 0, 0], 1)
}

/// Two digits are a byte, four a character. Halves of a surrogate pair are none.
fn read_digits(digits: &[u8], needed: usize) -> Reading {
    let mut value = 0;
    for digit in digits {
        let Some(digit) = char::from(*digit).to_digit(16) else { return Reading::Broken };
        value = value * 16 + digit;
    }
    if digits.len() < needed {
        return Reading::Open;
    }
    if let (2, Ok(byte)) = (needed, u8::try_from(value)) {
        return whole(byte);
    }
    character(value)
}

/// The digits of a numeric reference, and its end.
fn read_reference(written: &[u8], radix: u32) -> Reading {
    let whole = written.strip_suffix(b";");
    let digits = whole.unwrap_or(written);
    if digits.len() > MOST_DIGITS || (digits.is_empty() && whole.is_some()) {
        return Reading::Broken;
    }
    let mut value = 0;
    for digit in digits {
        let Some(digit) = char::from(*digit).to_digit(radix) else { return Reading::Broken };
        value = value * radix + digit;
    }
    if whole.is_some() { character(value) } else { Reading::Open }
}

fn read_name(written: &[u8]) -> Reading {
    // The first name that is not before it is the first that begins with it, if any does.
    let place = NAMES.partition_point(|(name, _)| *name < written);
    match NAMES.get(place).filter(|(name, _)| name.starts_with(written)) {
        Some((name, byte)) if name.len() == written.len() => whole(*byte),
        Some(_) => Reading::Open,
        None => Reading::Broken,
    }
}

fn character(value: u32) -> Reading {
    let Some(character) = char::from_u32(value) else { return Reading::Broken };
    let mut bytes = [0; 4];
    let length = character.encode_utf8(&mut bytes).len();
    Reading::Whole(bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_found() {
        assert!(NAMES.is_sorted());
        for (name, byte) in NAMES {
            for end in 0..name.len() {
                assert!(matches!(read_name(&name[..end]), Reading::Open), "{name:?}");
            }
            let found = read_name(name);
            assert!(matches!(found, Reading::Whole([one, ..], 1) if one == *byte), "{name:?}");
        }
        for none in [&b"&"[..], b"~", b"comm;", b"plus;;", b"Z"] {
            assert!(matches!(read_name(none), Reading::Broken), "{none:?}");
        }
    }
}
