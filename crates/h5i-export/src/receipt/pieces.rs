//! A JSON object read member by member in bounded memory.

use std::io::{self, BufRead};

/// Finds where values of a JSON text begin and end.
///
/// It knows as much of JSON as that takes. What a piece holds is not looked at: who takes it reads it as
/// the JSON text that it must be.
#[derive(Debug)]
pub(super) struct Pieces<R> {
    source: R,
    piece: Vec<u8>,
}

/// Why there is no next piece.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PieceError {
    /// The source failed.
    #[error("can't read on")]
    Io(#[source] io::Error),
    /// Something else stands where this must stand.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A value is longer than it can be.
    #[error("a value is longer than {limit} bytes")]
    TooLong {
        /// The most that it can have, in bytes.
        limit: usize,
    },
}

/// Whether a list or an object goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Item,
    End,
}

impl<R: BufRead> Pieces<R> {
    pub(super) const fn new(source: R) -> Self {
        Self { source, piece: Vec::new() }
    }

    /// The next byte that is no white space, left where it is.
    fn peek(&mut self) -> Result<Option<u8>, PieceError> {
        loop {
            let ahead = match self.source.fill_buf() {
                Ok(ahead) => ahead,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(PieceError::Io(error)),
            };
            let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            let blanks = ahead.iter().take_while(blank).count();
            let (found, more) = (ahead.get(blanks).copied(), !ahead.is_empty());
            self.source.consume(blanks);
            if found.is_some() || !more {
                return Ok(found);
            }
        }
    }

    /// Takes this byte.
    pub(super) fn take(&mut self, byte: u8, name: &'static str) -> Result<(), PieceError> {
        if self.peek()? != Some(byte) {
            return Err(PieceError::Missing(name));
        }
        self.source.consume(1);
        Ok(())
    }

    /// Stands before the first item of what was opened, or behind its end.
    pub(super) fn first(&mut self, close: u8) -> Result<Next, PieceError> {
        if self.peek()? != Some(close) {
            return Ok(Next::Item);
        }
        self.source.consume(1);
        Ok(Next::End)
    }

    /// Stands, after an item, before the next one or behind the end.
    pub(super) fn next(&mut self, close: u8) -> Result<Next, PieceError> {
        let next = match self.peek()? {
            Some(b',') => Next::Item,
            Some(found) if found == close => Next::End,
            _ => return Err(PieceError::Missing("a comma or an end")),
        };
        self.source.consume(1);
        Ok(next)
    }

    /// There is nothing more.
    pub(super) fn end(&mut self) -> Result<(), PieceError> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(PieceError::Missing("the end of the text")),
        }
    }

    /// The next value's text, of `limit` bytes at most.
    pub(super) fn value(&mut self, limit: usize) -> Result<&[u8], PieceError> {
        self.piece.clear();
        if self.peek()?.is_none() {
            return Err(PieceError::Missing("a value"));
        }
        let mut within = Within::default();
        loop {
            let ahead = match self.source.fill_buf() {
                Ok(ahead) => ahead,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(PieceError::Io(error)),
            };
            let (length, done) = match within.end(ahead) {
                Some(end) => (end, true),
                // A text that ends within a value is for its reader to refuse.
                None => (ahead.len(), ahead.is_empty()),
            };
            if self.piece.len() + length > limit {
                return Err(PieceError::TooLong { limit });
            }
            self.piece.extend_from_slice(ahead.get(..length).unwrap_or_default());
            self.source.consume(length);
            if done {
                return Ok(&self.piece);
            }
        }
    }
}

/// Where in a value one stands.
#[derive(Debug, Default)]
struct Within {
    depth: usize,
    string: bool,
    escape: bool,
    begun: bool,
}

impl Within {
    /// How many of these bytes belong to the value, where it ends in them.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.string {
                match byte {
                    _ if self.escape => self.escape = false,
                    b'\\' => self.escape = true,
                    b'"' => self.string = false,
                    _ => {}
                }
                if !self.string && self.depth == 0 {
                    return Some(at + 1);
                }
                continue;
            }
            match byte {
                b'"' if self.depth == 0 && self.begun => return Some(at),
                b'"' => self.string = true,
                b'{' | b'[' if self.depth == 0 && self.begun => return Some(at),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return Some(at),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => return Some(at),
                _ => {}
            }
            self.begun = true;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    const LIMIT: usize = 1 << 16;

    /// The object as the pieces give it, lists taken element by element; none where it is none.
    fn read(text: &[u8], at_once: usize) -> Option<Map<String, Value>> {
        let mut pieces = Pieces::new(io::BufReader::with_capacity(at_once, text));
        let mut all = Map::new();
        pieces.take(b'{', "an object").ok()?;
        let mut next = pieces.first(b'}').ok()?;
        while next == Next::Item {
            let name: String = serde_json::from_slice(pieces.value(LIMIT).ok()?).ok()?;
            pieces.take(b':', "a colon").ok()?;
            let value = if pieces.peek().ok()? == Some(b'[') {
                pieces.take(b'[', "a list").ok()?;
                let mut items = Vec::new();
                let mut next = pieces.first(b']').ok()?;
                while next == Next::Item {
                    items.push(serde_json::from_slice(pieces.value(LIMIT).ok()?).ok()?);
                    next = pieces.next(b']').ok()?;
                }
                Value::Array(items)
            } else {
                serde_json::from_slice(pieces.value(LIMIT).ok()?).ok()?
            };
            all.insert(name, value);
            next = pieces.next(b'}').ok()?;
        }
        pieces.end().ok()?;
        Some(all)
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\{}\\[\\],: \n\u{e9}]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"]{0,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn pieces_read_what_a_json_reader_reads(
            value in json(),
            pretty: bool,
            at_once in 1_usize..20,
            edit in prop::option::of((any::<prop::sample::Index>(), "[\\[\\]{}\",:\\\\ 1a\n]?")),
        ) {
            let text = match pretty {
                true => serde_json::to_string_pretty(&value).expect("json"),
                false => value.to_string(),
            };
            let mut text = text.into_bytes();
            if let Some((at, with)) = edit {
                let at = at.index(text.len());
                drop(text.splice(at..=at, with.bytes()));
            }
            let expected = serde_json::from_slice::<Map<String, Value>>(&text).ok();
            prop_assert_eq!(read(&text, at_once), expected, "{}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn a_value_is_bounded() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(LIMIT));
        let mut pieces = Pieces::new(long.as_bytes());
        pieces.take(b'{', "an object").expect("an object");
        assert_eq!(pieces.value(LIMIT).expect("a name"), b"\"a\"");
        pieces.take(b':', "a colon").expect("a colon");
        assert!(matches!(pieces.value(LIMIT), Err(PieceError::TooLong { limit: LIMIT })));
    }
}
