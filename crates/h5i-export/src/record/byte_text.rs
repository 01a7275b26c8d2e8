//! Bytes in JSON: text where they are UTF-8, base64 where they are not.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::escape::Escaped;

/// Bytes from the box, such as a name or an argument.
///
/// In JSON it is a string when it is UTF-8, and `{"b64":"…"}` (RFC 4648 section 4, with padding)
/// when it is not; each value has exactly one spelling and the other one is refused on reading.
/// Display makes it inert.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteText(Vec<u8>);

impl ByteText {
    /// Keeps `bytes`.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ByteText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Escaped::new(&self.0), f)
    }
}

impl fmt::Debug for ByteText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Escaped::new(&self.0), f)
    }
}

/// The form on the wire of what is no text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64 {
    b64: String,
}

impl Serialize for ByteText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            // The error says where, which the base64 form has no use for.
            Err(_) => Base64 { b64: encode(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ByteText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EitherForm)
    }
}

/// Takes a string, or an object with base64.
struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = ByteText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or an object with base64 of what is none")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteText, E> {
        Ok(ByteText::new(text))
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<ByteText, E> {
        Ok(ByteText(text.into_bytes()))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<ByteText, A::Error> {
        let Base64 { b64 } = Base64::deserialize(MapAccessDeserializer::new(fields))?;
        let bytes = decode(&b64).ok_or_else(|| A::Error::custom("not canonical base64"))?;
        if str::from_utf8(&bytes).is_ok() {
            return Err(A::Error::custom("base64 of what is text"));
        }
        Ok(ByteText(bytes))
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (digit, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let index = (bits >> shift & 0x3f) as usize;
            text.push(if digit <= group.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    text
}

/// Decodes what [`encode`] gives and nothing else.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        let mut digits = 0_usize;
        for &c in group.iter().take_while(|&&c| c != b'=') {
            let value = ALPHABET.iter().position(|&known| known == c)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
            digits += 1;
        }
        bits <<= 6 * (4 - digits);
        let [_, all @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(all.get(..digits.checked_sub(1)?)?);
    }
    // Missing or misplaced padding and stray low bits do not come back the same.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ByteText, decode, encode};

    #[test]
    fn text_is_a_string_and_other_bytes_are_base64() {
        let json = |bytes: &[u8]| serde_json::to_string(&ByteText::new(bytes)).expect("json");
        assert_eq!(json("größe".as_bytes()), "\"größe\"");
        assert_eq!(json(b"\xff\xfe"), "{\"b64\":\"//4=\"}");
    }

    #[test]
    fn a_second_spelling_is_refused() {
        for wrong in [
            r#"{"b64":"YQ=="}"#,
            r#"{"b64":"//4"}"#,
            r#"{"b64":"//5="}"#,
            r#"{"b64":"//4=","x":1}"#,
            "7",
        ] {
            serde_json::from_str::<ByteText>(wrong).expect_err(wrong);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes.clone()));
            let text = ByteText::new(bytes);
            let json = serde_json::to_string(&text).expect("json");
            prop_assert_eq!(serde_json::from_str::<ByteText>(&json).expect("parses"), text);
        }
    }
}
