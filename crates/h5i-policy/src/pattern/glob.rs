//! One component of a pattern against one name.

use super::PatternError;

/// A compiled component: matches whole names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Glob(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Token {
    Byte(u8),
    AnyByte,
    AnyRun,
    Class { ranges: Vec<(u8, u8)>, sense: Sense },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Sense {
    In,
    NotIn,
}

impl Glob {
    /// `*`.
    pub(super) fn anything() -> Self {
        Self(vec![Token::AnyRun])
    }

    pub(super) fn new(text: &str) -> Result<Self, PatternError> {
        let mut tokens = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'*' if tokens.last() == Some(&Token::AnyRun) => {}
                b'*' => tokens.push(Token::AnyRun),
                b'?' => tokens.push(Token::AnyByte),
                b'[' => tokens.push(class(&mut rest)?),
                b'\\' => {
                    let (&byte, after) = rest.split_first().ok_or(PatternError::DanglingEscape)?;
                    rest = after;
                    tokens.push(Token::Byte(byte));
                }
                byte => tokens.push(Token::Byte(byte)),
            }
        }
        Ok(Self(tokens))
    }

    /// Matches by going back to the last `*` only: an earlier one never needs another try, so the
    /// cost is the product of the lengths at worst.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        let tokens = &self.0;
        let (mut t, mut n) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match (tokens.get(t), name.get(n)) {
                (Some(Token::AnyRun), _) => {
                    t += 1;
                    retry = Some((t, n));
                    continue;
                }
                (Some(token), Some(&byte)) if token.takes(byte) => {
                    t += 1;
                    n += 1;
                    continue;
                }
                (None, None) => return true,
                _ => {}
            }
            match retry {
                Some((after_star, from)) if from < name.len() => {
                    retry = Some((after_star, from + 1));
                    t = after_star;
                    n = from + 1;
                }
                _ => return false,
            }
        }
    }
}

impl Token {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::AnyByte => true,
            Self::AnyRun => false,
            Self::Class { ranges, sense } => {
                let inside = ranges.iter().any(|(from, to)| (*from..=*to).contains(&byte));
                inside == (*sense == Sense::In)
            }
        }
    }
}

/// Reads a class after its `[`.
fn class(rest: &mut &[u8]) -> Result<Token, PatternError> {
    let mut sense = Sense::In;
    if let Some((b'!' | b'^', after)) = rest.split_first() {
        sense = Sense::NotIn;
        *rest = after;
    }
    let mut ranges = Vec::new();
    loop {
        if rest.first() == Some(&b']') && !ranges.is_empty() {
            *rest = &rest[1..];
            return Ok(Token::Class { ranges, sense });
        }
        // Named classes (`[:alpha:]`) would silently mean something else here.
        if rest.starts_with(b"[:") || rest.starts_with(b"[.") || rest.starts_with(b"[=") {
            return Err(PatternError::BadClass);
        }
        let from = member(rest)?;
        let is_range = rest.first() == Some(&b'-') && rest.get(1).is_some_and(|b| *b != b']');
        let to = if is_range {
            *rest = &rest[1..];
            member(rest)?
        } else {
            from
        };
        if from > to {
            return Err(PatternError::BadClass);
        }
        ranges.push((from, to));
    }
}

fn member(rest: &mut &[u8]) -> Result<u8, PatternError> {
    let mut next = || {
        let (&byte, after) = rest.split_first().ok_or(PatternError::BadClass)?;
        *rest = after;
        Ok::<u8, PatternError>(byte)
    };
    let mut byte = next()?;
    if byte == b'\\' {
        byte = next()?;
    }
    if byte.is_ascii() { Ok(byte) } else { Err(PatternError::BadClass) }
}
