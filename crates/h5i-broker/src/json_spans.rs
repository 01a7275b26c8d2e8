//! Where the values of a JSON document stand in its text.
//!
//! Secrets are read, replaced and cut out by their places: nothing else of the text is copied or
//! written anew.

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::de::IgnoredAny;
use zeroize::Zeroizing;

/// A value and its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) at: Range<usize>,
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text,
    /// A number, `true`, `false`, `null`.
    Other,
}

/// A member of an object. The key's place has its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) key: Range<usize>,
    pub(crate) value: Node,
}

impl Node {
    /// Reads a whole document: UTF-8, RFC 8259, at most 127 levels deep.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // Whether it is JSON at all is decided by the parser that everybody uses.
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        reader.space();
        reader.value()
    }

    /// The value at a JSON Pointer. Of members with one name the last one counts.
    pub(crate) fn pointed(&self, text: &str, pointer: &str) -> Option<&Self> {
        let mut node = self;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            node = match &node.kind {
                Kind::Object(members) => {
                    let named = |member: &&Member| {
                        string(text, &member.key).is_some_and(|key| *key == token)
                    };
                    &members.iter().rev().find(named)?.value
                }
                Kind::Array(items) => {
                    let canonical = token == "0" || !token.starts_with(['0', '+']);
                    items.get(token.parse::<usize>().ok().filter(|_| canonical)?)?
                }
                Kind::Text | Kind::Other => return None,
            };
        }
        Some(node)
    }

    /// The string that this is, without its escapes.
    pub(crate) fn string(&self, text: &str) -> Option<Zeroizing<String>> {
        matches!(self.kind, Kind::Text).then(|| string(text, &self.at))?
    }
}

/// The string that stands at a place.
pub(crate) fn string(text: &str, at: &Range<usize>) -> Option<Zeroizing<String>> {
    serde_json::from_str(text.get(at.clone())?).ok().map(Zeroizing::new)
}

/// Walks through a text that is known to be JSON.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `byte`, where it is next, with the space around it.
    fn takes(&mut self, byte: u8) -> bool {
        self.space();
        let next = self.peek() == Some(byte);
        if next {
            self.at += 1;
            self.space();
        }
        next
    }

    fn value(&mut self) -> Option<Node> {
        let start = self.at;
        let kind = match self.peek()? {
            b'{' => {
                self.takes(b'{');
                let mut members = Vec::new();
                while self.peek()? != b'}' {
                    let key = self.text_at()?;
                    self.takes(b':').then_some(())?;
                    members.push(Member { key, value: self.value()? });
                    self.takes(b',');
                }
                self.at += 1;
                Kind::Object(members)
            }
            b'[' => {
                self.takes(b'[');
                let mut items = Vec::new();
                while self.peek()? != b']' {
                    items.push(self.value()?);
                    self.takes(b',');
                }
                self.at += 1;
                Kind::Array(items)
            }
            b'"' => {
                self.text_at()?;
                Kind::Text
            }
            _ => {
                let ends =
                    |byte: u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
                while self.peek().is_some_and(|byte| !ends(byte)) {
                    self.at += 1;
                }
                Kind::Other
            }
        };
        (self.at > start).then_some(Node { at: start..self.at, kind })
    }

    fn text_at(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        (self.peek()? == b'"').then_some(())?;
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(start..self.at)
    }
}
