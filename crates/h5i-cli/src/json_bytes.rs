//! Bytes in JSON: text where they are UTF-8, `{"b64":"…"}` where they are not.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that are a JSON string when they are UTF-8, and `{"b64":"…"}` (RFC 4648 section 4, with
/// padding) when they are not. Reading undoes writing for every byte string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonBytes(pub Vec<u8>);

impl JsonBytes {
    /// The bytes of a path.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }

    /// The bytes as a path.
    #[must_use]
    pub fn to_path(&self) -> PathBuf {
        Path::new(std::ffi::OsStr::from_bytes(&self.0)).to_owned()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    b64: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Either {
    Text(String),
    Bytes(Encoded),
}

impl Serialize for JsonBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Encoded { b64: encode(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for JsonBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Either::deserialize(deserializer)? {
            Either::Text(text) => Ok(Self(text.into_bytes())),
            Either::Bytes(Encoded { b64 }) => {
                decode(&b64).map(Self).ok_or_else(|| D::Error::custom("`b64` is not base64"))
            }
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place > chunk.len() {
                text.push('=');
            } else {
                let six = (group >> (18 - 6 * place)) & 0x3f;
                text.push(char::from(ALPHABET[six as usize]));
            }
        }
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut bits) = (0_u32, 0_u32);
    for b in body.bytes() {
        let six = ALPHABET.iter().position(|&a| a == b)?;
        group = group << 6 | u32::try_from(six).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(group >> bits & 0xff).ok()?);
        }
        group &= (1 << bits) - 1;
    }
    // Left-over bits must be zero, or two texts would mean the same bytes.
    (group == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::JsonBytes;

    #[test]
    fn text_is_a_string_and_other_bytes_are_base64() {
        let json = |b: &[u8]| serde_json::to_string(&JsonBytes(b.to_vec())).unwrap();
        assert_eq!(json("a/ß".as_bytes()), "\"a/ß\"");
        assert_eq!(json(b"\xff"), r#"{"b64":"/w=="}"#);
        assert_eq!(json(b"a\xff"), r#"{"b64":"Yf8="}"#);
        assert_eq!(json(b"ab\xff"), r#"{"b64":"YWL/"}"#);
    }

    #[test]
    fn reading_undoes_writing() {
        for length in 0..64_u8 {
            let bytes = JsonBytes((0..length).map(|i| i.wrapping_mul(37) | 0x80).collect());
            let text = serde_json::to_string(&bytes).unwrap();
            assert_eq!(serde_json::from_str::<JsonBytes>(&text).unwrap(), bytes);
        }
    }

    #[test]
    fn malformed_base64_is_refused() {
        for text in
            [r#"{"b64":"/x=="}"#, r#"{"b64":"a"}"#, r#"{"b64":"****"}"#, r#"{"b64":"","c":1}"#]
        {
            assert!(serde_json::from_str::<JsonBytes>(text).is_err(), "{text}");
        }
    }
}
