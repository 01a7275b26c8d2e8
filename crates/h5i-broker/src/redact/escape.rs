//! Escapes that stand for other bytes, read one byte at a time.

/// A way of writing bytes as several.
#[derive(Clone, Copy)]
pub(super) enum Escape {
    /// `%2F`. RFC 3986, section 2.1.
    Percent,
    /// `\/`, `\n`, `\u002f`. RFC 8259, section 7.
    Json,
}

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
        }
    }

    /// What `written`, which starts with [`Escape::lead`], is.
    pub(super) fn read(self, written: &[u8]) -> Reading {
        match (self, written) {
            (Self::Percent, [_, digits @ ..]) => read_digits(digits, 2),
            (Self::Json, [_, b'u', digits @ ..]) => read_digits(digits, 4),
            (Self::Json, [_]) => Reading::Open,
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
    let Some(character) = char::from_u32(value) else { return Reading::Broken };
    let mut bytes = [0; 4];
    let length = character.encode_utf8(&mut bytes).len();
    Reading::Whole(bytes, length)
}
